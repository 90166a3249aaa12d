"""Seeded synthetic data. Each function returns float64 tensors x, shape (n, d), and y, shape (n,).

The first rows do not depend on n: with one seed, 100 rows are the first 100 of 200.
"""

import numpy as np
import torch
from scipy.special import betainc

from ..errors import ParameterError
from .transforms import normalise


def streams(seed, count):
    """`count` independent generators from one seed (an integer or a sequence of them)."""
    return [
        np.random.Generator(np.random.PCG64(s)) for s in np.random.SeedSequence(seed).spawn(count)
    ]


def guo_synthetic(n, *, seed, inputs="raw", noise_std=0.1):
    """Guo et al. 2024, Sec. 5.1: inputs x in R^5 and labels of a sum of waves.

    y = sin(10 x1 + 20 x2^3) + cos(3 x3 + 5 x4^2) + 2/(1 + ReLU(0.05 + x5))^(1/2) + 2 x1 x5 + noise.
    The paper's noise N(0, 0.01) is read as variance 0.01. Its "normalized Gaussian" inputs may be
    read as N(0, I) (`raw`) or as those scaled to norm 1 before the labels are computed (`unit`);
    `unit_bias` has the labels of `unit` and the inputs (x, 1)/sqrt 2 in R^6.
    """
    if inputs not in ("raw", "unit", "unit_bias"):
        raise ParameterError(f"inputs {inputs!r} is none of raw, unit, unit_bias")
    draw, noise = streams(seed, 2)
    x = torch.from_numpy(draw.standard_normal((n, 5)))
    if inputs != "raw":
        x = normalise(x, "unit")
    x1, x2, x3, x4, x5 = x.T
    y = torch.sin(10 * x1 + 20 * x2**3) + torch.cos(3 * x3 + 5 * x4**2) + 2 * x1 * x5
    y += 2 * (1 + torch.relu(0.05 + x5)) ** -0.5 + noise_std * torch.from_numpy(
        noise.standard_normal(n)
    )
    return (normalise(x, "unit_bias") if inputs == "unit_bias" else x), y


def noy_ackley(n, d=200, *, seed):
    """Noy et al. 2021, Sec. 6.1: x ~ N(0, I_d) and labels of an Ackley-like sum.

    y = sum_j x_{d+1-j} (log|x_j| (cos x_j + x_j^3 sin x_j) + |x_j|^(1/2)).
    The printed formula lacks the index of x^3 and pairs x_j with x_{d-j}, which does not exist for
    j = d: it is read as the reversed vector. Labels are those of the unscaled x; the networks get
    x/|x|.
    """
    (draw,) = streams(seed, 1)
    x = torch.from_numpy(draw.standard_normal((n, d)))
    size = x.abs()
    return x, (x.flip(1) * (size.log() * (x.cos() + x**3 * x.sin()) + size.sqrt())).sum(1)


def sphere(n, d=30, *, seed):
    """x i.i.d. uniform on the unit sphere of R^d, y independent and uniform in {+1, -1}."""
    draw, labels = streams(seed, 2)
    y = 2.0 * torch.from_numpy(labels.integers(2, size=n)) - 1
    return normalise(torch.from_numpy(draw.standard_normal((n, d))), "unit"), y.to(torch.float64)


def margin_sphere(n, d=20, *, rho=0.2, seed):
    """x uniform on the unit sphere of R^d given |x_1| >= rho, y = sign x_1.

    Satisfies Assumption 3.2 of Frei et al. 2019 with c(u) = sign u_1 and gamma = rho/sqrt(2 pi).
    Raises ParameterError unless 0 <= rho < 1 and at least one point of 10,000 lies so far out (they
    are found by rejection).
    """
    share = 1 - betainc(0.5, (d - 1) / 2, rho**2) if 0 <= rho < 1 else 0.0
    if share < 1e-4:
        raise ParameterError(
            f"rho = {rho}: a share {share:.1g} of the sphere in {d} dimensions has |x_1| >= rho"
        )
    (draw,) = streams(seed, 1)
    kept, count = [], 0
    while count < n:
        x = normalise(torch.from_numpy(draw.standard_normal((max(n, 100), d))), "unit")
        kept.append(x[x[:, 0].abs() >= rho])
        count += len(kept[-1])
    x = torch.cat(kept)[:n] if kept else torch.empty(0, d, dtype=torch.float64)
    return x, x[:, 0].sign()
