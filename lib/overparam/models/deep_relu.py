"""The deep ReLU net of Allen-Zhu et al. 2019, whose first and last layer stay fixed.

With `tau` it is the residual form of their Appendix C.
"""

import copy
from functools import partial

import torch

from .. import arguments
from ..errors import ParameterError
from ..norms import squared_row_differences
from .open_run import OpenRun

LAST = 1_000_002  # the stream of B, whatever the depth


class ReLUNet:
    """h_0 = relu(A x), g_l = W_l h_{l-1}, h_l = relu(g_l) for l = 1..L, y = B h_L.

    W_1..W_L are what is changed. Entries of A and W_l ~ N(0, 2/m), of B ~ N(0, 1/d): variances, so
    outputs are of order sqrt(m/d).
    p, m, d, L: input dimension, width, output dimension, depth. tau: None, or the weight of the
    residual form g_l = h_{l-1} + tau W_l h_{l-1}, l < L. Every layer has a stream of `seed` of its
    own, so that nets of different depth share layers; a list of seeds gives every layer a leading
    axis. place: dtype, device and draw_on of `drawn`.
    `W`: a list [W_1, .., W_L]; with keep=False they are drawn at each use, and take no memory.
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
        """h + tau product in a residual layer l, else the product alone: g_l of W_l h."""
        return torch.add(h, product, alpha=self.tau) if self.skips(l) else product

    def apply(self, l, h):
        """g_l of h = h_{l-1}, (..., m)."""
        return self.joined(l, h, h @ self.W[l - 1].mT)

    def apply_transposed(self, l, p):
        """The transpose of `apply`, on p (..., m)."""
        return self.joined(l, p, p @ self.W[l - 1])

    def forward(self, x):
        """Pre-activations [g_1, .., g_L], activations [h_0, .., h_L], each (n, m); x: (n, p)."""
        if x.shape[-1] != self.A.shape[-1]:
            raise ParameterError(f"x has {x.shape[-1]} columns, the net takes {self.A.shape[-1]}")
        if x.dtype != self.A.dtype:
            raise ParameterError(f"x is {x.dtype} and the net is {self.A.dtype}: make them equal")
        return self.upward((x @ self.A.mT).clamp_(min=0))

    def upward(self, h0, g1=None, change=None):
        """g and h as `forward` gives them, from h_0 (..., n, m).

        g1: g_1, where it is known and W_1 need not be. change(l, h, g): W'_l h of a changed layer,
        or None where it is not changed, given g = g_l of W_l alone.
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

    def downward(self, g, top, change=None):
        """[z_1, .., z_L], each (..., n, m): the gradient of top . g_L by W_l is z_l h_{l-1}^T.

        z_l = reach(l) p_l with p_L = top (..., n, m) and p_l = D_l (W_{l+1}^T p_{l+1}).
        change(l, p): W'_l^T p of a changed layer, or None where it is not changed.
        """
        p, rows = top, [self._reached(self.L, top)]
        for l in range(self.L, 1, -1):
            step = change(l, p) if change else None
            back = self.apply_transposed(l, p)
            if step is not None:
                back = torch.add(back, step, alpha=self.reach(l))
            p = masked(back, g[l - 2])
            rows.append(self._reached(l - 1, p))
        return rows[::-1]

    def _reached(self, l, p):
        return p * self.tau if self.skips(l) else p

    def factors(self, x, v, forward=None):
        """[(h_{l-1}, z_l)], l = 1..L, each (n, m): v_i . dy_i/dW_l = z_{l,i} h_{l-1,i}^T.

        v: (n, d); forward: what `forward(x)` gave, if known.
        Source: Allen-Zhu et al. 2019, Fact 2.6.
        """
        g, h = forward or self.forward(x)
        return list(zip(h[:-1], self.downward(g, masked(v @ self.B, g[-1])), strict=True))

    def back(self, g, l):
        """Back_{i,l} = B D_{i,L} W_L .. D_{i,l} W_l, (n, d, m), for l = 1..L + 1, given g.

        In the residual form the factors are those of `apply`.
        Source: Allen-Zhu et al. 2019, Fact 2.6.
        """
        rows = self.B.expand(len(g[0]), *self.B.shape)
        for k in range(self.L, l - 1, -1):
            rows = self.apply_transposed(k, rows * (g[k - 1] >= 0).unsqueeze(-2))
        return rows


