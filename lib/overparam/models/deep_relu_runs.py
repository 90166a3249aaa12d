"""Training of the deep ReLU net of Allen-Zhu et al. 2019 with W_1 kept in the span of the data, over a run axis."""

import torch

from ..theory.norms import spectral_norm
from .deep_relu import LAST, drawn, gram_root, unit


class ReLURuns:
    """Independent nets `ReLUNet(p, m, d, L, tau=tau, seed=..)`, one per run, for `overparam.training`.

    seeds: one per run; runs with the same seed start alike. kappa: the scale of B, one or one per run (Remark 4.1).
    held_out: further inputs (n', p), at which a run is followed but not trained. For L = 1 the pre-activations
    W_1 h_0 are drawn with their law and no m x m matrix exists, so m may be 10^6 on a laptop; for L > 1 a run is that
    of `ReLUNet` with its seed. Source: Allen-Zhu et al. 2019, Section 2; Appendix C for tau.
    """

    def __init__(self, p, m, d, L, *, seeds, tau=None, kappa=1.0, held_out=None, dtype=torch.float64, device="cpu",
                 draw_on="cpu"):  # fmt: skip
        self.p, self.m, self.d, self.L, self.tau, self.runs = p, m, d, L, tau, len(seeds)
        self.seeds, self.held_out = list(seeds), held_out
        self.kappas = torch.as_tensor(kappa, dtype=torch.float64).expand(self.runs)
        self._options = {"dtype": dtype, "device": device, "draw_on": draw_on}

    def descent(self, x, run=None):
        """Open one run (int) or all (None) for training on x: (n, p), or (R, n, p) for one data set per run."""
        return ReLUDescent(self, run, x if x.ndim == 2 or run is None else x[run], self.held_out)

    def layer(self, shape, variance, stream, run):
        """The draw of a layer for one run, or stacked for all (None)."""
        if run is None:
            return torch.stack([self.layer(shape, variance, stream, k) for k in range(self.runs)])
        return drawn(shape, variance, self.seeds[run], stream, **self._options)


