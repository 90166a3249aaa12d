"""The deep ReLU net of Allen-Zhu et al. 2019 with all of A, W_1..W_L and B trained."""

import torch

from .deep_relu import LAST, drawn


class JointRuns:
    """Nets with the start of `ReLUNet(p, m, d, L, seed=..)`, one per run, of which every matrix is trained.

    seeds: one per run. Source: Allen-Zhu et al. 2019, footnote 7.
    """

    def __init__(self, p, m, d, L, *, seeds, dtype=torch.float64, device="cpu", draw_on="cpu"):
        self.p, self.m, self.d, self.L, self.runs, self.seeds = p, m, d, L, len(seeds), list(seeds)
        self._options = {"dtype": dtype, "device": device, "draw_on": draw_on}

    def descent(self, x, run=None):
        """Open one run (int) or all (None) for training on x (n, p), or (R, n, p) for one data set per run."""
        x = x if x.ndim == 2 or run is None else x[run]
        return JointDescent(self, run, x)

    def start(self, run):
        """[A, W_1, .., W_L, B] at the start of one run, or stacked for all (None)."""
        if run is None:
            return [torch.stack(parts) for parts in zip(*(self.start(k) for k in range(self.runs)), strict=True)]
        shapes = [((self.m, self.p), 2 / self.m), *[((self.m, self.m), 2 / self.m)] * self.L]
        layers = [drawn(*shape, self.seeds[run], l, **self._options) for l, shape in enumerate(shapes)]
        return [*layers, drawn((self.d, self.m), 1 / self.d, self.seeds[run], LAST, **self._options)]


class JointDescent:
    """Such a net in training. `layers`: [A, W_1, .., W_L, B]."""

    def __init__(self, nets, run, x):
        self.nets, self.run, self.x, self.layers = nets, run, x, nets.start(run)

    @property
    def state(self):
        return {f"layer{l}": layer for l, layer in enumerate(self.layers)}

    def forward(self):
        """Outputs (..., n, d) at the current weights."""
        self.h = [self.x]
        for layer in self.layers[:-1]:
            self.h.append((self.h[-1] @ layer.mT).clamp_(min=0))
        return self.h[-1] @ self.layers[-1].mT

    def descend(self, v):
        """Move all matrices by -sum_i v_i . dy_i/dW; v (..., n, d). To be called after `forward`."""
        delta = v
        for layer, below in zip(reversed(self.layers), reversed(self.h), strict=True):
            back = (delta @ layer) * (below > 0)
            layer -= delta.mT @ below
            delta = back

    def movement(self):
        """The Frobenius norms of the changes of A, W_1, .., W_L, B, (..., L + 2)."""
        pairs = zip(self.layers, self.nets.start(self.run), strict=True)
        return torch.stack([(now - before).norm(dim=(-2, -1)) for now, before in pairs], -1)
