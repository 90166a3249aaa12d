"""Losses over a run axis: their value and their derivative by the outputs."""

import copy

import torch

from ..errors import ParameterError


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
        self.y, self.scale, self.runs_axis = y, scales[form], runs_axis

    def select(self, run):
        """The loss of one run (int); of all for None."""
        if run is None or not self.runs_axis:
            return self
        chosen = object.__new__(SquaredLoss)
        chosen.y, chosen.scale, chosen.runs_axis = self.y[run], self.scale, False
        return chosen

    def __call__(self, u):
        """(value, derivative by u): value () or (R,), derivative of the shape of u."""
        residual = u - self.y
        own = self.y.ndim - (1 if self.runs_axis else 0)
        return residual.square().sum(tuple(range(-own, 0))) * self.scale, residual.mul_(2 * self.scale)


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
        chosen = copy.copy(self)
        if run is not None and self.runs_axis:
            chosen.y, chosen.runs_axis = self.y[run], False
        return chosen

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
