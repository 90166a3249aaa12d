"""GReLU nets, whose gates a frozen random net sets once and for all, and their ReLU twins (Noy et al. 2021)."""

import copy
from collections import deque

import numpy as np
import torch

from ..errors import ParameterError
from ..norms import spectral_norm, squared_difference, squared_product

_PARTS = ("B", "C", "W", "Psi", "U", "V")
_BLOCK = 2**23  # entries that are drawn at a time


class GatedRuns:
    """y = B D_L W_L .. D_1 W_1 D_0 C x for R runs; only W_1, .., W_L are trained, no biases.

    kind "grelu": D_k holds the signs of z_k, with z_0 = [C x]^+ and z_k = [Psi_k z_{k-1}]^+, which never change.
    kind "relu": D_k holds the signs of the net's own pre-activations. D_0 is the same in both.
    W_k, Psi_k ~ N(0, 2/m), C ~ N(0, 2/d_x), B ~ N(0, 2/d_y), entry by entry. L counts the trained m x m matrices.
    seeds: one per run; runs with the same seed share all draws, whatever their kind. psi_rank: Psi_k = U_k V_k of this
    rank, entries of U_k ~ N(0, 1/rank), of V_k ~ N(0, 2/m). draw_on: "cpu", where all devices see the same draws, or
    "device": on a GPU, where widths of 10^4 and more take seconds instead of minutes.
    Everything is drawn block by block when a run is opened, in float64, and cast to dtype and device of the inputs;
    Psi_k is applied as it is drawn and not kept.
    Source: Noy et al. 2021, Section 2.1, eq. (1).
    """

    def __init__(self, kind, d_x, m, L, d_y=1, *, seeds, psi_rank=None, draw_on="cpu"):
        if kind not in ("grelu", "relu"):
            raise ParameterError(f"kind must be grelu or relu, not {kind!r}")
        if draw_on not in ("cpu", "device"):
            raise ParameterError(f"draw_on must be cpu or device, not {draw_on!r}")
        self.kind, self.d_x, self.m, self.L, self.d_y = kind, d_x, m, L, d_y
        self.seeds, self.runs, self.psi_rank, self.draw_on = list(seeds), len(seeds), psi_rank, draw_on
        self._weights = self._psi = None

    def twin(self, kind):
        """The same nets with the other kind of gates: B, C and W_k(0) stay."""
        return self._but(kind=kind)

    def with_weights(self, W):
        """The same nets starting from W: L tensors (m, m), or (R, m, m) for every run its own."""
        return self._but(_weights=list(W))

    def with_psi(self, Psi):
        """The same nets with gates set by other Psi: L tensors (m, m) or (R, m, m), or pairs (U, V) for products U V.

        With Psi_k = W_k(0) of a ReLU net, its GReLU twin starts as that net (Section 4.1).
        """
        return self._but(_psi=list(Psi))

    def _but(self, **changes):
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    @property
    def draws(self):
        """The first run that starts from the same matrices, of every run."""
        own = self._weights is not None or self._psi is not None
        return list(range(self.runs)) if own else [self.seeds.index(seed) for seed in self.seeds]

    def descent(self, x, run=None):
        """Open one run (int) or all (None) for training on x: (n, d_x), or (R, n, d_x) for one data set per run."""
        x = x if run is None or x.ndim == 2 else x[run]
        return GatedDescent(self, run, x)

    def outer(self, run, like):
        """B (d_y, m) and C (m, d_x) of one run, (R, d_y, m) and (R, m, d_x) of all."""
        B = self._of_runs(run, lambda r: self._drawn("B", r, 0, (self.d_y, self.m), 2 / self.d_y, like))
        C = self._of_runs(run, lambda r: self._drawn("C", r, 0, (self.m, self.d_x), 2 / self.d_x, like))
        return B, C

    def layer(self, run, k, like):
        """W_k at the start, k = 1..L, (m, m) of one run, (R, m, m) of all: a tensor of its own."""
        if self._weights is not None:
            W = self._weights[k - 1].to(like)
            if run is None:
                return W.expand(self.runs, self.m, self.m).clone()
            return (W if W.ndim == 2 else W[run]).clone()
        return self._of_runs(run, lambda r: self._drawn("W", r, k, (self.m, self.m), 2 / self.m, like))

    def gates(self, run, h):
        """D_1, .., D_L of the frozen net as 0/1 tensors like h = [C x]^+, (n, m), or (R, n, m) for all runs."""
        if run is None:
            rows = [self.gates(r, h[r]) for r in range(self.runs)]
            return [torch.stack(layer) for layer in zip(*rows, strict=True)]
        found, kind = [], gate_dtype(h)
        for k in range(1, self.L + 1):
            h = self.psi_times(run, k, h).clamp_(min=0)
            found.append((h > 0).to(kind))
        return found

    def psi(self, run, k, like):
        """The random Psi_k of one run as a matrix (m, m)."""
        return self._drawn("Psi", run, k, (self.m, self.m), 2 / self.m, like)

    def psi_times(self, run, k, z):
        """Psi_k z for the rows of z, (n, m)."""
        if self._psi is not None:
            psi = [P.to(z) if P.ndim == 2 else P[run].to(z) for P in _factors(self._psi[k - 1])]
        elif self.psi_rank is not None:
            r, shapes = self.psi_rank, [("U", (self.m, self.psi_rank)), ("V", (self.psi_rank, self.m))]
            psi = [self._drawn(part, run, k, s, v, z) for (part, s), v in zip(shapes, (1 / r, 2 / self.m), strict=True)]
        else:
            out = torch.empty_like(z)
            for rows, block in self._blocks("Psi", run, k, (self.m, self.m), 2 / self.m, z):
                out[:, rows] = z @ block.mT
            return out
        for P in reversed(psi):
            z = z @ P.mT
        return z

    def _of_runs(self, run, make):
        if run is not None:
            return make(run)
        drawn = {seed: make(self.seeds.index(seed)) for seed in dict.fromkeys(self.seeds)}
        return torch.stack([drawn[seed] for seed in self.seeds])

    def _drawn(self, part, run, k, shape, variance, like):
        out = like.new_empty(shape)
        for rows, block in self._blocks(part, run, k, shape, variance, like):
            out[rows] = block
        return out

    def _blocks(self, part, run, k, shape, variance, like):
        """(rows, entries of these rows) of a Gaussian matrix: a function of seed, part and layer alone."""
        device = like.device if self.draw_on == "device" and like.device.type == "cuda" else torch.device("cpu")
        key = np.random.SeedSequence([self.seeds[run], _PARTS.index(part), k]).generate_state(1, np.uint64)
        generator = torch.Generator(device).manual_seed(int(key[0]) % 2**63)
        step = max(1, _BLOCK // shape[1])
        for start in range(0, shape[0], step):
            rows = slice(start, min(start + step, shape[0]))
            size = (rows.stop - start, shape[1])
            block = torch.randn(*size, generator=generator, dtype=torch.float64, device=device)
            yield rows, block.mul_(variance**0.5).to(like)


def _factors(psi):
    return psi if isinstance(psi, tuple | list) else (psi,)


def gate_dtype(h):
    """Masks are multiplied ten times as fast as floats on CPUs, and are bytes elsewhere."""
    return h.dtype if h.device.type == "cpu" else torch.bool


class GatedDescent:
    """Forward, backward and update of W_1, .., W_L in preallocated buffers; leading run axis or none.

    Taking other inputs costs a GReLU net a pass through its Psi, drawn anew: for batches there is `TabulatedRuns`.
    `h`: [h_0, .., h_L], each (..., n, m), the activations after the gates; `gates`: [D_1, .., D_L] as 0/1 (..., n, m).
    Both are those of the last `forward`.
    """

    def __init__(self, net, run, x):
        self.net, self.run, self.kind = net, run, net.kind
        self.B, self.C = net.outer(run, x)
        self.W = [net.layer(run, k, x) for k in range(1, net.L + 1)]
        self._last = {}
        self.load(x)
        self._mark = self._gate_counts()

    def load(self, x):
        """Take other inputs (..., n, d_x), a batch of them say; buffers are kept where n stays the same."""
        self.x = x
        self._begin(*self._start(x))

    def _start(self, x):
        """(h_0, gates, None for a ReLU net) of inputs."""
        h = (x @ self.C.mT).clamp_(min=0)
        return h, self.net.gates(self.run, h) if self.kind == "grelu" else None

    def _begin(self, h, gates):
        if not hasattr(self, "back") or self.back.shape != h.shape:
            self.h = [h, *(torch.empty_like(h) for _ in self.W)]
            self.delta, self.back = torch.empty_like(h), torch.empty_like(h)
            self.gates = [torch.empty_like(h, dtype=gate_dtype(h)) for _ in self.W] if gates is None else gates
        self.h[0], self.gates = h, self.gates if gates is None else gates
        self._fresh = False

    @property
    def state(self):
        """The weights, and a mark of the gates, so that no checkpoint fits a net with others."""
        return {"mark": self._mark, **{f"W{k + 1}": W for k, W in enumerate(self.W)}}

    def _gate_counts(self):
        if self.kind == "relu":
            return self.W[0].new_zeros(1)
        return torch.stack([gate.sum(-2).to(self.W[0]) for gate in self.gates], -2)

    def forward(self):
        """Outputs (..., n, d_y) at the current weights; computed once between two steps."""
        if not self._fresh:
            for k, (W, gate) in enumerate(zip(self.W, self.gates, strict=True)):
                a = torch.matmul(self.h[k], W.mT, out=self.h[k + 1])
                if self.kind == "relu":
                    torch.gt(a, 0, out=gate)
                    a.clamp_(min=0)
                else:
                    a.mul_(gate)
            self._fresh = True
        return self.h[-1] @ self.B.mT

    def descend(self, v):
        """Move the weights by -sum_i v_i . dy_i/dW, in place; v (..., n, d_y). To be called after `forward`."""
        delta, back = torch.matmul(v, self.B, out=self.delta), self.back
        for k in reversed(range(len(self.W))):
            delta.mul_(self.gates[k])
            if k:
                torch.matmul(delta, self.W[k], out=back)
            (self.W[k].addmm_ if delta.ndim == 2 else self.W[k].baddbmm_)(delta.mT, self.h[k], alpha=-1)
            delta, back = back, delta
        self._fresh = False

    def sensitivities(self, v):
        """[Z_1, .., Z_L], each (..., n, m), with v_i . dy_i/dW_k = Z_{k,i} h_{k-1,i}^T; v (..., n, d_y).

        At the current weights. Z_{k,i} = F_{k+1}^T v_i. Source: Noy et al. 2021, eqs. (9), (10).
        """
        self.forward()
        rows = [(v @ self.B).mul_(self.gates[-1])]
        for W, gate in zip(reversed(self.W[1:]), reversed(self.gates[:-1]), strict=True):
            rows.append((rows[-1] @ W).mul_(gate))
        return rows[::-1]

    def predict(self, x):
        """Outputs (..., n, d_y) at other inputs x (n, d_x); a GReLU net draws its Psi anew for their gates."""
        ((h, _),) = deque(self._layers(x), maxlen=1)
        return h @ self.B.mT

    def _layers(self, x):
        """Yields (h_k, D_k), k = 1..L, at inputs. Gates that never change are kept for the last inputs seen."""
        if self._last.get("x") is not x:
            self._last = {**self._last, "x": x, "start": self._start(x)}
        return self._up(*self._last["start"])

    def _up(self, h, gates):
        for k, W in enumerate(self.W):
            h = h @ W.mT
            gate = (h > 0).to(gate_dtype(h)) if gates is None else gates[k]
            h = h.clamp_(min=0) if gates is None else h.mul_(gate)
            yield h, gate

    def _gates_at(self, x):
        return [gate for _, gate in self._layers(x)]

    def dead(self, x=None):
        """Share of the units of layers 1..L whose gate is closed at all inputs, (..., L); x: default, those loaded."""
        if x is None:
            self.forward()
        gates = self.gates if x is None else self._gates_at(x)
        return torch.stack([1 - gate.any(-2).double().mean(-1) for gate in gates], -1)

    def gate_changes(self, x):
        """Share of the gates of layers 1..L at inputs x that changed since this was last asked, (...); NaN at first."""
        gates = self._gates_at(x)
        before = self._last.get("gates")
        self._last["gates"] = [gate.bool() for gate in gates]
        if before is None:
            return self.W[0].new_full(gates[0].shape[:-2], float("nan"))
        pairs = zip(before, self._last["gates"], strict=True)
        return torch.stack([(a != b).double().mean((-2, -1)) for a, b in pairs], -1).mean(-1)

    def gradient_change(self, loss):
        """||g_t - g_{t-1}||_F and ||g_t||_F over all layers, (..., 2), g_{t-1} that of the last call (NaN at first).

        loss: gives (value, derivative) at the outputs. Keeps the gradient, as a product where that is smaller.
        """
        rows = self.sensitivities(loss(self.forward())[1])
        below = self.h[:-1]
        if 2 * rows[0].shape[-2] >= rows[0].shape[-1]:
            now = [z.mT @ h for z, h in zip(rows, below, strict=True)]
            change = lambda a, b: (a - b).square().sum((-2, -1))  # noqa: E731
            size = lambda a: a.square().sum((-2, -1))  # noqa: E731
        else:
            now = [(z, h.clone()) for z, h in zip(rows, below, strict=True)]
            change, size = squared_difference, lambda pair: squared_product(*pair)
        before, self._last["gradient"] = self._last.get("gradient"), now
        squares = [sum(size(g) for g in now)]
        squares.insert(0, squares[0] * torch.nan if before is None else sum(map(change, now, before)))
        return torch.stack(squares, -1).clamp(min=0).sqrt()

    def distances(self, iterations=30):
        """||W_k - W_k(0)||_2 of every layer by power iteration, (..., L); W_k(0) is drawn anew, one layer at a time."""
        return torch.stack([spectral_norm(self.change(k), iterations) for k in range(len(self.W))], -1)

    def change(self, k):
        """W_{k+1} - W_{k+1}(0), (..., m, m)."""
        return self.net.layer(self.run, k + 1, self.x).neg_().add_(self.W[k])