class WideLayer(ReLUNet):
    """The net of depth L = 1 seen at given inputs alone: W_1 h_0 is drawn with its law.

    There is no m x m matrix, so m may be 10^8. Each call of `forward` gives the same draw for the
    same inputs, up to an orthogonal change of variables; what depends on W_1 itself (`back` at
    l = 1, `outputs` at other inputs) does not exist.
    Source: Allen-Zhu et al. 2019, Section 2; the reduction is ours.
    """

    def __init__(self, m, d=1, *, seed, **place):
        super().__init__(0, m, d, 1, seed=seed, keep=False, **place)

    def forward(self, x):
        """[g_1] and [h_0, h_1], each (n, m), at inputs x (n, p)."""
        shape, variance = (len(x), self.m), 2 / self.m
        h0 = (gram_root(x) @ self.draw(shape, variance, stream=0)).clamp_(min=0)
        return self.upward(h0, gram_root(h0) @ self.draw(shape, variance, stream=1))


class ReLURuns:
    """Independent nets `ReLUNet(p, m, d, L, tau=tau, seed=..)`, one per run, for training.

    seeds: one per run; runs with the same seed start alike. kappa: the scale of B, one or one per
    run (Remark 4.1). held_out: further inputs (n', p), at which a run is followed but not trained.
    For L = 1 the pre-activations W_1 h_0 are drawn with their law and no m x m matrix exists, so m
    may be 10^6 on a laptop; for L > 1 a run is that of `ReLUNet` with its seed. place: as there.
    Source: Allen-Zhu et al. 2019, Section 2; Appendix C for tau.
    """

    def __init__(self, p, m, d, L, *, seeds, tau=None, kappa=1.0, held_out=None, **place):
        self.seeds = arguments.seeds(seeds)
        self.m, self.L, self.runs, self.held_out = m, L, len(self.seeds), held_out
        self.kappas = torch.as_tensor(kappa, dtype=torch.float64).expand(self.runs)
        self.net = partial(ReLUNet, p, m, d, L, tau=tau, keep=False, **place)

    def descent(self, x, run=None):
        """Open one run (int) or all (None) on x: (n, p), or (R, n, p), one data set per run."""
        return ReLUDescent(self, run, x if x.ndim == 2 or run is None else x[run])


