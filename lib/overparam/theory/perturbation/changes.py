"""A deep ReLU net under changes W'_l of spectral norm at most omega, made for one input each.

For one input the changes act on the forward pass exactly as vectors v_l = W'_l h_{l-1} of norm at
most omega |h_{l-1}|, where h_{l-1} is that of the changed net. They are realised by
W'_l = v_l h_{l-1}^T / |h_{l-1}|^2 of rank one. Gradients see W'_l at other vectors too, so that for
them these are not all changes. Everything takes T radii omega first, then n inputs, each with
changes of its own. Source: Allen-Zhu et al. 2019, Section 8; the reduction is ours.
"""

import copy

import torch

from ...errors import ParameterError
from ...models.deep_relu import masked, unit
from ...norms import squared_row_differences


class Start:
    """A net (`ReLUNet`, `WideLayer`) at the inputs x (n, p), with the gradient of its output j.

    g, h: as `net.forward` gives them; z: [z_1, .., z_L] with dy_j/dW_l = z_l h_{l-1}^T;
    back: [b_1, .., b_L] with b_l = Back_{l+1}^T e_j, each (n, m).
    """

    def __init__(self, net, x, j=0):
        if not hasattr(net, "upward"):
            raise ParameterError(f"net must be a ReLUNet or a WideLayer, not {type(net).__name__}")
        if not isinstance(x, torch.Tensor):
            raise ParameterError(f"x must be a tensor of inputs, not {type(x).__name__}")
        if not bool((x != 0).any(-1).all()):
            row = int((x != 0).any(-1).int().argmin())
            raise ParameterError(f"row {row} of x is zero, and a zero input has no direction")
        self.net, self.j = net, j
        self.g, self.h = net.forward(x)
        v = unit(x.to(self.h[0]), net.d, j)
        self.z = [z for _, z in net.factors(x, v, (self.g, self.h))]
        self.back = [net.B[j].expand_as(self.h[0])]
        for l in range(net.L, 1, -1):
            p = masked(self.back[0], self.g[l - 1])
            self.back.insert(0, net.apply_transposed(l, p))


def _no_change(l, z, h, budget):
    return None