class ReLUDescent:
    """A net in training. W_1 = W_1(0) + P^T H_0 with P (n, m) and the rows h_0 of the data in H_0, so W_1 is not kept.

    That saves two of the 3 L - 1 products with m x m matrices of a step, and all of them for L = 1. The first
    weights of the other layers are drawn again where they are asked for.
    """

    def __init__(self, nets, run, x, held_out=None):
        self.nets, self.run, self.n, m = nets, run, x.shape[-2], nets.m
        every = x if held_out is None else torch.cat([x, held_out.to(x).expand(*x.shape[:-2], *held_out.shape)], -2)
        self.h0 = (every @ nets.layer((m, nets.p), 2 / m, 0, run).mT).clamp_(min=0)  # (..., n + n', m)
        if nets.L == 1:
            self.first = gram_root(self.h0) @ nets.layer((self.h0.shape[-2], m), 2 / m, 1, run)
        else:
            self.first = self.h0 @ self.start(1).mT  # W_1(0) h_0
        self.gram = self.h0 @ self.h0[..., : self.n, :].mT
        self.W = [self.start(l) for l in range(2, nets.L + 1)]
        kappa = (nets.kappas if run is None else nets.kappas[run]).to(x)
        self.B = nets.layer((nets.d, m), 1 / nets.d, LAST, run) * kappa[..., None, None]
        self.P = torch.zeros_like(self.first[..., : self.n, :])
        self._outputs = None  # at all training inputs and the current weights

    @property
    def state(self):
        return {"P": self.P, **{f"W{l}": W for l, W in enumerate(self.W, 2)}}

    def start(self, l):
        """W_l(0), (..., m, m)."""
        return self.nets.layer((self.nets.m, self.nets.m), 2 / self.nets.m, l, self.run)

    def reach(self, l):
        """What W_l is multiplied by: tau in a residual layer, else 1."""
        return self.nets.tau if self._skips(l) else 1.0

    def _skips(self, l):
        return self.nets.tau is not None and l < self.nets.L

    def _product(self, rows=slice(None)):
        """W_1 h_0 at some of the inputs."""
        first, gram = self.first[..., rows, :], self.gram[..., rows, :]
        return (torch.addmm if self.P.ndim == 2 else torch.baddbmm)(first, gram, self.P)

    def _layers(self, product, rows, weights):
        """g = [g_1, .., g_L] and h = [h_0, .., h_L] at some of the inputs; product: W_1 h_0; weights: l -> W_l."""
        h = [self.h0[..., rows, :]]
        g = [torch.add(h[0], product, alpha=self.nets.tau) if self._skips(1) else product]
        for l in range(2, self.nets.L + 1):
            h.append(g[-1].clamp(min=0))
            step = h[-1] @ weights(l).mT
            g.append(torch.add(h[-1], step, alpha=self.nets.tau) if self._skips(l) else step)
        return g, [*h, g[-1].clamp(min=0)]

    def _sensitivities(self, g, v, weights):
        delta, rows = v @ self.B, []
        for l in range(self.nets.L, 0, -1):
            rows.append(_masked(delta, g[l - 1]))
            if l > 1:
                step = rows[-1] @ weights(l)
                delta = torch.add(rows[-1], step, alpha=self.nets.tau) if self._skips(l) else step
        return rows[::-1]

    def _now(self, l):
        return self.W[l - 2]

    def forward(self, rows=None):
        """Outputs (..., n, d), or of some of the training inputs: `rows`, a list or tensor of their numbers."""
        if rows is None and self._outputs is not None:
            return self._outputs
        self.rows = slice(self.n) if rows is None else rows
        self.g, self.h = self._layers(self._product(self.rows), self.rows, self._now)
        outputs = self.h[-1] @ self.B.mT
        self._outputs = outputs if rows is None else None
        return outputs

    def descend(self, v):
        """Move the weights by -sum_i v_i . dy_i/dW over the rows of the last `forward`; v (..., n, d)."""
        delta, self._outputs = v @ self.B, None
        for l in range(self.nets.L, 0, -1):
            p = _masked(delta, self.g[l - 1])
            if l == 1:
                if isinstance(self.rows, slice):
                    self.P.sub_(p, alpha=self.reach(1))
                else:
                    self.P[..., self.rows, :] -= p * self.reach(1)
                return
            W, step = self.W[l - 2], p @ self.W[l - 2]
            delta = torch.add(p, step, alpha=self.nets.tau) if self._skips(l) else step
            (W.addmm_ if W.ndim == 2 else W.baddbmm_)(p.mT, self.h[l - 1], alpha=-self.reach(l))

    def everywhere(self):
        """Outputs (..., n + n', d) at the training and the held-out inputs."""
        return self._layers(self._product(), slice(None), self._now)[1][-1] @ self.B.mT

    def movement(self):
        """||W_l - W_l(0)|| of every layer, (..., L, 2): Frobenius, and spectral norm by 30 power iterations."""
        squares = _product_squares(self.P.mT @ gram_root(self.h0[..., : self.n, :]))
        norms = [torch.stack([squares.sum(-1), squares[..., -1]], -1).sqrt()]
        for l, W in enumerate(self.W, 2):
            change = W - self.start(l)
            norms.append(torch.stack([change.norm(dim=(-2, -1)), spectral_norm(change)], -1).double())
        return torch.stack(norms, -2)

    def flips(self):
        """Shares of the patterns that differ from the start, at the training inputs: (..., L)."""
        rows = slice(self.n)
        now, _ = self._layers(self._product(rows), rows, self._now)
        before, _ = self._layers(self.first[..., rows, :], rows, self.start)
        pairs = zip(now, before, strict=True)
        return torch.stack([((a >= 0) != (b >= 0)).double().mean((-2, -1)) for a, b in pairs], -1)

    def gradient_norms(self, loss):
        """||dF/dW_l|| of every layer for the loss F, (..., L, 2): Frobenius, spectral. It makes no m x m gradient."""
        _, v = loss.select(self.run)(self.forward())
        rows, norms = self._sensitivities(self.g, v, self._now), []
        for l, (p, below) in enumerate(zip(rows, self.h, strict=False), 1):
            squares = _product_squares(p.mT @ gram_root(below), self.reach(l))
            norms.append(torch.stack([squares.sum(-1), squares[..., -1]], -1).sqrt())
        return torch.stack(norms, -2)

    def ntk(self, j=0):
        """How far the net is from its tangent model at all inputs, N = n + n', (..., N, 4).

        y_j - y_j(0); y_j^ntk, the derivative of y_j at the start along W - W(0); |dy_j - dy_j(0)|_F / |dy_j(0)|_F of
        the gradients by W_1..W_L; and max_k |K - K(0)|_ik / sqrt(K(0)_ii K(0)_kk) of the kernels.
        Source: Allen-Zhu et al. 2019, Theorem 5.
        """
        v = unit(self.h0, self.nets.d, j)
        g, h = self._layers(self._product(), slice(None), self._now)
        g0, a = self._layers(self.first, slice(None), self.start)
        p, p0 = self._sensitivities(g, v, self._now), self._sensitivities(g0, v, self.start)
        change = squared = kernel = kernel0 = 0
        for l in range(1, self.nets.L + 1):
            step = self.gram @ self.P if l == 1 else a[l - 1] @ (self.W[l - 2] - self.start(l)).mT
            change = change + (p0[l - 1] * step).sum(-1) * self.reach(l)
            squared = squared + _rank_one_gap(p[l - 1], h[l - 1], p0[l - 1], a[l - 1]) * self.reach(l) ** 2
            kernel = kernel + _kernel(p[l - 1], h[l - 1]) * self.reach(l) ** 2
            kernel0 = kernel0 + _kernel(p0[l - 1], a[l - 1]) * self.reach(l) ** 2
        sizes = kernel0.diagonal(dim1=-2, dim2=-1).sqrt()
        moved = ((h[-1] - a[-1]) @ self.B.mT)[..., j]
        gap = ((kernel - kernel0).abs() / (sizes.unsqueeze(-1) * sizes.unsqueeze(-2))).amax(-1)
        return torch.stack([moved, change, squared.clamp(min=0).sqrt() / sizes, gap], -1)


def _masked(delta, g):
    """D delta with D = diag 1(g >= 0), without the pass over booleans that takes most of the time."""
    return torch.ge(g, 0, out=torch.empty_like(g)).mul_(delta)


def _product_squares(product, scale=1.0):
    """The squared singular values (..., n) of a matrix (..., m, n), in float64, ascending."""
    product = product.double()
    return torch.linalg.eigvalsh(product.mT @ product).clamp(min=0) * scale**2


def _kernel(p, h):
    return (p @ p.mT) * (h @ h.mT)


def _rank_one_gap(p, h, q, a):
    """|p h^T - q a^T|_F^2 of each row, with the digits of p - q and h - a."""
    dp, dh = p - q, h - a
    cross = 2 * (p * dp).sum(-1) * (dh * a).sum(-1)
    return p.square().sum(-1) * dh.square().sum(-1) + dp.square().sum(-1) * a.square().sum(-1) + cross