class ReLUDescent(OpenRun):
    """A net in training. W_1 = W_1(0) + P^T H_0, P (n, m), the rows h_0 in H_0: W_1 is not kept.

    That saves two of the 3 L - 1 products with m x m matrices of a step, and all of them for L = 1.
    The first weights of the other layers are drawn again where they are asked for.
    """

    def __init__(self, nets, run, x):
        self.run, self.n, m = run, x.shape[-2], nets.m
        start = nets.net(seed=nets.seeds if run is None else nets.seeds[run])
        if x.shape[-1] != start.A.shape[-1]:
            raise ParameterError(f"x has {x.shape[-1]} columns, the net takes {start.A.shape[-1]}")
        if x.dtype != start.A.dtype:
            raise ParameterError(f"x is {x.dtype} and the net is {start.A.dtype}: make them equal")
        kappa = nets.kappas if run is None else nets.kappas[run]
        start.B = start.B * kappa.to(x)[..., None, None]
        inputs, held_out = x, nets.held_out
        if held_out is not None:
            others = held_out.to(x).expand(*x.shape[:-2], *held_out.shape)
            inputs = torch.cat([x, others], -2)
        self.h0 = (inputs @ start.A.mT).clamp_(min=0)  # (..., n + n', m)
        if start.L == 1:
            draw = start.draw((inputs.shape[-2], m), 2 / m, stream=1)
            self.first = gram_root(self.h0) @ draw
        else:
            self.first = self.h0 @ start.W[0].mT  # W_1(0) h_0
        self.gram = self.h0 @ self.h0[..., : self.n, :].mT
        self.P = torch.zeros_like(self.first[..., : self.n, :])
        self.W = [start.W[l] for l in range(1, start.L)]  # W_2, .., W_L
        self.start, self.net = start, start.with_weights([None, *self.W])
        self.fixed = [start.A, start.B, start.tau, held_out]  # what the run is drawn as
        self._outputs = None  # at all training inputs and the current weights

    @property
    def state(self):
        found = {"P": self.P}
        for l, W in enumerate(self.W, 2):
            found[f"W{l}"] = W
        return found

    def _layers(self, rows=slice(None)):
        """g and h at some of the inputs, with the weights of now."""
        h0, product, gram = (t[..., rows, :] for t in (self.h0, self.first, self.gram))
        add = torch.addmm if gram.ndim == 2 else torch.baddbmm
        product = add(product, gram, self.P)
        return self.net.upward(h0, self.net.joined(1, h0, product))

    def _layers_at_start(self, rows=slice(None)):
        """g and h at some of the inputs, with the weights of the start."""
        h0, product = self.h0[..., rows, :], self.first[..., rows, :]
        return self.start.upward(h0, self.start.joined(1, h0, product))

    def forward(self, rows=None):
        """Outputs (..., n, d), or of some of the training inputs: `rows`, their numbers."""
        if rows is None and self._outputs is not None:
            return self._outputs
        self.rows = slice(self.n) if rows is None else rows
        self.g, self.h = self._layers(self.rows)
        outputs = self.h[-1] @ self.net.B.mT
        self._outputs = outputs if rows is None else None
        return outputs

    def factors(self, v):
        """[(h_{l-1}, z_l)], l = 1..L, as `OpenRun` says, of the rows of the last `forward`."""
        return self.net.factors(None, v, (self.g, self.h))

    def descend(self, v):
        """Move W by -sum_i v_i . dy_i/dW over the rows of the last `forward`; v (..., n, d)."""
        (_, first), *rest = self.factors(v)
        if isinstance(self.rows, slice):
            self.P.sub_(first)
        else:
            self.P[..., self.rows, :] -= first
        for W, (h, z) in zip(self.W, rest, strict=True):
            (W.addmm_ if W.ndim == 2 else W.baddbmm_)(z.mT, h, alpha=-1)
        self._outputs = None

    def changes(self):
        """W_l - W_l(0), l = 1..L, as `OpenRun` says."""
        yield self.P, self.h0[..., : self.n, :]
        for l, W in enumerate(self.W, 1):
            yield W - self.start.W[l]

    def everywhere(self):
        """Outputs (..., n + n', d) at the training and the held-out inputs."""
        return self._layers()[1][-1] @ self.net.B.mT

    def flips(self):
        """Shares of the patterns that differ from the start, at the training inputs: (..., L)."""
        rows = slice(self.n)
        shares = []
        for now, start in zip(self._layers(rows)[0], self._layers_at_start(rows)[0], strict=True):
            shares.append(((now >= 0) != (start >= 0)).double().mean((-2, -1)))
        return torch.stack(shares, -1)

    def ntk(self, j=0):
        """How far the net is from its tangent model at all inputs, N = n + n', (..., N, 4).

        y_j - y_j(0); y_j^ntk, the derivative of y_j at the start along W - W(0);
        |dy_j - dy_j(0)|_F / |dy_j(0)|_F of the gradients by W_1..W_L; and
        max_k |K - K(0)|_ik / sqrt(K(0)_ii K(0)_kk) of the tangent kernels.
        Source: Allen-Zhu et al. 2019, Theorem 5.
        """
        v = unit(self.h0, self.net.d, j)
        now, start = self._layers(), self._layers_at_start()
        linear = squared = kernel = kernel0 = 0
        layers = zip(
            self.net.factors(None, v, now), self.start.factors(None, v, start), strict=True
        )
        for l, ((h, z), (h0, z0)) in enumerate(layers, 1):
            if l == 1:
                moved = self.gram @ self.P  # (W_1 - W_1(0)) h_0
            else:
                moved = h0 @ (self.net.W[l - 1] - self.start.W[l - 1]).mT
            linear = linear + (z0 * moved).sum(-1)
            squared = squared + squared_row_differences((z, h), (z0, h0))
            kernel = kernel + (z @ z.mT) * (h @ h.mT)
            kernel0 = kernel0 + (z0 @ z0.mT) * (h0 @ h0.mT)
        sizes = kernel0.diagonal(dim1=-2, dim2=-1).sqrt()
        moved = ((now[1][-1] - start[1][-1]) @ self.net.B.mT)[..., j]
        gap = (kernel - kernel0).abs() / (sizes.unsqueeze(-1) * sizes.unsqueeze(-2))
        return torch.stack([moved, linear, squared.sqrt() / sizes, gap.amax(-1)], -1)


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
    on_device = draw_on == "device" and device.type == "cuda"
    place = device if on_device else torch.device("cpu")
    generator = torch.Generator(place).manual_seed(seed * 1_000_003 + stream)
    kind = dtype if on_device else torch.float64
    entries = torch.randn(*shape, generator=generator, dtype=kind, device=place)
    return entries.mul_(variance**0.5).to(device, dtype)


def gram_root(h):
    """A root C, (..., n, n), of h h^T = C C^T, which may be singular; h: (..., n, m)."""
    values, vectors = torch.linalg.eigh(h.double() @ h.double().mT)
    return (vectors * values.clamp(min=0).sqrt().unsqueeze(-2)).to(h)


def unit(x, d, j=0):
    """The loss vectors e_j, (n, d), one for each row of x."""
    v = x.new_zeros(*x.shape[:-1], d)
    v[..., j] = 1
    return v


def masked(delta, g):
    """D delta, D = diag 1(g >= 0), without the pass over booleans that takes most of the time."""
    return torch.ge(g, 0, out=torch.empty_like(g)).mul_(delta)
