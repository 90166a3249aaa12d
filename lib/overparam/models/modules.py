"""The rescaled leaky ReLU as a torch module, and layers drawn from a seed in float64."""

import torch
from torch import nn

from ..errors import ParameterError


class LeakyUnit(nn.Module):
    """x / sqrt(1 + alpha^2) for x >= 0, alpha x / sqrt(1 + alpha^2) below.

    Source: Guo et al. 2024, eq. (2).
    """

    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha
        self.scale = (1 + alpha**2) ** -0.5

    def forward(self, x):
        return nn.functional.leaky_relu(x, self.alpha) * self.scale


class Drawn:
    """Makes layers with weights drawn from one seed in float64; bias: with biases, at zero."""

    def __init__(self, seed, bias=False):
        self.generator = torch.Generator().manual_seed(seed)
        self.bias = bias

    def normal(self, *shape, std=1.0):
        """A parameter with entries N(0, std^2)."""
        drawn = torch.randn(*shape, generator=self.generator, dtype=torch.float64)
        return nn.Parameter(drawn * std)

    def uniform(self, *shape):
        """A tensor with entries uniform in -1..1."""
        return 2 * torch.rand(*shape, generator=self.generator, dtype=torch.float64) - 1

    def linear(self, p, m, std, bias=None):
        """nn.Linear(p, m) with weights N(0, std^2)."""
        bias = self.bias if bias is None else bias
        return self._filled(nn.Linear(p, m, bias=bias, dtype=torch.float64), std)

    def conv(self, p, m, std, kernel=3, stride=1):
        """nn.Conv2d(p, m) of kernel x kernel with weights N(0, std^2); stride 1 keeps the size."""
        options = {"padding": kernel // 2, "bias": self.bias, "dtype": torch.float64}
        return self._filled(nn.Conv2d(p, m, kernel, stride, **options), std)

    def head(self, p, m, d, alpha, fan):
        """Linear(p, m), leaky unit, Linear(m, d).

        Weights N(0, 2/p) for fan "in" or N(0, 2/m) for "out", and N(0, 1/d). Guo et al. 2024
        initialise square layers by N(0, 2/m) and leave open what others get.
        """
        if fan not in ("in", "out"):
            raise ParameterError(f"fan must be in or out, not {fan!r}")
        width = p if fan == "in" else m
        hidden = self.linear(p, m, (2 / width) ** 0.5)
        return nn.Sequential(hidden, LeakyUnit(alpha), self.linear(m, d, d**-0.5))

    def _filled(self, layer, std):
        layer.weight = self.normal(*layer.weight.shape, std=std)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
        return layer
