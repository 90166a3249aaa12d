"""The deep ReLU net of Allen-Zhu et al. 2019 with all of A, W_1..W_L and B trained."""

import torch

from ..models.deep_relu import ReLUNet


class JointRuns:
    """Nets with the start of `ReLUNet(p, m, d, L, seed=..)`, one per run, of which every matrix is trained.

    seeds: one per run; place: as there. Source: Allen-Zhu et al. 2019, footnote 7.
    """

    def __init__(self, p, m, d, L, *, seeds, **place):
        self.m, self.runs, self.seeds = m, len(seeds), list(seeds)
        self.start = lambda run: ReLUNet(p, m, d, L, seed=self.seeds if run is None else self.seeds[run], **place)

    def descent(self, x, run=None):
        """Open one run (int) or all (None) for training on x (n, p), or (R, n, p) for one data set per run."""
        return JointDescent(lambda: self.start(run), x if x.ndim == 2 or run is None else x[run])


class JointDescent:
    """Such a net in training. start: draws it; `layers`: [A, W_1, .., W_L, B]."""

    def __init__(self, start, x):
        self.start, self.net, self.x = start, start(), x
        self.layers = _layers(self.net)

    @property
    def state(self):
        return {f"layer{l}": layer for l, layer in enumerate(self.layers)}

    def forward(self):
        """Outputs (..., n, d) at the current weights."""
        self.g, self.h = self.net.forward(self.x)
        return self.h[-1] @ self.net.B.mT

    def descend(self, v):
        """Move all matrices by -sum_i v_i . dy_i/dW; v (..., n, d). To be called after `forward`."""
        rows = self.net.sensitivities(self.g, v)
        first = self.net.apply_transposed(1, rows[0]) * (self.h[0] > 0)
        for layer, p, below in zip(self.layers, [first, *rows, v], [self.x, *self.h], strict=True):
            layer -= p.mT @ below

    def movement(self):
        """||.||_F of the changes of A, W_1, .., W_L, B, (..., L + 2)."""
        pairs = zip(self.layers, _layers(self.start()), strict=True)
        return torch.stack([(now - before).norm(dim=(-2, -1)) for now, before in pairs], -1)


def _layers(net):
    return [net.A, *net.W, net.B]
