"""The two-layer ReLU net of Arora et al. 2019 (Section 3.1), with only the first layer trained."""

import torch

from .. import arguments
from ..errors import ParameterError
from .open_run import OpenRun


class TwoLayerReLU:
    """f(x) = m^{-1/2} sum_r a_r relu(w_r . x), w_r(0) ~ N(0, kappa^2 I_d), a_r ~ unif{-1, 1}.

    d: input dimension; m: width; kappa: standard deviation of the initial weights, one value or a
    list of one per run; seeds: one per run, R in all; runs with the same seed share their draw, up
    to its scale kappa.
    antisym (ours, a control): neurons m/2.. copy the first half's weights with opposite signs a, so
    that f = 0.
    Weights are drawn in float64 on the CPU and then cast, so that every dtype and device sees the
    same draw. Neurons are sorted by the sign of a (their order is irrelevant): an update touches
    two contiguous blocks. There are no biases.
    Source: Arora et al. 2019, Section 3.1 and Appendix A.

    >>> net = TwoLayerReLU(3, 1000, 0.1, seeds=[0, 1])
    >>> net.outputs(torch.eye(3)).shape
    torch.Size([2, 3])
    """

    def __init__(self, d, m, kappa, *, seeds, antisym=False, dtype=torch.float32, device="cpu"):
        seeds = arguments.seeds(seeds)
        self.m, self.runs, self.dtype = m, len(seeds), dtype
        kappas = list(kappa) if isinstance(kappa, list | tuple) else [kappa] * len(seeds)
        if len(kappas) != len(seeds):
            raise ParameterError(
                f"kappa must be one value or one per run, not {len(kappas)} for {len(seeds)} runs"
            )
        pairs = list(zip(kappas, seeds, strict=True))
        unique = sorted(set(pairs))
        drawn = {seed: _draw(d, m, seed, antisym) for seed in set(seeds)}
        W = [(scale * drawn[seed][0]).to(device, dtype) for scale, seed in unique]
        a = [drawn[seed][1].to(device, dtype) for _, seed in unique]
        self.W, self.a = torch.stack(W), torch.stack(a)  # (S, m, d), (S, m)
        self.draw = [unique.index(pair) for pair in pairs]  # run -> which of the S initial weights
        self._basis = None, None  # the last inputs and their row space, for all runs on them

    def outputs(self, x):
        """f(x), shape (R, n), at the initial weights."""
        if x.shape[-1] != self.W.shape[-1]:
            raise ParameterError(f"x has {x.shape[-1]} columns, the net takes {self.W.shape[-1]}")
        if x.dtype != self.dtype:
            raise ParameterError(f"x is {x.dtype} and the net is {self.dtype}: make them equal")
        hidden = torch.relu(self.W @ x.T)
        return (torch.einsum("rm,rmn->rn", self.a, hidden) / self.m**0.5)[self.draw]

    def descent(self, x, run=None):
        """Open one run (int) or all (None) on x (n, d), in whichever exact form costs least.

        The weights move only inside the span of the data, of dimension r: train W Q (m x r) on X Q,
        or, where n < 2 r, the pre-activations W X^T (m x n) themselves, which need one product with
        the Gram matrix X X^T per step.
        """
        if x.shape[-1] != self.W.shape[-1]:
            raise ParameterError(f"x has {x.shape[-1]} columns, the net takes {self.W.shape[-1]}")
        draw = self.draw if run is None else self.draw[run]
        if self._basis[0] is not x:
            self._basis = (x, row_space(x))
        basis = self._basis[1]
        if len(x) < 2 * basis.shape[1]:
            return GramDescent(self.W[draw], self.a[draw], x, run)
        return SpanDescent(self.W[draw], self.a[draw], x, basis, run)


def _draw(d, m, seed, antisym):
    """Weights (m, d) of the scale kappa = 1 and signs (m,)."""
    generator = torch.Generator().manual_seed(seed)
    half = m // 2 if antisym else m
    w = torch.randn(half, d, generator=generator, dtype=torch.float64)
    a = 2.0 * torch.randint(0, 2, (half,), generator=generator, dtype=torch.float64) - 1
    if antisym:
        w, a = torch.cat([w, w]), torch.cat([a, -a])
    order = torch.argsort(a, descending=True, stable=True)
    return w[order], a[order]


def row_space(x):
    """Orthonormal Q (d, r) that spans the rows of x (n, d), up to 8 units in the last place."""
    _, s, vh = torch.linalg.svd(x.double(), full_matrices=False)
    rank = int((s > 8 * torch.finfo(x.dtype).eps * s[0]).sum())
    return vh[:rank].T.to(x.dtype).contiguous()


