"""The deep ReLU net of Allen-Zhu et al. 2019, whose first and last layer stay fixed, and its
residual form.
"""

import copy
from functools import partial

import torch

from ..norms import product_norms, spectral_norm, squared_row_differences

LAST = 1_000_002  # the stream of B, whatever the depth


class ReLUNet:
    """h_0 = relu(A x), g_l = W_l h_{l-1}, h_l = relu(g_l) for l = 1..L, y = B h_L; W_1..W_L are
    what is changed.

    Entries of A and W_l ~ N(0, 2/m), of B ~ N(0, 1/d): variances, so outputs are of order
    sqrt(m/d).
    p, m, d, L: input dimension, width, output dimension, depth. tau: None, or the weight of the
    residual form g_l = h_{l-1} + tau W_l h_{l-1}, l < L. Every layer has a stream of `seed` of its
    own, so that nets of different depth share layers; a list of seeds gives every layer a leading
    axis. place: dtype, device and draw_on of `drawn`. `W`: a list [W_1, .., W_L]; with keep=False
    they are drawn at each use instead, and take no memory.
    Source: Allen-Zhu et al. 2019, Section 2; Appendix C.

    >>> net = ReLUNet(3, 100, 2, 4, seed=0)
    >>> net.outputs(torch.eye(3, dtype=torch.float64)).shape
    torch.Size([3, 2])
    """

    def __init__(self, p, m, d, L, *, tau=None, seed, keep=True, **place):
        self.m, self.d, self.L, self.tau, self.last = m, d, L, tau, L
        self.draw = partial(drawn, seed=seed, **place)
        self.A = self.draw((m, p), 2 / m, stream=0)
        self.W = _Redrawn(self.draw, m, L)
        if keep:
            self.W = list(self.W)
        self.B = self.draw((d, m), 1 / d, stream=LAST)

    def with_weights(self, W):
        """The same net with other weights [W_1, .., W_L]."""
        net = copy.copy(self)
        net.W = list(W)
        return net

    def trunk(self):
        """The net below layer L, in the residual form all that adds its input.

        Source: Appendix C.
        """
        net = self.with_weights(self.W[:-1])
        net.L = self.L - 1
        return net

    def skips(self, l):
        """Whether layer l, of 1..L, adds its input to tau W_l h."""
        return self.tau is not None and l < self.last

    def reach(self, l):
        """What W_l is multiplied by: tau in a residual layer, else 1."""
        return self.tau if self.skips(l) else 1.0

    def joined(self, l, h, product):
        """h + tau product in a residual layer, else the product alone: g_l of W_l h, and so for its
        transpose.
        """
        return torch.add(h, product, alpha=self.tau) if self.skips(l) else product

    def apply(self, l, h):
        """g_l of h = h_{l-1}, (..., m)."""
        return self.joined(l, h, h @ self.W[l - 1].mT)

    def apply_transposed(self, l, p):
        """The transpose of `apply`, on p (..., m)."""
        return self.joined(l, p, p @ self.W[l - 1])

    def forward(self, x):
        """Pre-activations [g_1, .., g_L] and activations [h_0, .., h_L], each (n, m), at inputs x
        (n, p).
        """
        return self.upward((x @ self.A.mT).clamp_(min=0))

    def upward(self, h0, g1=None, change=None):
        """g and h as `forward` gives them, from h_0 (..., n, m). g1: g_1, where it is known and W_1
        need not be.

        change(l, h, g): W'_l h of a changed layer, or None where it is not changed, given g = g_l
        of W_l alone.
        """
        g, h = [], [h0]
        for l in range(1, self.L + 1):
            pre = g1 if l == 1 and g1 is not None else self.apply(l, h[-1])
            step = change(l, h[-1], pre) if change else None
            g.append(pre if step is None else torch.add(pre, step, alpha=self.reach(l)))
            h.append(g[-1].clamp(min=0))
        return g, h

    def outputs(self, x):
        """y (n, d) at inputs x (n, p)."""
        return self.forward(x)[1][-1] @ self.B.mT

    def sensitivities(self, g, v):
        """[p_1, .., p_L], each (n, m): p_{i,l} = D_{i,l} Back_{i,l+1}^T v_i, for v (n, d) and the
        pre-activations g.

        The gradient of v_i . y_i by W_l is reach(l) p_{i,l} h_{i,l-1}^T. Source: Allen-Zhu et al.
        2019, Fact 2.6.
        """
        return self.downward(g, _masked(v @ self.B, g[-1]))

    def downward(self, g, q, change=None):
        """[p_1, .., p_L] from p_L = q (..., n, m): p_l = D_l (W_{l+1}^T p_{l+1}).

        change(l, p): W'_l^T p of a changed layer, or None where it is not changed.
        """
        rows = [q]
        for l in range(self.L, 1, -1):
            step = change(l, rows[-1]) if change else None
            back = self.apply_transposed(l, rows[-1])
            rows.append(
                _masked(
                    back if step is None else torch.add(back, step, alpha=self.reach(l)), g[l - 2]
                )
            )
        return rows[::-1]

    def back(self, g, l):
        """Back_{i,l} = B D_{i,L} W_L .. D_{i,l} W_l, (n, d, m), for l = 1..L + 1, at the
        pre-activations g.

        In the residual form the factors are those of `apply`. Source: Allen-Zhu et al. 2019, Fact
        2.6.
        """
        rows = self.B.expand(len(g[0]), *self.B.shape)
        for k in range(self.L, l - 1, -1):
            rows = self.apply_transposed(k, rows * (g[k - 1] >= 0).unsqueeze(-2))
        return rows

    def gradients(self, x, v):
        """[sum_i v_i . dy_i/dW_l], a list of L matrices (m, m); x: (n, p), v: (n, d), the loss
        vectors for dF/dW_l.
        """
        g, h = self.forward(x)
        rows = self.sensitivities(g, v)
        return [
            p.mT @ below * self.reach(l)
            for l, (p, below) in enumerate(zip(rows, h, strict=False), 1)
        ]

    def grams(self, x, j=0):
        """<dy_j(x_i)/dW_l, dy_j(x_k)/dW_l> of every layer, (L, n, n); their sum is the tangent
        kernel of output j.
        """
        g, h = self.forward(x)
        return torch.stack(self._grams(self.sensitivities(g, unit(x, self.d, j)), h))

    def _grams(self, rows, h):
        parts = enumerate(zip(rows, h, strict=False), 1)
        return [(p @ p.mT) * (below @ below.mT) * self.reach(l) ** 2 for l, (p, below) in parts]


