"""Functions of one coordinate of the sphere, by degree: what a kernel of the inner product can represent."""

import numpy as np
from scipy.special import eval_jacobi

from ..errors import ParameterError

NODES = 400  # of the quadrature in the angle, where integrands are smooth


def zonal_coefficients(f, d, degrees):
    """The c_k in f(t) = sum_k c_k P_k(t), for the given degrees, float64 (len(degrees),).

    P_k are the Legendre polynomials of the sphere in R^d, orthogonal with the weight (1 - t^2)^((d - 3)/2), P_k(1) = 1.
    f: callable on arrays in [-1, 1]; f(cos s) must be smooth in s. Rounding limits a small coefficient to an absolute
    error of about 1e-16 sqrt(N_k), N_k the dimension of the harmonics of degree k.
    Where h(<x, x'>) is a kernel and g(x) = f(x_1), the squared norm of g in its space is sum_k c_k(f)^2 / c_k(h); it is
    the supremum of y^T H^{-1} y over all inputs on the sphere, y_i = g(x_i). Source: the addition theorem, e.g. C.
    Mueller, "Spherical Harmonics", 1966.

    >>> (zonal_coefficients(lambda t: t**2, 3, [0, 1, 2]).round(6) + 0).tolist()
    [0.333333, 0.0, 0.666667]
    """
    if d < 2:
        raise ParameterError(f"a sphere needs d >= 2, not {d}")
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    angle = np.pi * (nodes + 1) / 2
    t, weights, order = np.cos(angle), weights * np.sin(angle) ** (d - 2), (d - 3) / 2
    polynomials = [eval_jacobi(k, order, order, t) / eval_jacobi(k, order, order, 1.0) for k in degrees]
    return np.array([weights @ (f(t) * P) / (weights @ P**2) for P in polynomials])
