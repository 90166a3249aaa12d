"""How far the Gram matrix (3) and the complexity (10) of Arora et al. 2019 can be trusted in floating point."""

import math

import numpy as np
import scipy.linalg
import torch

from ..errors import ParameterError

BLOCK = 1000  # rows at a time
METHODS = ("cholesky", "lu", "eigh")


def complexity_by(method, y, gram):
    """sqrt(2 y^T H^{-1} y / n) by one of METHODS, in the precision of the matrix.

    y: (n, k), k label vectors; gram: NumPy (n, n), float32 or float64. Returns float64 (k,). Nothing is added to the
    diagonal: a matrix that is not positive definite gives NaN by Cholesky, and whatever the rounding leaves otherwise.
    Source: Arora et al. 2019, eq. (10).
    """
    if method not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    y = np.asarray(y, dtype=gram.dtype)
    if method == "lu":
        squares = (y * scipy.linalg.lu_solve(scipy.linalg.lu_factor(gram), y)).sum(0, dtype=np.float64)
    elif method == "eigh":
        values, vectors = scipy.linalg.eigh(gram)
        squares = ((vectors.T @ y).astype(np.float64) ** 2 / values[:, None]).sum(0)
    else:
        try:
            factor = scipy.linalg.cholesky(gram, lower=True)
        except scipy.linalg.LinAlgError:
            return np.full(y.shape[1], np.nan)
        squares = (scipy.linalg.solve_triangular(factor, y, lower=True).astype(np.float64) ** 2).sum(0)
    with np.errstate(invalid="ignore"):
        return np.sqrt(2 * squares / len(y))


def float32_relu_gram(x, exact_diagonal):
    """Eq. (3) in float32 throughout, (n, n); x: unit-norm NumPy (n, d). The diagonal by arccos is about 2e-4 off."""
    x = np.asarray(x, dtype=np.float32)
    gram = np.clip(x @ x.T, -1, 1)
    gram *= np.float32(0.5) - np.arccos(gram) / np.float32(2 * np.pi)
    if exact_diagonal:
        np.fill_diagonal(gram, 0.5)
    return gram


def stable_relu_gram(x):
    """Eq. (3) with the angle 2 arctan(|x - x'| / |x + x'|), which keeps inputs apart that are nearer than 1e-8.

    x: unit-norm float64 (n, d). Takes n^2 d differences. Returns (n, n), symmetric, the diagonal 1/2.
    Source of the angle: W. Kahan, "How futile are mindless assessments of roundoff", 2006, Section 12.
    """
    apart, together = (torch.cdist(x, other, compute_mode="donot_use_mm_for_euclid_dist") for other in (x, -x))
    angles = 2 * torch.atan2(apart, together)
    gram = angles.cos() * (0.5 - angles / (2 * math.pi))
    return (gram + gram.T) / 2


def nearest_parallel(x):
    """For each row the smaller of |x_i - x_j| and |x_i + x_j| at the j != i with the largest |x_i . x_j|, (n,).

    x: unit-norm float64 (n, d). The distance itself is computed from differences: 0 means equal to the last bit. Of
    rows all nearer than 1e-8 any one may be taken for the nearest.
    """
    distances = []
    for start in range(0, len(x), BLOCK):
        rows = x[start : start + BLOCK]
        inner = (rows @ x.T).abs()
        inner[torch.arange(len(rows)), start + torch.arange(len(rows))] = -1
        nearest = x[inner.argmax(1)]
        distances.append(torch.minimum((rows - nearest).norm(dim=1), (rows + nearest).norm(dim=1)))
    return torch.cat(distances)


def turned(x, direction, distance):
    """The unit vector at the given distance from the unit vector x, turned towards `direction` (d,)."""
    across = direction - (direction @ x) * x
    across = across / across.norm()
    return x * (1 - distance**2 / 2) + across * distance * math.sqrt(1 - distance**2 / 4)


def lemma_e1_eigenvalue(a, b, projected=True):
    """Smallest eigenvalue of A^+ - P_A B^+ P_A, not negative where B >= A >= 0; a, b: symmetric NumPy (n, n).

    projected=False leaves P_A out, which the lemma may not. Eigenvalues below 1e-10 times the largest count as 0.
    Source: Arora et al. 2019, Lemma E.1.
    """
    inverse = np.linalg.pinv(a, rcond=1e-10, hermitian=True)
    middle = np.linalg.pinv(b, rcond=1e-10, hermitian=True)
    if projected:
        projection = a @ inverse
        middle = projection @ middle @ projection.T
    return float(np.linalg.eigvalsh((inverse - middle + (inverse - middle).T) / 2)[0])