class WideLayer(ReLUNet):
    """The net of depth L = 1 seen at given inputs alone: W_1 h_0 is drawn with its law, and there
    is no m x m matrix.

    So m may be 10^8. Each call of `forward` gives the same draw for the same inputs, up to an
    orthogonal change of variables; what depends on W_1 itself (`gradients`, `back` at l = 1,
    `outputs` at other inputs) does not exist. Source: Allen-Zhu et al. 2019, Section 2; the
    reduction is ours.
    """

    def __init__(self, m, d=1, *, seed, **place):
        super().__init__(0, m, d, 1, seed=seed, keep=False, **place)

    def forward(self, x):
        """[g_1] and [h_0, h_1], each (n, m), at inputs x (n, p)."""
        shape, variance = (len(x), self.m), 2 / self.m
        h0 = (gram_root(x) @ self.draw(shape, variance, stream=0)).clamp_(min=0)
        return self.upward(h0, gram_root(h0) @ self.draw(shape, variance, stream=1))


class ReLURuns:
    """Independent nets `ReLUNet(p, m, d, L, tau=tau, seed=..)`, one per run, for
    `overparam.training`.

    seeds: one per run; runs with the same seed start alike. kappa: the scale of B, one or one per
    run (Remark 4.1). held_out: further inputs (n', p), at which a run is followed but not trained.
    For L = 1 the pre-activations W_1 h_0 are drawn with their law and no m x m matrix exists, so m
    may be 10^6 on a laptop; for L > 1 a run is that of `ReLUNet` with its seed. place: as there.
    Source: Allen-Zhu et al. 2019, Section 2; Appendix C for tau.
    """

    def __init__(self, p, m, d, L, *, seeds, tau=None, kappa=1.0, held_out=None, **place):
        self.m, self.L, self.runs, self.held_out = m, L, len(seeds), held_out
        self.kappas = torch.as_tensor(kappa, dtype=torch.float64).expand(self.runs)
        self.seeds = list(seeds)
        self.net = lambda seed: ReLUNet(p, m, d, L, tau=tau, seed=seed, keep=False, **place)

    def descent(self, x, run=None):
        """Open one run (int) or all (None) for training on x: (n, p), or (R, n, p) for one data set
        per run.
        """
        return ReLUDescent(self, run, x if x.ndim == 2 or run is None else x[run])


