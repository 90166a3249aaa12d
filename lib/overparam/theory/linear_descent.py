"""What gradient descent does to a model that is linear in its weights, by its tangent kernel."""

import torch

from .. import arguments
from ..errors import ParameterError

MOST = 2**40  # steps, where no other limit is given


def predicted_loss(gram, residual, eta, steps):
    """|r(k)|^2 / 2 of r(k + 1) = (I - eta K) r(k), k = 0..steps, (R, steps + 1).

    gram: K (n, n), or (R, n, n), in whose precision all is computed; residual: r(0) = y - u(0),
    (R, n); eta: one step size, or (R,).
    Source: Arora et al. 2019, eq. (8), with the net's own outputs at the start.
    """
    powers, squares = _spectrum(gram, residual, eta)
    curve, current = [], squares
    for _ in range(steps + 1):
        curve.append(current.sum(-1) / 2)
        current = current * powers
    return torch.stack(curve, -1)


def predicted_steps(gram, residual, eta, share, most=MOST):
    """First k with `predicted_loss` at most `share` of the first, int64 (R,); else `most`.

    Bisection: needs eta lambda_max <= 2, at which the loss does not rise. Raises ParameterError
    beyond.
    """
    powers, squares = _spectrum(gram, residual, eta)
    if not bool((powers <= 1 + 1e-9).all()):
        raise ParameterError("the step size exceeds 2 / lambda_max: the predicted loss grows")
    target = share * squares.sum(-1)
    low, high = (
        torch.full(target.shape, value, dtype=torch.int64, device=target.device)
        for value in (-1, most)
    )
    for _ in range(int(most).bit_length()):
        middle = (low + high) // 2
        done = (powers ** middle.unsqueeze(-1) * squares).sum(-1) <= target
        low, high = torch.where(done, low, middle), torch.where(done, middle, high)
    return high


def predicted_change(gram, cross, residual, eta, steps):
    """K(x', X) K^-1 (I - (I - eta K)^steps) r(0): how outputs at new inputs change, (R, n').

    gram: (n, n) or (R, n, n), positive definite; cross: K(x', X), (n', n) or (R, n', n); the rest
    as `predicted_loss`. Source: Arora et al. 2019, Section 5, and every paper's limit; the formula
    at a finite number of steps is standard.
    """
    values, vectors = torch.linalg.eigh(arguments.finite(gram, "gram"))
    arguments.finite(cross, "cross")
    residual = _fitting(residual, gram)
    factors = 1 - _eta(eta, values) * values
    weights = (1 - factors**steps) / values * (vectors.mT @ residual.unsqueeze(-1)).squeeze(-1)
    return (cross.to(gram.dtype) @ (vectors @ weights.unsqueeze(-1))).squeeze(-1)


def _spectrum(gram, residual, eta):
    """(1 - eta lambda_i)^2 and (v_i . r)^2, (R, n)."""
    if gram.ndim < 2 or gram.shape[-1] != gram.shape[-2]:
        raise ParameterError(f"gram must be a kernel, (n, n), not {arguments.shape(gram)}")
    values, vectors = torch.linalg.eigh(arguments.finite(gram, "gram"))
    residual = _fitting(residual, gram)
    squares = (vectors.mT @ residual.unsqueeze(-1)).squeeze(-1).square()
    return (1 - _eta(eta, values) * values).square().expand_as(squares), squares


def _fitting(residual, gram):
    """A residual in the precision of the kernel. Raises ParameterError where it does not fit."""
    arguments.finite(residual, "residual")
    if residual.shape[-1] != gram.shape[-1]:
        raise ParameterError(
            f"residual of shape {arguments.shape(residual)} for gram of shape "
            f"{arguments.shape(gram)}: it has one row for each run, with a number for each input"
        )
    return residual.to(gram.dtype)


def _eta(eta, values):
    return torch.as_tensor(eta, dtype=values.dtype, device=values.device).unsqueeze(-1)
