"""Losses over a run axis: their value and their derivative by the outputs."""

import copy

import torch

from ..errors import ParameterError


def _of_run(loss, run):
    """A copy of a loss with the labels of one run (int); the loss itself for None, or where all runs share them."""
    if run is None or not loss.runs_axis:
        return loss
    chosen = copy.copy(loss)
    chosen.y, chosen.runs_axis = loss.y[run], False
    return chosen


class SquaredLoss:
    """scale * sum over examples (and outputs) of (u - y)^2, per run.

    y: targets (n,) or (n, d), or with a leading run axis (R, n) or (R, n, d). form: `sum` (Guo et al. 2024, Section 2),
    `halfsum` (Arora et al. 2019's Phi; Guo et al., Appendix B) or `mean` (over examples and outputs).
    """

    def __init__(self, y, form, *, runs_axis=False):
        count = y[0].numel() if runs_axis else y.numel()
        scales = {"sum": 1.0, "halfsum": 0.5, "mean": 1.0 / count}
        if form not in scales:
            raise ParameterError(f"loss form must be one of {', '.join(scales)}, not {form!r}")
        self.y, self.form, self.scale, self.runs_axis = y, form, scales[form], runs_axis

    def select(self, run):
        """The loss of one run (int); of all for None."""
        return _of_run(self, run)

    def rows(self, index):
        """The loss of some of the examples; `mean` is then the mean over these."""
        chosen = copy.copy(self)
        chosen.y = self.y[:, index] if self.runs_axis else self.y[index]
        if self.form == "mean":
            chosen.scale = self.scale * len(self.y[0] if self.runs_axis else self.y) / len(index)
        return chosen

    def __call__(self, u):
        """(value, derivative by u): value () or (R,), derivative of the shape of u."""
        residual = u - self.y
        own = self.y.ndim - (1 if self.runs_axis else 0)
        return residual.square().sum(tuple(range(-own, 0))) * self.scale, residual.mul_(2 * self.scale)


class RegressionLoss(SquaredLoss):
    """Half the sum over examples of |u - y|^2 (`halfsum`, Noy et al. 2021, eq. (2)), or that over n (`halfmean`).

    y: (n, d), or (R, n, d) with `runs_axis`. Twice `halfmean` is the mean squared error per example of the paper's
    Table 2. A run whose value exceeds `limit` has diverged: value and derivative are NaN, and so are its weights then.
    """

    def __init__(self, y, form="halfmean", *, limit=1e10, runs_axis=False):
        if form not in ("halfsum", "halfmean"):
            raise ParameterError(f"loss form must be halfsum or halfmean, not {form!r}")
        super().__init__(y, "halfsum" if form == "halfsum" else "mean", runs_axis=runs_axis)
        self.scale, self.limit = 0.5 if form == "halfsum" else 0.5 / y.shape[1 if runs_axis else 0], limit

    def __call__(self, u):
        """(value, derivative by u): value () or (R,), derivative of the shape of u."""
        value, derivative = super().__call__(u)
        over = torch.where(value > self.limit, torch.nan, 0.0)
        own = self.y.ndim - (1 if self.runs_axis else 0)
        return value + over, derivative.add_(over.reshape(*over.shape, *[1] * own))


class CrossEntropyLoss:
    """Mean over examples of -log softmax(u)_y, per run; y: class numbers (n,), the same for all runs."""

    runs_axis = False

    def __init__(self, y):
        self.y, self.scale = y.long(), 1 / len(y)

    def select(self, run):
        return self

    def rows(self, index):
        """The loss of some of the examples: the mean over these."""
        return CrossEntropyLoss(self.y[index])

    def __call__(self, u):
        """(value, derivative by u): value () or (R,), derivative (..., n, k) for u (..., n, k)."""
        logs = torch.log_softmax(u, -1)
        picked = logs.gather(-1, self.y.expand(u.shape[:-1]).unsqueeze(-1)).squeeze(-1)
        derivative = logs.exp()
        derivative.scatter_add_(-1, self.y.expand(u.shape[:-1]).unsqueeze(-1), -torch.ones_like(picked).unsqueeze(-1))
        return -picked.mean(-1), derivative.mul_(self.scale)


class ExponentialLoss:
    """Sum over examples of exp(lam |u - y|^2) / 2, per run; its minimum is n / 2.

    y: (n, d), or (R, n, d) with `runs_axis`. Source: Guo et al. 2024, eq. (137).
    """

    def __init__(self, y, lam, *, runs_axis=False):
        self.y, self.scale, self.runs_axis = y, lam, runs_axis

    def select(self, run):
        """The loss of one run (int); of all for None."""
        return _of_run(self, run)

    def __call__(self, u):
        """(value, derivative by u): value () or (R,), derivative (..., n, d)."""
        residual = u - self.y
        value = torch.exp(self.scale * residual.square().sum(-1, keepdim=True))
        return value.sum((-2, -1)) / 2, residual.mul_(self.scale * value)


class ExponentialExcess(ExponentialLoss):
    """`ExponentialLoss` less its minimum n / 2, without loss of digits where that is small."""

    def __call__(self, u):
        """(value, derivative by u): value () or (R,), derivative (..., n, d)."""
        residual = u - self.y
        excess = torch.expm1(self.scale * residual.square().sum(-1, keepdim=True))
        return excess.sum((-2, -1)) / 2, residual.mul_(self.scale * (excess + 1))


class LogisticLoss:
    """Mean over examples of log(1 + exp(-y u)), per run; y: +1 or -1, (n,), or (R, n) with `runs_axis`.

    Source: Frei et al. 2019, Section 2.
    """

    def __init__(self, y, *, runs_axis=False):
        if not bool((y.abs() == 1).all()):
            raise ParameterError("labels of the logistic loss must be +1 or -1")
        self.y, self.scale, self.runs_axis = y, 1 / y.shape[-1], runs_axis

    def select(self, run):
        """The loss of one run (int); of all for None."""
        return _of_run(self, run)

    def __call__(self, u):
        """(value, derivative by u): value () or (R,), derivative of the shape of u, (n,) or (R, n)."""
        margins = u * self.y
        value = torch.nn.functional.softplus(-margins).mean(-1)
        return value, torch.sigmoid(-margins).mul_(self.y).mul_(-self.scale)

    def surrogate(self, u):
        """E_S, the mean of -l'(y u) = 1/(1 + exp(y u)), () or (R,). Source: Frei et al. 2019, Section 2."""
        return torch.sigmoid(-u * self.y).mean(-1)


def halving_step(loss):
    """First k with loss(k) <= loss(0) / 2 along the last axis; the number of steps where there is none."""
    loss = torch.as_tensor(loss)
    below = loss <= loss[..., :1] / 2
    return torch.where(below.any(-1), below.int().argmax(-1), loss.shape[-1] - 1)