class ReLUDescent:
    """A net in training. W_1 = W_1(0) + P^T H_0 with P (n, m) and the rows h_0 of the data in H_0,
    so W_1 is not kept.

    That saves two of the 3 L - 1 products with m x m matrices of a step, and all of them for L = 1.
    The first weights of the other layers are drawn again where they are asked for.
    """

    def __init__(self, nets, run, x):
        self.run, self.n, m, every, held_out = run, x.shape[-2], nets.m, x, nets.held_out
        start = nets.net(nets.seeds if run is None else nets.seeds[run])
        start.B = (
            start.B * (nets.kappas if run is None else nets.kappas[run]).to(x)[..., None, None]
        )
        if held_out is not None:
            every = torch.cat([x, held_out.to(x).expand(*x.shape[:-2], *held_out.shape)], -2)
        self.h0 = (every @ start.A.mT).clamp_(min=0)  # (..., n + n', m)
        if start.L == 1:
            self.first = gram_root(self.h0) @ start.draw((every.shape[-2], m), 2 / m, stream=1)
        else:
            self.first = self.h0 @ start.W[0].mT  # W_1(0) h_0
        self.gram = self.h0 @ self.h0[..., : self.n, :].mT
        self.P = torch.zeros_like(self.first[..., : self.n, :])
        self.W = [start.W[l] for l in range(1, start.L)]  # W_2, .., W_L
        self.start, self.net = start, start.with_weights([None, *self.W])
        self.fixed = [
            start.A,
            start.B,
            start.tau,
            held_out,
        ]  # what the run is drawn as, beside its state
        self._outputs = None  # at all training inputs and the current weights

    @property
    def state(self):
        return {"P": self.P, **{f"W{l}": W for l, W in enumerate(self.W, 2)}}

    def _layers(self, rows=slice(None), start=False):
        """g and h at some of the inputs, with the weights of now or of the start."""
        h0, product, gram = (t[..., rows, :] for t in (self.h0, self.first, self.gram))
        if start:
            return self.start.upward(h0, self.start.joined(1, h0, product))
        product = (torch.addmm if gram.ndim == 2 else torch.baddbmm)(product, gram, self.P)
        return self.net.upward(h0, self.net.joined(1, h0, product))

    def forward(self, rows=None):
        """Outputs (..., n, d), or of some of the training inputs: `rows`, a list or tensor of their
        numbers.
        """
        if rows is None and self._outputs is not None:
            return self._outputs
        self.rows = slice(self.n) if rows is None else rows
        self.g, self.h = self._layers(self.rows)
        outputs = self.h[-1] @ self.net.B.mT
        self._outputs = outputs if rows is None else None
        return outputs

    def descend(self, v):
        """Move the weights by -sum_i v_i . dy_i/dW over the rows of the last `forward`; v (..., n,
        d).
        """
        first, *rest = self.net.sensitivities(self.g, v)
        if isinstance(self.rows, slice):
            self.P.sub_(first, alpha=self.net.reach(1))
        else:
            self.P[..., self.rows, :] -= first * self.net.reach(1)
        for l, (W, p) in enumerate(zip(self.W, rest, strict=True), 2):
            (W.addmm_ if W.ndim == 2 else W.baddbmm_)(p.mT, self.h[l - 1], alpha=-self.net.reach(l))
        self._outputs = None

    def everywhere(self):
        """Outputs (..., n + n', d) at the training and the held-out inputs."""
        return self._layers()[1][-1] @ self.net.B.mT

    def movement(self):
        """||W_l - W_l(0)|| of every layer, (..., L, 2): Frobenius, and spectral norm by 30 power
        iterations.
        """
        norms = [product_norms(self.h0[..., : self.n, :], self.P)]
        for l, W in enumerate(self.W, 1):
            change = W - self.start.W[l]
            norms.append(torch.stack([change.norm(dim=(-2, -1)), spectral_norm(change)], -1))
        return torch.stack(norms, -2).double()

    def flips(self):
        """Shares of the patterns that differ from the start, at the training inputs: (..., L)."""
        pairs = zip(
            self._layers(slice(self.n))[0], self._layers(slice(self.n), start=True)[0], strict=True
        )
        return torch.stack([((a >= 0) != (b >= 0)).double().mean((-2, -1)) for a, b in pairs], -1)

    def gradient_norms(self, loss):
        """||dF/dW_l|| of every layer for the loss F, (..., L, 2): Frobenius, spectral. It makes no
        m x m gradient.
        """
        _, v = loss.select(self.run)(self.forward())
        rows = enumerate(zip(self.net.sensitivities(self.g, v), self.h, strict=False), 1)
        return torch.stack(
            [product_norms(below, p) * self.net.reach(l) for l, (p, below) in rows], -2
        )

    def ntk(self, j=0):
        """How far the net is from its tangent model at all inputs, N = n + n', (..., N, 4).

        y_j - y_j(0); y_j^ntk, the derivative of y_j at the start along W - W(0); |dy_j - dy_j(0)|_F
        / |dy_j(0)|_F of the gradients by W_1..W_L; and max_k |K - K(0)|_ik / sqrt(K(0)_ii K(0)_kk)
        of the kernels.
        Source: Allen-Zhu et al. 2019, Theorem 5.
        """
        net, v = self.net, unit(self.h0, self.net.d, j)
        (g, h), (g0, a) = self._layers(), self._layers(start=True)
        p, p0 = net.sensitivities(g, v), self.start.sensitivities(g0, v)
        linear = squared = 0
        for l in range(1, net.L + 1):
            moved = (
                self.gram @ self.P if l == 1 else a[l - 1] @ (net.W[l - 1] - self.start.W[l - 1]).mT
            )
            linear = linear + (p0[l - 1] * moved).sum(-1) * net.reach(l)
            gap = squared_row_differences((p[l - 1], h[l - 1]), (p0[l - 1], a[l - 1]))
            squared = squared + gap * net.reach(l) ** 2
        kernel, kernel0 = sum(net._grams(p, h)), sum(net._grams(p0, a))
        sizes = kernel0.diagonal(dim1=-2, dim2=-1).sqrt()
        moved = ((h[-1] - a[-1]) @ net.B.mT)[..., j]
        gap = ((kernel - kernel0).abs() / (sizes.unsqueeze(-1) * sizes.unsqueeze(-2))).amax(-1)
        return torch.stack([moved, linear, squared.sqrt() / sizes, gap], -1)


