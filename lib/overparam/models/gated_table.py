"""Gated nets on batches of a fixed set of inputs, whose gates are kept as bits (Noy et al. 2021, Section 4.4)."""

import torch

from .gated import GatedDescent, GatedRuns, gate_dtype

ROWS = 4096  # inputs that are handled at once outside training


def pack(gates):
    """Bits of booleans or 0/1 (..., m) as bytes (..., ceil(m / 8)), the lowest bit first, zeros at the end."""
    padded = torch.nn.functional.pad(gates.to(torch.uint8), (0, -gates.shape[-1] % 8))
    grouped = padded.unflatten(-1, (-1, 8))
    return (grouped << torch.arange(8, dtype=torch.uint8, device=gates.device)).sum(-1, dtype=torch.uint8)


def unpack(packed, m, dtype=torch.bool):
    """The 0/1 (..., m) of what `pack` made."""
    bits = packed.unsqueeze(-1) >> torch.arange(8, dtype=torch.uint8, device=packed.device)
    return bits.bitwise_and_(1).flatten(-2)[..., :m].to(dtype)


class TabulatedRuns(GatedRuns):
    """The nets of `GatedRuns` for stochastic gradient descent: inputs are row numbers of X = `inputs` (N, d_x).

    `rows(first, last)` gives them, as a column of floats, for training and test inputs alike, which all lie in X. A
    descent computes [C X]^+, (N, m), and of a GReLU net the gates of all rows, m L / 8 bytes a row, when it is opened.
    """

    def __init__(self, kind, inputs, m, L, d_y=1, **options):
        super().__init__(kind, inputs.shape[-1], m, L, d_y, **options)
        self.inputs = inputs

    def rows(self, first=0, last=None):
        """The inputs first..last - 1 of X as (last - first, 1)."""
        last = len(self.inputs) if last is None else last
        return torch.arange(first, last, dtype=self.inputs.dtype, device=self.inputs.device).unsqueeze(1)

    def descent(self, x, run=None):
        """Open one run (int) or all (None) for training on the rows x (n, 1) of X."""
        return TabulatedDescent(self, run, x)


class TabulatedDescent(GatedDescent):
    """A `GatedDescent` whose inputs are row numbers (n, 1)."""

    def __init__(self, net, run, x):
        self.table = None
        super().__init__(net, run, x)

    def _tabulate(self):
        net, frozen = self.net, self.kind == "grelu"
        h = (net.inputs @ self.C.mT).clamp_(min=0)
        self.table = h, []
        if frozen:
            parts = [[pack(gate) for gate in net.gates(self.run, part)] for part in h.split(ROWS, -2)]
            self.table = h, [torch.cat(layer, -2) for layer in zip(*parts, strict=True)]

    def _start(self, x):
        if self.table is None:
            self._tabulate()
        index, (h, packed) = x[:, 0].long(), self.table
        gates = [unpack(bits[..., index, :], self.net.m, gate_dtype(h)) for bits in packed]
        return h[..., index, :], gates or None

    def _gate_counts(self):
        return torch.cat([super()._gate_counts().flatten(), self.net.inputs.sum(0)])

    def predict(self, x):
        """Outputs (..., n, d_y) at the rows x (n, 1) of X."""
        return torch.cat([super(TabulatedDescent, self).predict(part) for part in x.split(ROWS)], -2)

    def _layers(self, x):
        return self._up(*self._start(x))
