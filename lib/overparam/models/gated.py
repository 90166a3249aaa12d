"""GReLU nets, whose gates a frozen random net sets once and for all, and their ReLU twins.

Source: Noy et al. 2021.
"""

import copy

import numpy as np
import torch

from .. import arguments
from ..errors import ParameterError
from .open_run import OpenRun

_BLOCK = 2**23  # entries that are drawn at a time
_ROWS = 4096  # inputs of a table that are handled at once outside training


class GatedRuns:
    """y = B D_L W_L .. D_1 W_1 D_0 C x for R runs; only W_1, .., W_L are trained, no biases.

    kind "grelu": D_k holds the signs of z_k, with z_0 = [C x]^+ and z_k = [Psi_k z_{k-1}]^+, which
    never change. kind "relu": D_k holds the signs of the net's own pre-activations. D_0 is the same
    in both. W_k, Psi_k ~ N(0, 2/m), C ~ N(0, 2/d_x), B ~ N(0, 2/d_y), entry by entry. L counts the
    trained m x m matrices.
    seeds: one per run; runs with the same seed share all draws, whatever their kind.
    psi_rank: Psi_k = U_k V_k of this rank, entries of U_k ~ N(0, 1/rank), of V_k ~ N(0, 2/m).
    draw_on: "cpu", where all devices see the same draws, or "device": on a GPU, where widths of
    10^4 and more take seconds instead of minutes.
    Everything is drawn block by block when a run is opened, in float64, and cast to dtype and
    device of the inputs; Psi_k is applied as it is drawn and not kept.
    Source: Noy et al. 2021, Section 2.1, eq. (1).

    >>> net = GatedRuns("grelu", 3, 64, 4, seeds=[0, 1])
    >>> net.descent(torch.ones(5, 3)).forward().shape
    torch.Size([2, 5, 1])
    """

    def __init__(self, kind, d_x, m, L, d_y=1, *, seeds, psi_rank=None, draw_on="cpu"):
        if kind not in ("grelu", "relu"):
            raise ParameterError(f"kind must be grelu or relu, not {kind!r}")
        if draw_on not in ("cpu", "device"):
            raise ParameterError(f"draw_on must be cpu or device, not {draw_on!r}")
        self.kind, self.d_x, self.m, self.L, self.d_y = kind, d_x, m, L, d_y
        self.seeds = arguments.seeds(seeds)
        self.runs = len(self.seeds)
        self.psi_rank, self.draw_on = psi_rank, draw_on
        self._weights = self._psi = None
        rank = psi_rank or 1
        self._laws = {  # shape and variance of every matrix; the order is part of the seed
            "B": ((d_y, m), 2 / d_y),
            "C": ((m, d_x), 2 / d_x),
            "W": ((m, m), 2 / m),
            "Psi": ((m, m), 2 / m),
            "U": ((m, rank), 1 / rank),
            "V": ((rank, m), 2 / m),
        }

    def twin(self, kind):
        """The same nets with the other kind of gates: B, C and W_k(0) stay."""
        return self._with(kind=kind)

    def with_weights(self, W):
        """The same nets starting from W: L tensors (m, m), or (R, m, m) for every run its own."""
        return self._with(_weights=list(W))

    def with_psi(self, Psi):
        """The same nets with gates set by other Psi: L tensors (m, m) or (R, m, m).

        Or L pairs (U, V), for the products U V. With Psi_k = W_k(0) of a ReLU net, its GReLU twin
        starts as that net (Section 4.1).
        """
        return self._with(_psi=list(Psi))

    def _with(self, **changes):
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    @property
    def draws(self):
        """The first run that starts from the same matrices, of every run."""
        if self._weights is not None or self._psi is not None:
            return list(range(self.runs))
        return [self.seeds.index(seed) for seed in self.seeds]

    def descent(self, x, run=None):
        """Open one run (int) or all (None) on x: (n, d_x), or (R, n, d_x), one data set per run."""
        if x.shape[-1] != self.d_x:
            raise ParameterError(f"x has {x.shape[-1]} columns, the net takes {self.d_x}")
        return GatedDescent(self, run, x if run is None or x.ndim == 2 else x[run])

    def like(self, x):
        """A tensor of the dtype and on the device in which runs at inputs x are drawn."""
        return x

    def outer(self, run, like):
        """B (d_y, m) and C (m, d_x) of one run, (R, d_y, m) and (R, m, d_x) of all."""
        return self._drawn("B", run, 0, like), self._drawn("C", run, 0, like)

    def layer(self, run, k, like):
        """W_k at the start, k = 1..L, (m, m) of one run, (R, m, m) of all: a tensor of its own."""
        if self._weights is None:
            return self._drawn("W", run, k, like)
        W = self._weights[k - 1].to(like)
        if run is None:
            return W.expand(self.runs, self.m, self.m).clone()
        return (W if W.ndim == 2 else W[run]).clone()

    def psi(self, run, k, like):
        """The random Psi_k of one run as a matrix (m, m)."""
        return self._drawn("Psi", run, k, like)

    def layers_at_start(self, x, run=0):
        """Yields (h_k, D_k), k = 0..L, of a run: activations (n, m), open gates as booleans (n, m).

        x: (n, d_x). Matrices are drawn and discarded, so that deep and wide nets fit: at most two
        m x m matrices are alive at once.
        """
        _, C = self.outer(run, x)
        h = z = (x @ C.T).clamp_(min=0)
        yield h, h > 0
        for k in range(1, self.L + 1):
            h = h @ self.layer(run, k, x).T
            if self.kind == "grelu":
                z = self.psi_times(run, k, z).clamp_(min=0)
                gate = z > 0
                h = h.mul_(gate)
            else:
                h = h.clamp_(min=0)
                gate = h > 0
            yield h, gate

    def gates(self, run, h):
        """D_1, .., D_L of the frozen net as 0/1 tensors like h = [C x]^+.

        h: (n, m) of one run, (R, n, m) of all (run None).
        """
        if run is None:
            of_runs = [self.gates(r, h[r]) for r in range(self.runs)]
            return [torch.stack(layer) for layer in zip(*of_runs, strict=True)]
        found = []
        for k in range(1, self.L + 1):
            h = self.psi_times(run, k, h).clamp_(min=0)
            found.append((h > 0).to(_gate_dtype(h)))
        return found

    def psi_times(self, run, k, z):
        """Psi_k z for the rows of z, (n, m)."""
        if self._psi is not None:
            given = self._psi[k - 1]
            factors = given if isinstance(given, tuple | list) else (given,)
            factors = [P.to(z) if P.ndim == 2 else P[run].to(z) for P in factors]
        elif self.psi_rank is not None:
            factors = [self._drawn("U", run, k, z), self._drawn("V", run, k, z)]
        else:
            out = torch.empty_like(z)
            for rows, block in self._blocks("Psi", run, k, z):
                out[:, rows] = z @ block.mT
            return out
        for P in reversed(factors):
            z = z @ P.mT
        return z

    def _drawn(self, part, run, k, like):
        if run is None:
            of_seed = {}
            for r, seed in enumerate(self.seeds):
                if seed not in of_seed:
                    of_seed[seed] = self._drawn(part, r, k, like)
            return torch.stack([of_seed[seed] for seed in self.seeds])
        out = like.new_empty(self._laws[part][0])
        for rows, block in self._blocks(part, run, k, like):
            out[rows] = block
        return out

    def _blocks(self, part, run, k, like):
        """(rows, entries of these rows) of a Gaussian matrix: of the seed, part and layer alone."""
        (height, width), variance = self._laws[part]
        on_device = self.draw_on == "device" and like.device.type == "cuda"
        device = like.device if on_device else torch.device("cpu")
        stream = [self.seeds[run], list(self._laws).index(part), k]
        key = np.random.SeedSequence(stream).generate_state(1, np.uint64)
        generator = torch.Generator(device).manual_seed(int(key[0]) % 2**63)
        step = max(1, _BLOCK // width)
        for start in range(0, height, step):
            rows = slice(start, min(start + step, height))
            size = (rows.stop - start, width)
            block = torch.randn(*size, generator=generator, dtype=torch.float64, device=device)
            yield rows, block.mul_(variance**0.5).to(like)


def _gate_dtype(h):
    """Masks are multiplied ten times as fast as floats on CPUs, and are bytes elsewhere."""
    return h.dtype if h.device.type == "cpu" else torch.bool


class GatedDescent(OpenRun):
    """Forward, backward and update of W_1, .., W_L in preallocated buffers.

    Taking other inputs costs a GReLU net a pass through its Psi, drawn anew: for batches there is
    `TabulatedRuns`.
    `h`: [h_0, .., h_L], each (..., n, m), the activations after the gates; `gates`: [D_1, .., D_L]
    as 0/1 (..., n, m). Both are those of the last `forward`.
    """

    def __init__(self, net, run, x):
        self.net, self.run, self.kind = net, run, net.kind
        like = net.like(x)
        self.B, self.C = net.outer(run, like)
        self.W = [net.layer(run, k, like) for k in range(1, net.L + 1)]
        self._elsewhere = None, None  # the last inputs of `predict` and what never changes there
        self.load(x)
        self.fixed = [self.B, self.C, net.kind]  # what the run is drawn as, beside its state
        self._mark = self._gate_counts()

    def load(self, x):
        """Take other inputs (..., n, d_x), a batch of them say; buffers are kept where n stays."""
        self.x = x
        h, gates = self._frozen(x)
        if not hasattr(self, "back") or self.back.shape != h.shape:
            self._allocate(h)
        self.h[0], self.gates = h, self.gates if gates is None else gates
        self._current = False

    def _allocate(self, h):
        self.h = [h, *(torch.empty_like(h) for _ in self.W)]
        self.delta, self.back = torch.empty_like(h), torch.empty_like(h)
        self.gates = None
        if self.kind == "relu":
            self.gates = [torch.empty_like(h, dtype=_gate_dtype(h)) for _ in self.W]

    def _frozen(self, x):
        """What never changes at inputs x: h_0 and, for GReLU, the gates; None for ReLU."""
        h = (x @ self.C.mT).clamp_(min=0)
        return h, self.net.gates(self.run, h) if self.kind == "grelu" else None

    def _frozen_elsewhere(self, x):
        if self._elsewhere[0] is not x:
            self._elsewhere = x, self._frozen(x)
        return self._elsewhere[1]

    def at(self, W):
        """The same net at the same inputs with weights W = [W_1, .., W_L].

        A ReLU net finds its own gates.
        """
        other = copy.copy(self)
        other.W, gates = list(W), self.gates
        other._allocate(self.h[0])
        other.gates = gates if self.kind == "grelu" else other.gates
        other._current = False
        other.forward()
        return other

    @property
    def state(self):
        """The weights, and a mark of the gates, so that no checkpoint fits a net with others."""
        found = {"mark": self._mark}
        for k, W in enumerate(self.W, 1):
            found[f"W{k}"] = W
        return found

    def _gate_counts(self):
        if self.kind == "relu":
            return self.W[0].new_zeros(1)
        return torch.stack([gate.sum(-2).to(self.W[0]) for gate in self.gates], -2)

    def forward(self):
        """Outputs (..., n, d_y) at the current weights; computed once between two steps."""
        if not self._current:
            for k, (W, gate) in enumerate(zip(self.W, self.gates, strict=True)):
                a = torch.matmul(self.h[k], W.mT, out=self.h[k + 1])
                if self.kind == "relu":
                    torch.gt(a, 0, out=gate)
                    a.clamp_(min=0)
                else:
                    a.mul_(gate)
            self._current = True
        return self.h[-1] @ self.B.mT

    def descend(self, v):
        """Move the weights by -sum_i v_i . dy_i/dW, in place; v (..., n, d_y). After `forward`."""
        delta, back = torch.matmul(v, self.B, out=self.delta), self.back
        for k in reversed(range(len(self.W))):
            delta.mul_(self.gates[k])
            W = self.W[k]
            if k:
                torch.matmul(delta, W, out=back)
            (W.addmm_ if delta.ndim == 2 else W.baddbmm_)(delta.mT, self.h[k], alpha=-1)
            delta, back = back, delta
        self._current = False

    def factors(self, v):
        """[(h_{k-1}, z_k)], k = 1..L, as `OpenRun` says, at the current weights; v (..., n, d_y).

        z_{k,i} = F_{k+1}^T v_i. Source: Noy et al. 2021, eqs. (9), (10).
        """
        self.forward()
        rows = [(v @ self.B).mul_(self.gates[-1])]
        for W, gate in zip(reversed(self.W[1:]), reversed(self.gates[:-1]), strict=True):
            rows.append((rows[-1] @ W).mul_(gate))
        return list(zip(self.h[:-1], reversed(rows), strict=True))

    def changes(self):
        """W_k - W_k(0), k = 1..L, one after the other; W_k(0) is drawn anew."""
        for k, W in enumerate(self.W, 1):
            yield self.net.layer(self.run, k, W).neg_().add_(W)

    def predict(self, x):
        """Outputs (..., n, d_y) at other inputs x (n, d_x).

        A GReLU net draws its Psi anew for their gates.
        """
        h, gates = self._frozen_elsewhere(x)
        for k, W in enumerate(self.W):
            h = (h @ W.mT).clamp_(min=0) if gates is None else (h @ W.mT).mul_(gates[k])
        return h @ self.B.mT

    def gates_at(self, x):
        """[D_1, .., D_L] at other inputs x (n, d_x), each (..., n, m), of 0/1 or booleans."""
        h, gates = self._frozen_elsewhere(x)
        if gates is not None:
            return gates
        found = []
        for W in self.W:
            h = (h @ W.mT).clamp_(min=0)
            found.append(h > 0)
        return found

    def dead(self):
        """Share of the units of layers 1..L whose gate is closed at all inputs, (..., L)."""
        self.forward()
        return torch.stack([1 - gate.any(-2).double().mean(-1) for gate in self.gates], -1)


class TabulatedRuns(GatedRuns):
    """The nets of `GatedRuns` for stochastic gradient descent: inputs are row numbers of a table.

    The table is X = `inputs` (N, d_x); `rows(first, last)` gives the numbers, as a column, for
    training and test inputs alike, which all lie in X. A descent computes [C X]^+, (N, m), and of a
    GReLU net the gates of all rows as bits, m L / 8 bytes a row, when it is opened.
    Source of the table: Noy et al. 2021, Section 4.4.
    """

    def __init__(self, kind, inputs, m, L, d_y=1, **options):
        super().__init__(kind, inputs.shape[-1], m, L, d_y, **options)
        self.inputs = inputs

    def like(self, x):
        return self.inputs

    def rows(self, first=0, last=None):
        """The numbers first..last - 1 of inputs of X, (last - first, 1)."""
        last = len(self.inputs) if last is None else last
        return torch.arange(first, last, device=self.inputs.device).unsqueeze(1)

    def descent(self, x, run=None):
        """Open one run (int) or all (None) for training on the rows x (n, 1) of X."""
        return TabulatedDescent(self, run, x)


class TabulatedDescent(GatedDescent):
    """A `GatedDescent` whose inputs are row numbers (n, 1)."""

    table = None

    def _tabulate(self):
        h = (self.net.inputs @ self.C.mT).clamp_(min=0)
        if self.kind == "relu":
            return h, None
        parts = []
        for part in h.split(_ROWS, -2):
            parts.append([pack(gate) for gate in self.net.gates(self.run, part)])
        return h, [torch.cat(layer, -2) for layer in zip(*parts, strict=True)]

    def _frozen(self, x):
        self.table = self.table or self._tabulate()
        index, (h, packed) = x[:, 0], self.table
        if packed is None:
            return h[..., index, :], None
        dtype = _gate_dtype(h)
        gates = [unpack(bits[..., index, :], self.net.m, dtype) for bits in packed]
        return h[..., index, :], gates

    _frozen_elsewhere = _frozen  # a table is read at no cost, and its rows need not be kept

    def _gate_counts(self):
        return torch.cat([super()._gate_counts().flatten(), self.net.inputs.sum(0)])

    def predict(self, x):
        """Outputs (..., n, d_y) at the rows x (n, 1) of X."""
        return torch.cat(
            [super(TabulatedDescent, self).predict(part) for part in x.split(_ROWS)], -2
        )


def pack(gates):
    """Bits of booleans or 0/1 (..., m) as bytes (..., ceil(m / 8)): lowest bit first."""
    padded = torch.nn.functional.pad(gates.to(torch.uint8), (0, -gates.shape[-1] % 8))
    grouped = padded.unflatten(-1, (-1, 8))
    shifts = torch.arange(8, dtype=torch.uint8, device=gates.device)
    return (grouped << shifts).sum(-1, dtype=torch.uint8)


def unpack(packed, m, dtype=torch.bool):
    """The 0/1 (..., m) of what `pack` made."""
    bits = packed.unsqueeze(-1) >> torch.arange(8, dtype=torch.uint8, device=packed.device)
    return bits.bitwise_and_(1).flatten(-2)[..., :m].to(dtype)
