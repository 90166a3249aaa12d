"""Functions of one coordinate of the sphere, by degree, and what a kernel makes of them."""

import numpy as np
from scipy.special import eval_jacobi

from ..errors import ParameterError

NODES = 400  # of the quadrature in the angle, where integrands are smooth


def relu_profile(t):
    """t (pi - arccos t) / (2 pi), the kernel of `relu_gram` as a function of the inner product."""
    return t * (np.pi - np.arccos(t)) / (2 * np.pi)


def relu_norm(f, d, degrees):
    """The norm of x -> f(x_1) on the sphere in R^d in the space of `relu_profile`.

    It is (sum_k c_k^2 / h_k)^{1/2}.
    It is the supremum of (y^T H^{-1} y)^{1/2}, y_i = f(x_i1), over all inputs and their number, H
    as of `relu_gram`. degrees: all that occur in f; odd ones from 3 on are not in the space.
    Source: the addition theorem, as in C. Mueller, "Spherical Harmonics", 1966; for this kernel
    ours.

    >>> round(float(relu_norm(lambda t: t, 7, [1])), 6)
    2.0
    """
    if any(k % 2 and k > 1 for k in degrees):
        raise ParameterError(
            f"the kernel has degrees 0, 1 and even ones, not all of {list(degrees)}"
        )
    return np.sqrt(
        np.sum(
            zonal_coefficients(f, d, degrees) ** 2 / zonal_coefficients(relu_profile, d, degrees)
        )
    )


def zonal_coefficients(f, d, degrees):
    """The c_k in f(t) = sum_k c_k P_k(t), for the given degrees, float64 (len(degrees),).

    P_k are the Legendre polynomials of the sphere in R^d, orthogonal with the weight (1 - t^2)^((d
    - 3)/2), P_k(1) = 1. f: callable on arrays in [-1, 1]; f(cos s) must be smooth in s. Rounding
    limits a small coefficient to an absolute error of about 1e-16 sqrt(N_k), N_k the dimension of
    the harmonics of degree k.

    >>> (zonal_coefficients(lambda t: t**2, 3, [0, 1, 2]).round(6) + 0).tolist()
    [0.333333, 0.0, 0.666667]
    """
    if d < 2:
        raise ParameterError(f"a sphere needs d >= 2, not {d}")
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    angle = np.pi * (nodes + 1) / 2
    t, weights, order = np.cos(angle), weights * np.sin(angle) ** (d - 2), (d - 3) / 2
    polynomials = [
        eval_jacobi(k, order, order, t) / eval_jacobi(k, order, order, 1.0) for k in degrees
    ]
    return np.array([weights @ (f(t) * P) / (weights @ P**2) for P in polynomials])
