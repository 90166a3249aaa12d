"""Losses over a run axis: their value and their derivative by the outputs."""

import copy

import torch

from ..errors import ParameterError


class Loss:
    """Called with outputs u: (value, derivative by u); the value has shape () or (R,).

    y: targets (n, ...), or with `runs_axis` one set per run, (R, n, ...); scale: factor of the sum
    over the examples; mean: whether that factor goes with 1/n.
    """

    def __init__(self, y, scale=1.0, *, mean=False, runs_axis=False):
        self.y = y
        self.scale = scale
        self.mean = mean
        self.runs_axis = runs_axis

    def select(self, run):
        """The loss of one run (int); of all for None."""
        chosen = copy.copy(self)
        if run is not None and self.runs_axis:
            chosen.y = self.y[run]
            chosen.runs_axis = False
        return chosen

    def check_fit(self, outputs):
        """Raise ParameterError where the outputs of a run, of this shape, are not those of labels.

        Otherwise each output would be compared with each label.
        """
        labels = self.y.shape[1:] if self.runs_axis else self.y.shape
        if not self._fits(tuple(outputs), tuple(labels)):
            told = f"y of shape {tuple(labels)} for outputs of shape {tuple(outputs)}"
            wanted = "one for each output"
            if isinstance(self, CrossEntropyLoss):
                wanted = "a class number for each input, whose outputs are one for each class"
            raise ParameterError(f"{told}: labels are {wanted}")

    def _fits(self, outputs, labels):
        return outputs == labels

    def rows(self, index):
        """The loss of some of the examples: a mean is that over these, a sum is not rescaled."""
        chosen = copy.copy(self)
        chosen.y = self.y[:, index] if self.runs_axis else self.y[index]
        if self.mean:
            examples = self.y.shape[1 if self.runs_axis else 0]
            chosen.scale = self.scale * examples / len(index)
        return chosen


class SquaredLoss(Loss):
    """scale * sum over examples (and outputs) of (u - y)^2, per run.

    y: targets (n,) or (n, d), or with a leading run axis (R, n) or (R, n, d). form: `halfsum`
    (Arora et al. 2019's Phi; Noy et al. 2021, eq. (2)), `sum` (Guo et al. 2024, Section 2), `mean`
    (over examples and outputs) or `halfmean` (half the mean over examples). A step size is only
    worth something beside its form. A run whose value exceeds `limit` has diverged: value and
    derivative are NaN.

    >>> loss = SquaredLoss(torch.tensor([1.0, -1.0]))
    >>> value, derivative = loss(torch.tensor([3.0, -1.0]))
    >>> value.item(), derivative.tolist()
    (2.0, [2.0, 0.0])
    """

    def __init__(self, y, form="halfsum", *, limit=None, runs_axis=False):
        if not isinstance(y, torch.Tensor):
            raise ParameterError(f"y must be a tensor of labels, not {type(y).__name__}")
        one = y[0] if runs_axis else y
        scales = {"sum": 1.0, "halfsum": 0.5, "mean": 1.0 / one.numel(), "halfmean": 0.5 / len(one)}
        if form not in scales:
            raise ParameterError(f"loss form must be one of {', '.join(scales)}, not {form!r}")
        super().__init__(y, scales[form], mean=form.endswith("mean"), runs_axis=runs_axis)
        self.form = form
        self.limit = limit

    def __call__(self, u):
        residual = u - self.y
        own = self.y.ndim - (1 if self.runs_axis else 0)  # axes of one run's outputs
        value = residual.square().sum(tuple(range(-own, 0))) * self.scale
        derivative = residual.mul_(2 * self.scale)
        if self.limit is not None:
            over = torch.where(value > self.limit, torch.nan, 0.0)
            value = value + over
            derivative.add_(over.reshape(*over.shape, *[1] * own))
        return value, derivative


class RegressionLoss(SquaredLoss):
    """`SquaredLoss` of Noy et al. 2021, `halfmean` unless told; beyond 1e10 a run has diverged.

    Twice `halfmean` is the mean squared error per example of the paper's Table 2.
    """

    def __init__(self, y, form="halfmean", *, runs_axis=False):
        super().__init__(y, form, limit=1e10, runs_axis=runs_axis)


class CrossEntropyLoss(Loss):
    """Mean over examples of -log softmax(u)_y, per run; u (..., n, k).

    y: class numbers (n,), the same for all runs.
    """

    def __init__(self, y):
        if not isinstance(y, torch.Tensor):
            raise ParameterError(f"y must be a tensor of class numbers, not {type(y).__name__}")
        super().__init__(y.long(), 1 / len(y), mean=True)

    def _fits(self, outputs, labels):
        return outputs[:-1] == labels

    def __call__(self, u):
        labels = self.y.expand(u.shape[:-1]).unsqueeze(-1)
        logs = torch.log_softmax(u, -1)
        picked = logs.gather(-1, labels)
        derivative = logs.exp().scatter_add_(-1, labels, -torch.ones_like(picked))
        return -picked.squeeze(-1).mean(-1), derivative.mul_(self.scale)


class ExponentialExcess(Loss):
    """Sum over examples of (exp(lam |u - y|^2) - 1) / 2, per run, to all digits where it is small.

    y: (n, d), or (R, n, d) with `runs_axis`.
    Source: Guo et al. 2024, eq. (137), less its minimum n / 2.
    """

    def __init__(self, y, lam, *, runs_axis=False):
        super().__init__(y, lam, runs_axis=runs_axis)

    def __call__(self, u):
        residual = u - self.y
        excess = torch.expm1(self.scale * residual.square().sum(-1, keepdim=True))
        return excess.sum((-2, -1)) / 2, residual.mul_(self.scale * (excess + 1))


class LogisticLoss(Loss):
    """Mean over examples of log(1 + exp(-y u)), per run.

    y: +1 or -1, (n,), or (R, n) with `runs_axis`.
    Source: Frei et al. 2019, Section 2.
    """

    def __init__(self, y, *, runs_axis=False):
        if not isinstance(y, torch.Tensor):
            raise ParameterError(f"y must be a tensor of labels, not {type(y).__name__}")
        if not bool((y.abs() == 1).all()):
            raise ParameterError("labels of the logistic loss must be +1 or -1")
        super().__init__(y, 1 / y.shape[-1], mean=True, runs_axis=runs_axis)

    def __call__(self, u):
        margins = u * self.y
        value = torch.nn.functional.softplus(-margins).mean(-1)
        return value, torch.sigmoid(-margins).mul_(self.y).mul_(-self.scale)

    def surrogate(self, u):
        """E_S, the mean of -l'(y u) = 1/(1 + exp(y u)), () or (R,).

        Source: Frei et al. 2019, Section 2.
        """
        return torch.sigmoid(-u * self.y).mean(-1)


def halving_step(loss):
    """First k with loss(k) <= loss(0) / 2 along the last axis; the number of steps if none."""
    loss = torch.as_tensor(loss)
    below = loss <= loss[..., :1] / 2
    return torch.where(below.any(-1), below.int().argmax(-1), loss.shape[-1] - 1)
