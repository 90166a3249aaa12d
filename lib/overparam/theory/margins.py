"""Margins by linear and by quadratic programming."""

import numpy as np
from scipy.optimize import linprog, nnls

from ..errors import ParameterError


def feature_margin(features, y):
    """(gamma, c): the largest gamma with y_i mean_k c_k features_ik >= gamma for all i.

    Over |c_k| <= 1.
    features: NumPy (n, M), sigma(u_k . x_i) in Assumption 3.2; y: (n,) of +1, -1. A linear program,
    solved by HiGHS in float64. For n inputs and M random features it is at least the margin of
    Assumption 3.2 as M grows, and above it where n is finite. Raises ParameterError where the
    solver fails. Source: Frei et al. 2019, Assumption 3.2.
    """
    signed = -np.asarray(y, dtype=np.float64)[:, None] * np.asarray(features, dtype=np.float64)
    n, M = signed.shape
    result = linprog(
        np.append(np.zeros(M), -1.0),
        A_ub=np.column_stack([signed / M, np.ones(n)]),
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * M + [(None, None)],
        method="highs",
    )
    if not result.success:
        raise ParameterError(
            f"the linear program for the margin of {n} inputs and {M} features: {result.message}"
        )
    return float(result.x[-1]), result.x[:-1]


def nearest_in_hull(points):
    """(distance, a): the point sum_i a_i points_i nearest to the origin, over a_i >= 0 with sum 1.

    points: NumPy (n, p). Non-negative least squares of |sum_i a_i points_i|^2 + s^2 (1 - sum_i
    a_i)^2, whose solution is a multiple of the one that is wanted for every s > 0; s is the points'
    root mean square.
    """
    points = np.asarray(points, dtype=np.float64)
    if len(points) < points.shape[1]:
        points = np.linalg.qr(points.T, mode="r").T  # the same inner products in fewer coordinates
    scale = np.sqrt((points**2).sum() / len(points))
    system = np.vstack([points.T / scale, np.ones(len(points))])
    target = np.append(np.zeros(points.shape[1]), 1.0)
    a, _ = nnls(system, target, maxiter=100 * len(points))
    a /= a.sum()
    return float(np.linalg.norm(a @ points)), a


def smallest_form(Q):
    """(value, a): the least a^T Q a over a >= 0 with mean 1.

    Q: NumPy (n, n), positive semidefinite.
    """
    values, vectors = np.linalg.eigh(Q)
    distance, a = nearest_in_hull(vectors * np.sqrt(values.clip(min=0)))
    return (len(Q) * distance) ** 2, len(Q) * a


def pattern_form(x, y, patterns):
    """Q (n, n) with a^T Q a = sum_j |n^-1 sum_i a_i y_i 1{j active at i} x_i|^2.

    The left side of Lemma B.6.
    x: (n, m) activations x_L; y: (n,) of +1, -1; patterns: boolean (n, m), those of the last layer.
    Float64 NumPy. Source: Frei et al. 2019, Lemma B.6.
    """
    signed, patterns = (x * y.unsqueeze(1)).double(), patterns.double()
    return ((signed @ signed.T) * (patterns @ patterns.T) / len(y) ** 2).cpu().numpy()
