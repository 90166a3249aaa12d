"""A deep ReLU net under changes W'_l of spectral norm at most omega, made for one input each.

For one input the changes act on the forward pass exactly as vectors v_l = W'_l h_{l-1} of norm at
most omega |h_{l-1}|, where h_{l-1} is that of the changed net. They are realised by W'_l = v_l
h_{l-1}^T / |h_{l-1}|^2 of rank one. Gradients see W'_l at other vectors too, so that for them these
are not all changes. Everything takes T radii omega first, then n inputs, each with changes of its
own. Source: Allen-Zhu et al. 2019, Section 8; the reduction is ours.
"""

import copy

import torch

from ...models.deep_relu import unit
from ...norms import squared_row_differences


class Start:
    """A net (`ReLUNet`, `WideLayer`) at the inputs x (n, p), with the gradient of its output j.

    g, h: as `net.forward` gives them; p: [p_1, .., p_L] with dy_j/dW_l = reach(l) p_l h_{l-1}^T;
    back: [b_1, .., b_L] with b_l = Back_{l+1}^T e_j, each (n, m).
    """

    def __init__(self, net, x, j=0):
        self.net, self.j = net, j
        self.g, self.h = net.forward(x)
        self.p = net.sensitivities(self.g, unit(x.to(self.h[0]), net.d, j))
        inner = [net.apply_transposed(l, self.p[l - 1]) for l in range(2, net.L + 1)]
        self.back = [*inner, net.B[j].expand_as(self.h[0])]


