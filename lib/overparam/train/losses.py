"""Losses over a run axis: their value and their derivative by the outputs."""

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


def halving_step(loss):
    """First k with loss(k) <= loss(0) / 2 along the last axis; the number of steps where there is none."""
    loss = torch.as_tensor(loss)
    below = loss <= loss[..., :1] / 2
    return torch.where(below.any(-1), below.int().argmax(-1), loss.shape[-1] - 1)
