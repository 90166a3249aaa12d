"""The deep leaky-ReLU net of Guo et al. 2024, Algorithm 1.

At alpha = 0 it is layers 1..L of Allen-Zhu et al. 2019.
"""

import torch

from .. import arguments
from ..errors import ParameterError
from .open_run import OpenRun


class LeakyMLP:
    """h_0 = A x, h_l = s(W_l h_{l-1} + b_l) for l = 1..L, output B h_L; W_1..W_L are trained.

    s(z) = z / sqrt(1 + alpha^2) for z >= 0, alpha z / sqrt(1 + alpha^2) below. Entries of A ~
    N(0, 1/m), of W_l ~ N(0, 2/m), of B ~ N(0, 1/d). With `biases`, b_l starts at zero and is
    trained; else it is zero, as in the theorems.
    p, m, d, L: input dimension, width, output dimension, depth. alphas, seeds: one each per run, R
    in all; runs with the same seed share their draw. Drawn in float64 on the CPU and then cast.
    keep_W1: train W_1 itself instead of its part of rank p (`LeakyDescent`): cheaper for batches
    smaller than p. All runs then share one seed, and inputs are handed over as `embed` gives them.
    Source: Guo et al. 2024, Algorithm 1, eq. (2).

    >>> net = LeakyMLP(3, 64, 1, 2, alphas=[-1.0, 0.0], seeds=[7, 7])
    >>> net.descent(torch.ones(5, 3)).forward().shape
    torch.Size([2, 5, 1])
    """

    def __init__(
        self,
        p,
        m,
        d,
        L,
        *,
        alphas,
        seeds,
        biases=False,
        keep_W1=False,
        dtype=torch.float32,
        device="cpu",
    ):
        seeds = arguments.seeds(seeds)
        self.p, self.m, self.d, self.L, self.runs = p, m, d, L, len(seeds)
        self.dtype = dtype
        self.biases, self.keep_W1 = biases, keep_W1
        unique = sorted(set(seeds))
        draws = zip(*(_draw(p, m, d, L, seed) for seed in unique), strict=True)
        A, W, B = (torch.stack(parts).to(device, dtype) for parts in draws)
        self.A, self.W, self.B = A, W, B  # (S, m, p), (S, L, m, m), (S, d, m)
        self.draw = [unique.index(seed) for seed in seeds]  # run -> which of the S draws
        alpha = torch.tensor(alphas, dtype=torch.float64)
        norm = torch.sqrt(1 + alpha**2)
        slopes = torch.stack([1 / norm, alpha / norm], -1)
        self.slopes = slopes.to(device, dtype)  # (R, 2): for z > 0 and below

    def embed(self, x):
        """Inputs x (n, p) as `descent` takes them: with `keep_W1` h_0 = A x, (n, m), else x."""
        return x @ self.A[0].T if self.keep_W1 else x

    def outputs(self, x):
        """Outputs (R, n, d) at the initial weights for x (n, p) or, one set per run, (R, n, p)."""
        return torch.stack([self.descent(x, run).forward() for run in range(self.runs)])

    def descent(self, x, run=None):
        """Open one run (int) or all (None) on x: (n, p), or (R, n, p), one data set per run."""
        if x.shape[-1] not in (self.p, self.m if self.keep_W1 else self.p):
            raise ParameterError(f"x has {x.shape[-1]} columns, the net takes {self.p}")
        if x.dtype != self.dtype:
            raise ParameterError(f"x is {x.dtype} and the net is {self.dtype}: make them equal")
        draw, chosen = (self.draw, slice(None)) if run is None else (self.draw[run], run)
        x = x[chosen] if x.ndim == 3 else x
        A = None if self.keep_W1 else self.A[draw]
        W, B = self.W[draw].unbind(-3), self.B[draw]
        biases = None
        if self.biases:
            biases = [torch.zeros_like(B[..., 0, :]) for _ in range(self.L)]
        opened = LeakyDescent(A, W, B, self.slopes[chosen], x, biases)
        opened.run = run
        return opened


def _draw(p, m, d, L, seed):
    generator = torch.Generator().manual_seed(seed)
    A = torch.randn(m, p, generator=generator, dtype=torch.float64) / m**0.5
    W = torch.randn(L, m, m, generator=generator, dtype=torch.float64) * (2 / m) ** 0.5
    B = torch.randn(d, m, generator=generator, dtype=torch.float64) / d**0.5
    return A, W, B