class Attack:
    """The net of `start` under changes v_l, chosen layer by layer: T radii `omegas`, n inputs.

    choose(l, z, h, budget): v_l (T, n, m) of norm at most budget = omega |h| (T, n, 1), or None for
    none; h (T, n, m): the changed h_{l-1}; z: the pre-activations that W_l alone makes of it. By
    default nothing is changed.
    g, h, v: [g_1, ..], [h_0, ..] and [v_1, ..] of the changed net.
    """

    def __init__(self, start, omegas, choose=lambda l, z, h, budget: None):
        self.start, self.net, self.v = start, start.net, []
        h0 = start.h[0].repeat(len(omegas), 1, 1)
        radii = torch.as_tensor(omegas, dtype=h0.dtype, device=h0.device)[:, None, None]

        def change(l, h, z):
            self.v.append(choose(l, z, h, radii * h.norm(dim=-1, keepdim=True)))
            return self.v[-1]

        self.g, self.h = self.net.upward(h0, start.g[0].expand_as(h0), change)

    def norms(self):
        """The largest ||W'_l||_2 over the layers, (T, n)."""
        pairs = [
            v.norm(dim=-1) / h.norm(dim=-1)
            for v, h in zip(self.v, self.h, strict=False)
            if v is not None
        ]
        return torch.stack(pairs).amax(0)

    def pull(self, q):
        """[J_1^T q, .., J_L^T q], each (T, n, m), with the Jacobian J_l of g_L by v_l; q: (T, n,
        m).
        """
        return [
            row * self.net.reach(l)
            for l, row in enumerate(self.net.downward(self.g, q, self._back), 1)
        ]

    def _back(self, l, p):
        """W'_l^T p."""
        return _acted_transposed(self.v[l - 1], self.h[l - 1], p)

    def better(self, other, where):
        """The attack `other` at the radii and inputs `where` (T, n), this one elsewhere."""
        merged, where = copy.copy(self), where.unsqueeze(-1)
        for name in ("g", "h", "v"):
            pairs = zip(getattr(other, name), getattr(self, name), strict=True)
            setattr(merged, name, [torch.where(where, a, b) for a, b in pairs])
        return merged

    def responses(self):
        """How the net has changed; l in 1..L on the last axis of what has one.

        "norm" (T, n): max_l ||W'_l||_2; "flips" (T, n, L): the shares |D'_l|_0 / m; "flipped" |D'_l
        g_l|, "pre" |g'_l|, "hidden" |h'_l| (T, n, L); "gradient" |dy_j - dy_j(0)|_F / |dy_j(0)|_F
        by W_1..W_L, "gradient last" by W_L alone, "output" |y_j - y_j(0) - y_j^ntk|, "kernel" and
        "kernel last" |K(x, x)/K(0)(x, x) - 1| (T, n).
        Source: Allen-Zhu et al. 2019, Lemma 8.2, Theorem 5.
        """
        start = self.start
        differ = [(a >= 0) != (b >= 0) for a, b in zip(self.g, start.g, strict=True)]
        stacked = lambda parts: torch.stack(list(parts), -1)  # noqa: E731
        return {
            "norm": self.norms(),
            "flips": stacked(d.double().mean(-1) for d in differ),
            "flipped": stacked((d * g).norm(dim=-1) for d, g in zip(differ, self.g, strict=True)),
            "pre": stacked((a - b).norm(dim=-1) for a, b in zip(self.g, start.g, strict=True)),
            "hidden": stacked(
                (a - b).norm(dim=-1) for a, b in zip(self.h[1:], start.h[1:], strict=True)
            ),
            **self._tangent(),
        }

    def _tangent(self):
        start, net, j = self.start, self.net, self.start.j
        gaps, sizes, kernels, linear = [], [], [], 0
        rows = zip(self._sensitivities(), start.p, self.h, start.h, self.v, strict=False)
        for l, (p, p0, h, h0, v) in enumerate(rows, 1):
            square = net.reach(l) ** 2
            gaps.append(square * squared_row_differences((p, h), (p0, h0)))
            sizes.append(square * p0.square().sum(-1) * h0.square().sum(-1))
            kernels.append(square * p.square().sum(-1) * h.square().sum(-1))
            if v is not None:
                linear = linear + net.reach(l) * (_acted(v, h, h0) * p0).sum(-1)
        moved = ((self.h[-1] - start.h[-1]) * net.B[j]).sum(-1)
        return {
            "gradient": (sum(gaps) / sum(sizes)).sqrt(),
            "gradient last": (gaps[-1] / sizes[-1]).sqrt(),
            "output": (moved - linear).abs(),
            "kernel": (sum(kernels) / sum(sizes) - 1).abs(),
            "kernel last": (kernels[-1] / sizes[-1] - 1).abs(),
        }

    def across(self, i, k):
        """|K_ik - K(0)_ik| / sqrt(K(0)_ii K(0)_kk) under the changes made for i, (T,).

        Source: Theorem 5c.
        """
        start, net = self.start, self.net
        p, h = [row[:, i] for row in self._sensitivities()], [a[:, i] for a in self.h]
        v = [None if a is None else a[:, i] for a in self.v]
        h0, g1 = (a[0][k].expand_as(h[0]) for a in (start.h, start.g))
        g, others = net.upward(h0, g1, lambda l, a, _: _acted(v[l - 1], h[l - 1], a))
        top = net.B[start.j] * (g[-1] >= 0)
        rows = net.downward(g, top, lambda l, b: _acted_transposed(v[l - 1], h[l - 1], b))
        kernel = before = 0
        for l in range(net.L):
            square = net.reach(l + 1) ** 2
            kernel = kernel + square * (p[l] * rows[l]).sum(-1) * (h[l] * others[l]).sum(-1)
            before = before + square * _gram(start.p[l][[i, k]]) * _gram(start.h[l][[i, k]])
        return (kernel - before[0, 1]).abs() / (before[0, 0] * before[1, 1]).sqrt()

    def _sensitivities(self):
        """[p_1, .., p_L] of the changed net, whose W_l + W'_l act backwards too."""
        delta = self.net.B[self.start.j] * (self.g[-1] >= 0)
        return self.net.downward(self.g, delta, self._back)


def _gram(a):
    return a @ a.mT


def _acted(v, h, a):
    """W' a of W' = v h^T / |h|^2; None for no change."""
    return (
        None
        if v is None
        else v * ((h * a).sum(-1, keepdim=True) / h.square().sum(-1, keepdim=True))
    )


def _acted_transposed(v, h, b):
    """W'^T b, as `_acted`."""
    return (
        None
        if v is None
        else h * ((v * b).sum(-1, keepdim=True) / h.square().sum(-1, keepdim=True))
    )