class Attack:
    """The net of `start` under changes v_l, chosen layer by layer: T radii `omegas`, n inputs.

    choose(l, z, h, budget): v_l (T, n, m) of norm at most budget = omega |h| (T, n, 1), or None for
    none; h (T, n, m): the changed h_{l-1}; z: the pre-activations that W_l alone makes of it.
    g, h, v: [g_1, ..], [h_0, ..] and [v_1, ..] of the changed net.
    """

    def __init__(self, start, omegas, choose=_no_change):
        if not hasattr(start, "net"):
            raise ParameterError(f"an attack takes a Start(net, x), not {type(start).__name__}")
        if not hasattr(omegas, "__len__"):
            raise ParameterError(f"the radii must be a list, one for each change, not {omegas!r}")
        if not all(omega >= 0 for omega in omegas):
            raise ParameterError(f"the radii must not be negative, but are {omegas!r}")
        self.start, self.net, self.v = start, start.net, []
        h0 = start.h[0].repeat(len(omegas), 1, 1)
        radii = torch.as_tensor(omegas, dtype=h0.dtype, device=h0.device)[:, None, None]

        def change(l, h, z):
            self.v.append(choose(l, z, h, radii * h.norm(dim=-1, keepdim=True)))
            return self.v[-1]

        self.g, self.h = self.net.upward(h0, start.g[0].expand_as(h0), change)

    def norms(self):
        """The largest ||W'_l||_2 over the layers, (T, n)."""
        found = []
        for v, h in zip(self.v, self.h, strict=False):
            if v is not None:
                found.append(v.norm(dim=-1) / h.norm(dim=-1))
        return torch.stack(found).amax(0)

    def pull(self, q):
        """[J_1^T q, .., J_L^T q], each (T, n, m), J_l the Jacobian of g_L by v_l; q: (T, n, m)."""
        return self.net.downward(self.g, q, self._back)

    def _back(self, l, p):
        """W'_l^T p."""
        return _acted_transposed(self.v[l - 1], self.h[l - 1], p)

    def better(self, other, where):
        """The attack `other` at the radii and inputs `where` (T, n), this one elsewhere."""
        merged, where = copy.copy(self), where.unsqueeze(-1)
        for name in ("g", "h", "v"):
            pairs = zip(getattr(other, name), getattr(self, name), strict=True)
            setattr(merged, name, [torch.where(where, theirs, own) for theirs, own in pairs])
        return merged

    def responses(self):
        """How the net has changed; l in 1..L on the last axis of what has one.

        "norm" (T, n): max_l ||W'_l||_2; "flips" (T, n, L): the shares |D'_l|_0 / m; "flipped"
        |D'_l g_l|, "pre" |g'_l|, "hidden" |h'_l| (T, n, L); "gradient" |dy_j - dy_j(0)|_F /
        |dy_j(0)|_F by W_1..W_L, "gradient last" by W_L alone, "output" |y_j - y_j(0) - y_j^ntk|,
        "kernel" and "kernel last" |K(x, x)/K(0)(x, x) - 1| (T, n).
        Source: Allen-Zhu et al. 2019, Lemma 8.2, Theorem 5.
        """
        start = self.start
        shares, flipped, pre, hidden = [], [], [], []
        layers = zip(self.g, start.g, self.h[1:], start.h[1:], strict=True)
        for g, g0, h, h0 in layers:
            differ = (g >= 0) != (g0 >= 0)
            shares.append(differ.double().mean(-1))
            flipped.append((differ * g).norm(dim=-1))
            pre.append((g - g0).norm(dim=-1))
            hidden.append((h - h0).norm(dim=-1))
        return {
            "norm": self.norms(),
            "flips": torch.stack(shares, -1),
            "flipped": torch.stack(flipped, -1),
            "pre": torch.stack(pre, -1),
            "hidden": torch.stack(hidden, -1),
            **self._tangent(),
        }

    def _tangent(self):
        start = self.start
        gaps, sizes, kernels, linear = [], [], [], 0
        layers = zip(self._gradients(), start.z, self.h, start.h, self.v, strict=False)
        for z, z0, h, h0, v in layers:
            gaps.append(squared_row_differences((z, h), (z0, h0)))
            sizes.append(z0.square().sum(-1) * h0.square().sum(-1))
            kernels.append(z.square().sum(-1) * h.square().sum(-1))
            if v is not None:
                linear = linear + (_acted(v, h, h0) * z0).sum(-1)
        moved = ((self.h[-1] - start.h[-1]) * self.net.B[start.j]).sum(-1)
        return {
            "gradient": (sum(gaps) / sum(sizes)).sqrt(),
            "gradient last": (gaps[-1] / sizes[-1]).sqrt(),
            "output": (moved - linear).abs(),
            "kernel": (sum(kernels) / sum(sizes) - 1).abs(),
            "kernel last": (kernels[-1] / sizes[-1] - 1).abs(),
        }

    def across(self, i, k):
        """|K_ik - K(0)_ik| / sqrt(K(0)_ii K(0)_kk) under the changes made for i, (T,).

        Source: Allen-Zhu et al. 2019, Theorem 5c.
        """
        start, net = self.start, self.net
        z, h = [row[:, i] for row in self._gradients()], [row[:, i] for row in self.h]
        v = [None if row is None else row[:, i] for row in self.v]
        h0, g1 = (row[0][k].expand_as(h[0]) for row in (start.h, start.g))

        def change(l, h_of_k, _):
            return _acted(v[l - 1], h[l - 1], h_of_k)

        def change_back(l, p):
            return _acted_transposed(v[l - 1], h[l - 1], p)

        g_of_k, h_of_k = net.upward(h0, g1, change)
        z_of_k = net.downward(g_of_k, net.B[start.j] * (g_of_k[-1] >= 0), change_back)
        kernel = before = 0
        for l in range(net.L):
            kernel = kernel + (z[l] * z_of_k[l]).sum(-1) * (h[l] * h_of_k[l]).sum(-1)
            before = before + _gram(start.z[l][[i, k]]) * _gram(start.h[l][[i, k]])
        return (kernel - before[0, 1]).abs() / (before[0, 0] * before[1, 1]).sqrt()

    def _gradients(self):
        """[z_1, .., z_L] of the changed net, whose W_l + W'_l act backwards too."""
        top = self.net.B[self.start.j] * (self.g[-1] >= 0)
        return self.net.downward(self.g, top, self._back)


def _gram(a):
    return a @ a.mT


def _acted(v, h, a):
    """W' a of W' = v h^T / |h|^2; None for no change."""
    if v is None:
        return None
    return v * ((h * a).sum(-1, keepdim=True) / h.square().sum(-1, keepdim=True))


def _acted_transposed(v, h, b):
    """W'^T b, as `_acted`."""
    if v is None:
        return None
    return h * ((v * b).sum(-1, keepdim=True) / h.square().sum(-1, keepdim=True))
