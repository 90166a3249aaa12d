"""How far a net's gradient and kernel move when its weights do: Theorem 3 and Corollary 4 of Noy et al. 2021.

Gradients of single outputs have rank one in every layer, dy_p/dW_k = F_{k+1,p}^T h_{k-1}^T, and are never formed.
"""

import copy

import torch

from ..errors import ParameterError
from ..theory.finite_kernels import jacobian_rows


def moved(run, changes):
    """A descent of one run with weights W_k + changes[k-1] and the same inputs; a ReLU net finds its own gates."""
    other = copy.copy(run)
    other.W = [W + change for W, change in zip(run.W, changes, strict=True)]
    other._last = {}
    del other.back  # so that it gets buffers of its own
    other._begin(run.h[0], run.gates if run.kind == "grelu" else None)
    other.forward()
    return other


def perturbation(run, how, size, *, seed=0, example=0):
    """Changes of W_1, .., W_L of spectral norm `size` each.

    how "gaussian": entries N(0, size^2/(4 m)), whose norm is `size` in the limit of large m; "gradient": rank one,
    along the gradient of the sum of the outputs at one input, numbered `example`.
    """
    if how == "gaussian":
        generator, m = torch.Generator().manual_seed(seed), run.net.m
        draws = (torch.randn(m, m, generator=generator, dtype=torch.float64).to(W) for W in run.W)
        return [draw.mul_(size / (2 * m**0.5)) for draw in draws]
    if how != "gradient":
        raise ParameterError(f"how must be gaussian or gradient, not {how!r}")
    rows = [F[example].sum(0) for F in jacobian_rows(run)]
    below = [h[example] for h in run.h[:-1]]
    return [torch.outer(z, h) * (size / (z.norm() * h.norm())) for z, h in zip(rows, below, strict=True)]


def gradient_ratio(run, other):
    """||grad y_p(x_i, W + W') - grad y_p(x_i, W)||_F / ||grad y_p(x_i, W)||_F over all layers, (n, d_y).

    run, other: descents at W and W + W' on the same inputs. Source: Noy et al. 2021, Theorem 3, eq. (7).
    """
    moves, sizes = 0, 0
    pairs = zip(jacobian_rows(run), run.h, jacobian_rows(other), other.h, strict=False)
    for F, h, F2, h2 in pairs:
        h, h2, change = h.unsqueeze(-2), h2.unsqueeze(-2), F2 - F
        inner = (change * F).sum(-1) * (h2 * (h2 - h)).sum(-1)
        moves = moves + change.square().sum(-1) * h2.square().sum(-1)
        moves = moves + F.square().sum(-1) * (h2 - h).square().sum(-1) + 2 * inner
        sizes = sizes + F.square().sum(-1) * h.square().sum(-1)
    return (moves.clamp(min=0) / sizes).sqrt()


def output_kernels(run):
    """K_p(x_i, x_j) = <grad y_p(x_i), grad y_p(x_j)>, (d_y, n, n). Source: Noy et al. 2021, eq. (6)."""
    total = 0
    for F, h in zip(jacobian_rows(run), run.h, strict=False):
        F = F.transpose(-3, -2)
        total = (F @ F.mT) * (h @ h.mT) + total
    return total


def kernel_change(run, other):
    """|K_p' - K_p| / sqrt(K_p(x_i, x_i) K_p(x_j, x_j)), (d_y, n, n). Source: Noy et al. 2021, Corollary 4, eq. (8)."""
    before, after = output_kernels(run), output_kernels(other)
    size = before.diagonal(dim1=-2, dim2=-1).sqrt()
    return (after - before).abs() / (size.unsqueeze(-1) * size.unsqueeze(-2))