class LeakyDescent(OpenRun):
    """Forward, backward and update of the trained layers in preallocated buffers.

    The input h_0 = A x has rank p, so W_1 moves only by P A^T with P (m, p): the state keeps
    W_1 A + P A^T A instead of W_1 and saves two of the 3 L - 1 products n x m x m of a step, for
    one of m x p x p. A: (..., m, p), or None where x holds h_0, (n, m), and W_1 itself is kept.
    W: [W_1, .., W_L] to begin with. biases: [b_1, .., b_L], each (..., m), or None. start: the
    weights from which changes are counted, W unless given.
    """

    def __init__(self, A, W, B, slopes, x, biases=None, start=None):
        self.A, self.B, self.slopes, self.biases = A, B, slopes, biases
        self.start = list(W) if start is None else start
        self.fixed = [A, W[0], B, slopes]  # what the run is drawn as, beside its state
        if A is None:
            self.W = [layer.clone() for layer in W]
        else:
            self.W = [W[0], *(layer.clone() for layer in W[1:])]
            self.gramA = A.mT @ A
            self.V0 = W[0] @ A
            self.P = torch.zeros_like(self.V0)
        self.negative = slopes[..., 1, None, None]
        self.jump = slopes[..., 0, None, None] - self.negative
        self.load(x)

    def load(self, x):
        """Take other inputs (..., n, p), a batch of them say; buffers are kept where n stays."""
        self.x = x if self.A is not None else x.expand(*self.B.shape[:-2], *x.shape[-2:])
        shape = (*self.B.shape[:-2], x.shape[-2], self.B.shape[-1])
        if not hasattr(self, "delta") or self.delta.shape != shape:
            self.h = [x.new_empty(shape) for _ in self.W]
            self.slope = [x.new_empty(shape) for _ in self.W]
            self.delta, self.back = x.new_empty(shape), x.new_empty(shape)

    @property
    def state(self):
        found = {"W1": self.W[0]} if self.A is None else {"P": self.P}
        for l, W in enumerate(self.W[1:], 2):
            found[f"W{l}"] = W
        for l, b in enumerate(self.biases or [], 1):
            found[f"b{l}"] = b
        return found

    @property
    def weights(self):
        """[W_1, .., W_L] at present, each (..., m, m)."""
        return [self.W[0] if self.A is None else self.W[0] + self.P @ self.A.mT, *self.W[1:]]

    def at(self, W):
        """A descent of the same net and inputs at weights W = [W_1, .., W_L], which it copies."""
        biases = self.biases and [b.clone() for b in self.biases]
        h0 = self.inputs_of_first_layer()
        return LeakyDescent(None, list(W), self.B, self.slopes, h0, biases, self.start)

    def _first(self):
        """What x is multiplied by: W_1 A, or W_1."""
        return self.W[0] if self.A is None else self.V0 + self.P @ self.gramA

    def forward(self):
        """Outputs (..., n, d) at the current weights."""
        below = self.x
        layers = zip([self._first(), *self.W[1:]], self.h, self.slope, strict=True)
        for l, (W, h, slope) in enumerate(layers):
            torch.matmul(below, W.mT, out=h)
            if self.biases:
                h.add_(self.biases[l].unsqueeze(-2))
            torch.gt(h, 0, out=slope)  # 0/1, then the slopes: a tenth of the time of torch.where
            slope.mul_(self.jump).add_(self.negative)
            below = h.mul_(slope)
        return below @ self.B.mT

    def descend(self, v):
        """Move the weights by -sum_i v_i . df_i/dW; v (..., n, d). To be called after `forward`."""
        delta, back = torch.matmul(v, self.B, out=self.delta), self.back
        for l in range(len(self.W) - 1, 0, -1):
            self._through(l, delta)
            torch.matmul(delta, self.W[l], out=back)
            _accumulate(self.W[l], delta.mT, self.h[l - 1])
            delta, back = back, delta
        self._through(0, delta)
        if self.A is None:
            _accumulate(self.W[0], delta.mT, self.x)
        else:
            self.P -= delta.mT @ self.x

    def _through(self, l, delta):
        """Take delta back through the activations of layer l + 1, and move its biases."""
        delta.mul_(self.slope[l])
        if self.biases:
            self.biases[l].sub_(delta.sum(-2))

    def predict(self, x):
        """Outputs (..., n, d) at other inputs x, as `load` takes them."""
        for l, W in enumerate([self._first(), *self.W[1:]]):
            g = x @ W.mT
            if self.biases:
                g = g + self.biases[l].unsqueeze(-2)
            x = g * (self.negative + self.jump * (g > 0))
        return x @ self.B.mT

    def inputs_of_first_layer(self):
        """h_0, (..., n, m)."""
        return self.x if self.A is None else self.x @ self.A.mT

    def activations(self):
        """[h_0, .., h_L], each (..., n, m), at the current weights. After `forward`."""
        return [self.inputs_of_first_layer(), *self.h]

    def factors(self, v):
        """[(h_{l-1}, z_l)], l = 1..L, as `OpenRun` says; v (..., n, d). After `forward`.

        Source: Guo et al. 2024, eq. (61), whose Back_{i,l} must read Back_{i,l+1}.
        """
        rows = [(v @ self.B) * self.slope[-1]]
        for W, slope in zip(reversed(self.W[1:]), reversed(self.slope[:-1]), strict=True):
            rows.append((rows[-1] @ W) * slope)
        return list(zip(self.activations()[:-1], reversed(rows), strict=True))

    def changes(self):
        """W_l - W_l(0), l = 1..L, as `OpenRun` says."""
        first = 0
        if self.A is not None:
            yield self.P.mT, self.A.mT
            first = 1
        for W, W0 in zip(self.W[first:], self.start[first:], strict=True):
            yield W - W0


def _accumulate(W, left, right):
    (W.addmm_ if W.ndim == 2 else W.baddbmm_)(left, right, alpha=-1)
