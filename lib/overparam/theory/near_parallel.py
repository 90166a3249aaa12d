"""Nearly parallel inputs, where eq. (3) of Arora et al. 2019 is hard to compute."""

import math

import torch

from .. import arguments

BLOCK = 1000  # rows at a time


def stable_relu_gram(x):
    """Eq. (3) with the angle 2 arctan(|x - x'| / |x + x'|), for inputs nearer than 1e-8.

    x: unit-norm float64 (n, d). Takes n^2 d differences. Returns (n, n), symmetric, the diagonal
    1/2.
    Source of the angle: W. Kahan, "How futile are mindless assessments of roundoff", 2006, Section
    12.
    Raises ParameterError for NaN, infinity or a zero row.
    """
    x = arguments.rows(x, "x")
    apart, together = (
        torch.cdist(x, other, compute_mode="donot_use_mm_for_euclid_dist") for other in (x, -x)
    )
    angles = 2 * torch.atan2(apart, together)
    gram = angles.cos() * (0.5 - angles / (2 * math.pi))
    return (gram + gram.T) / 2


def nearest_parallel(x):
    """For each row the smaller of |x_i - x_j| and |x_i + x_j|, (n,).

    At the j != i with the largest |x_i . x_j|.
    x: unit-norm float64 (n, d). The distance itself is computed from differences: 0 means equal to
    the last bit. Of rows all nearer than 1e-8 any one may be taken for the nearest.
    Raises ParameterError for NaN, infinity or a zero row.
    """
    x = arguments.rows(x, "x")
    distances = []
    for start in range(0, len(x), BLOCK):
        rows = x[start : start + BLOCK]
        inner = (rows @ x.T).abs()
        inner[torch.arange(len(rows)), start + torch.arange(len(rows))] = -1
        nearest = x[inner.argmax(1)]
        distances.append(torch.minimum((rows - nearest).norm(dim=1), (rows + nearest).norm(dim=1)))
    return torch.cat(distances)


def turned(x, direction, distance):
    """The unit vector at a distance from the unit vector x, turned towards `direction` (d,)."""
    across = direction - (direction @ x) * x
    across = across / across.norm()
    return x * (1 - distance**2 / 2) + across * distance * math.sqrt(1 - distance**2 / 4)