class _Redrawn:
    """[W_1, .., W_L], each drawn when it is asked for."""

    def __init__(self, draw, m, L):
        self.draw, self.m, self.L = draw, m, L

    def __getitem__(self, l):
        if l >= self.L:
            raise IndexError(l)
        return self.draw((self.m, self.m), 2 / self.m, stream=l + 1)


def drawn(shape, variance, *, seed, stream, dtype=torch.float64, device="cpu", draw_on="cpu"):
    """Normal entries of mean 0, the same for the same seed and stream; stacked for a list of seeds.

    draw_on: "cpu", in float64 and then cast, or "device", which is faster on a GPU.
    """
    if isinstance(seed, list):
        options = {"stream": stream, "dtype": dtype, "device": device, "draw_on": draw_on}
        return torch.stack([drawn(shape, variance, seed=one, **options) for one in seed])
    device = torch.device(device)
    place = device if draw_on == "device" and device.type == "cuda" else torch.device("cpu")
    generator = torch.Generator(place).manual_seed(seed * 1_000_003 + stream)
    kind = torch.float64 if place.type == "cpu" else dtype
    return (
        torch.randn(*shape, generator=generator, dtype=kind, device=place)
        .mul_(variance**0.5)
        .to(device, dtype)
    )


def gram_root(h):
    """A root C, (..., n, n), of h h^T = C C^T, which may be singular; h: (..., n, m)."""
    values, vectors = torch.linalg.eigh(h.double() @ h.double().mT)
    return (vectors * values.clamp(min=0).sqrt().unsqueeze(-2)).to(h)


def unit(x, d, j=0):
    """The loss vectors e_j, (n, d), one for each row of x."""
    v = x.new_zeros(*x.shape[:-1], d)
    v[..., j] = 1
    return v


def _masked(delta, g):
    """D delta with D = diag 1(g >= 0), without the pass over booleans that takes most of the
    time.
    """
    return torch.ge(g, 0, out=torch.empty_like(g)).mul_(delta)