class _Descent(OpenRun):
    """What both forms share: outputs and ReLU masks from the pre-activations `Z` (..., m, n)."""

    flat = True

    def __init__(self, W, a, x, run):
        self.W0, self.inputs, self.run = W, x, run
        self.a, self.scale = a, W.shape[-2] ** -0.5
        signs = a[..., 0, :] if a.ndim > 1 else a
        self.positive = int(signs.gt(0).sum())
        self.fixed = [W, a]  # what the run is drawn as, beside its state
        self.Z = W.new_empty(*W.shape[:-1], len(x))
        self.initial = self.preactivations() > 0

    def forward(self):
        """Outputs (..., n) at the current weights; leaves the 0/1 mask of active neurons in `Z`."""
        self.preactivations().clamp_(min=0)
        u = (self.a.unsqueeze(-2) @ self.Z).squeeze(-2) * self.scale
        self.Z.sign_()
        return u

    def factors(self, v):
        """[(x / sqrt m, z)] of the only layer, (n, d) and (..., n, m), as `OpenRun` says.

        The tangent kernel is H(k), eq. (5) of Arora et al. 2019. With v = 1, z has entries 1, 0 and
        -1, whose products count the neurons without rounding. After `forward`.
        """
        z = self.Z * self.a.unsqueeze(-1) * v.unsqueeze(-2)
        return [(self.inputs * self.scale, z.mT)]

    def changes(self):
        """W(k) - W(0), up to a rotation of the inputs, as `OpenRun` says."""
        yield self.weight_change()

    def flipped(self):
        """Share of the m x n activation patterns that differ from those at the start, (...)."""
        return (self.preactivations().gt(0) != self.initial).double().mean((-2, -1))

    def near_zero(self):
        """Share of the signs near enough to zero to change, and how many others did, (..., 2).

        With R = max_r |w_r(k) - w_r(0)|: the share of the m x n pairs with |w_r(0) . x_i| <= R,
        and the number of flipped pairs outside them, zero but for rounding.
        Source: the events A_ri of Arora et al. 2019, eq. (15).
        """
        R = self.weight_change().norm(dim=-1).amax(-1)
        near = (self.W0 @ self.inputs.T).abs() <= R[..., None, None]
        stray = (self.preactivations().gt(0) != self.initial) & ~near
        return torch.stack([near.double().mean((-2, -1)), stray.double().sum((-2, -1))], -1)

    def predict(self, x):
        """f(x) at the current weights for new inputs x (n', d), shape (..., n')."""
        hidden = torch.relu(self.W0 @ x.T + self.change_at(x))
        return (self.a.unsqueeze(-2) @ hidden).squeeze(-2) * self.scale


class SpanDescent(_Descent):
    """The weights in coordinates of the data's span, W Q (..., m, r): products are m x n x r."""

    def __init__(self, W, a, x, basis, run=None):
        self.x, self.basis = x @ basis, basis
        self.start = W @ basis
        self.W = self.start.clone()
        super().__init__(W, a, x, run)

    @property
    def state(self):
        return {"W": self.W}

    def change_at(self, x):
        """(W(k) - W(0)) x^T for new inputs x (n', d), shape (..., m, n')."""
        return self.weight_change() @ (x @ self.basis).T

    def preactivations(self):
        """W(k) X^T, (..., m, n), in `self.Z`."""
        return torch.matmul(self.W, self.x.T, out=self.Z)

    def descend(self, v):
        """Move the weights by -sum_i v_i df_i/dW; v (..., n). To be called after `forward`."""
        vx = v.unsqueeze(-1) * self.x * self.scale
        if self.W.ndim == 2:
            p = self.positive
            self.W[:p].addmm_(self.Z[:p], vx, alpha=-1)
            self.W[p:].addmm_(self.Z[p:], vx)
        else:
            self.W.baddbmm_(self.Z.mul_(self.a.unsqueeze(-1)), vx, alpha=-1)

    def weight_change(self):
        """W(k) - W(0) in an orthonormal basis of the data's span, shape (..., m, r)."""
        return self.W - self.start


class GramDescent(_Descent):
    """W(k) X^T = W(0) X^T - m^{-1/2} S X X^T, S (..., m, n): one product m x n x n a step."""

    def __init__(self, W, a, x, run=None):
        self.inner = x @ x.T
        self.start = W @ x.T
        self.S = torch.zeros_like(self.start)
        super().__init__(W, a, x, run)

    @property
    def state(self):
        return {"S": self.S}

    def change_at(self, x):
        """(W(k) - W(0)) x^T for new inputs x (n', d), shape (..., m, n')."""
        return -self.scale * (self.S @ (self.inputs @ x.T))

    def preactivations(self):
        """W(k) X^T, (..., m, n), in `self.Z`."""
        if self.S.ndim == 2:
            return torch.addmm(self.start, self.S, self.inner, alpha=-self.scale, out=self.Z)
        torch.matmul(self.S, self.inner, out=self.Z)
        return torch.sub(self.start, self.Z, alpha=self.scale, out=self.Z)

    def descend(self, v):
        """Move the weights by -sum_i v_i df_i/dW; v (..., n). To be called after `forward`."""
        if self.S.ndim == 2:
            p = self.positive
            self.S[:p].addcmul_(self.Z[:p], v)
            self.S[p:].addcmul_(self.Z[p:], v, value=-1)
        else:
            self.S.addcmul_(self.Z.mul_(self.a.unsqueeze(-1)), v.unsqueeze(-2))

    def weight_change(self):
        """-m^{-1/2} S (X X^T)^{1/2}, (..., m, n): singular values and row norms of W(k) - W(0)."""
        values, vectors = torch.linalg.eigh(self.inner.double())
        root = vectors * values.clamp(min=0).sqrt()
        return -self.scale * (self.S.double() @ root).to(self.S.dtype)
