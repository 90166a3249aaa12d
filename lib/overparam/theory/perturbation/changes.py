"""A deep ReLU net under changes W'_l of spectral norm at most omega, made for one input each.

For one input the changes act on the forward pass exactly as vectors v_l = W'_l h_{l-1} of norm at most omega |h_{l-1}|,
where h_{l-1} is that of the changed net. They are realised by W'_l = v_l h_{l-1}^T / |h_{l-1}|^2 of rank one. Gradients
see W'_l at other vectors too, so that for them these are not all changes. Everything takes T radii omega first, then n
inputs, each with changes of its own. Source: Allen-Zhu et al. 2019, Section 8; the reduction is ours.
"""

import copy

import torch

from ...models.deep_relu import unit


class Start:
    """A net (`ReLUNet`, `WideLayer`) at the inputs x (n, p), with the gradient of its output j.

    g, h: as `net.forward` gives them; p: [p_1, .., p_L] with dy_j/dW_l = reach(l) p_l h_{l-1}^T; back: [b_1, .., b_L]
    with b_l = Back_{l+1}^T e_j, each (n, m).
    """

    def __init__(self, net, x, j=0):
        self.net, self.j = net, j
        self.g, self.h = net.forward(x)
        self.p = net.sensitivities(self.g, unit(x.to(self.h[0]), net.d, j))
        inner = [net.apply_transposed(l, self.p[l - 1]) for l in range(2, net.L + 1)]
        self.back = [*inner, net.B[j].expand_as(self.h[0])]


class Attack:
    """The net of `start` under changes v_l, chosen layer by layer: T radii `omegas`, n inputs.

    choose(l, z, h, budget): v_l (T, n, m) of norm at most budget = omega |h| (T, n, 1), or None for none; h (T, n, m):
    the changed h_{l-1}; z: the pre-activations that W_l alone makes of it.
    g, h, v: [g_1, ..], [h_0, ..] and [v_1, ..] of the changed net.
    """

    def __init__(self, start, omegas, choose):
        self.start, self.net = start, start.net
        radii = torch.as_tensor(omegas, dtype=start.h[0].dtype, device=start.h[0].device)[:, None, None]
        self.g, self.h, self.v = [], [start.h[0].repeat(len(omegas), 1, 1)], []
        for l in range(1, self.net.L + 1):
            z = start.g[0].expand_as(self.h[0]) if l == 1 else self.net.apply(l, self.h[-1])
            v = choose(l, z, self.h[-1], radii * self.h[-1].norm(dim=-1, keepdim=True))
            self.v.append(v)
            self.g.append(z if v is None else torch.add(z, v, alpha=self.net.reach(l)))
            self.h.append(self.g[-1].clamp(min=0))

    def norms(self):
        """The largest |W'_l|_2 over the layers, (T, n)."""
        pairs = [v.norm(dim=-1) / h.norm(dim=-1) for v, h in zip(self.v, self.h, strict=False) if v is not None]
        return torch.stack(pairs).amax(0)

    def pull(self, q):
        """[J_1^T q, .., J_L^T q], each (T, n, m), with the Jacobian J_l of g_L by v_l; q: (T, n, m)."""
        rows = [q]
        for l in range(self.net.L, 1, -1):
            q = self.net.apply_transposed(l, rows[-1])
            if (v := self.v[l - 1]) is not None:
                q = q + self.net.reach(l) * _along(rows[-1], v, self.h[l - 1])
            rows.append(q * (self.g[l - 2] >= 0))
        return [row * self.net.reach(l) for l, row in enumerate(reversed(rows), 1)]

    def better(self, other, where):
        """The attack `other` at the radii and inputs `where` (T, n), this one elsewhere."""
        merged, where = copy.copy(self), where.unsqueeze(-1)
        for name in ("g", "h", "v"):
            pairs = zip(getattr(other, name), getattr(self, name), strict=True)
            setattr(merged, name, [torch.where(where, a, b) for a, b in pairs])
        return merged

    def responses(self):
        """How the net has changed; l in 1..L on the last axis of what has one.

        "norm" (T, n): max_l |W'_l|_2; "flips" (T, n, L): the shares |D'_l|_0 / m; "flipped" |D'_l g_l|, "pre" |g'_l|,
        "hidden" |h'_l| (T, n, L); "gradient" |dy_j - dy_j(0)|_F / |dy_j(0)|_F by W_1..W_L, "gradient last" by W_L
        alone, "output" |y_j - y_j(0) - y_j^ntk|, "kernel" and "kernel last" |K(x, x)/K(0)(x, x) - 1| (T, n).
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
            "hidden": stacked((a - b).norm(dim=-1) for a, b in zip(self.h[1:], start.h[1:], strict=True)),
            **self._tangent(),
        }

    def _tangent(self):
        start, net, j = self.start, self.net, self.start.j
        rows = self._sensitivities()
        gaps, sizes, kernels, linear = [], [], [], 0
        for l, (p, p0, h, h0, v) in enumerate(zip(rows, start.p, self.h, start.h, self.v, strict=False), 1):
            square = net.reach(l) ** 2
            dp, dh = p - p0, h - h0
            cross = 2 * (p * dp).sum(-1) * (dh * h0).sum(-1)
            gap = p.square().sum(-1) * dh.square().sum(-1) + dp.square().sum(-1) * h0.square().sum(-1) + cross
            gaps.append(square * gap.clamp(min=0))
            sizes.append(square * p0.square().sum(-1) * h0.square().sum(-1))
            kernels.append(square * p.square().sum(-1) * h.square().sum(-1))
            if v is not None:
                linear = linear + net.reach(l) * (_along(h0, h, v, over=h) * p0).sum(-1)
        moved = ((self.h[-1] - start.h[-1]) * net.B[j]).sum(-1)
        return {
            "gradient": (sum(gaps) / sum(sizes)).sqrt(),
            "gradient last": (gaps[-1] / sizes[-1]).sqrt(),
            "output": (moved - linear).abs(),
            "kernel": (sum(kernels) / sum(sizes) - 1).abs(),
            "kernel last": (kernels[-1] / sizes[-1] - 1).abs(),
        }

    def across(self, i, k):
        """|K_ik - K(0)_ik| / sqrt(K(0)_ii K(0)_kk) of the kernel of inputs i and k under the changes made for i, (T,).

        Source: Allen-Zhu et al. 2019, Theorem 5c.
        """
        start, net = self.start, self.net
        p, h, v = [row[:, i] for row in self._sensitivities()], [a[:, i] for a in self.h], self.v
        others, pre = [start.h[0][k].expand_as(h[0])], []
        for l in range(1, net.L + 1):
            z = start.g[0][k].expand_as(h[0]) if l == 1 else net.apply(l, others[-1])
            if v[l - 1] is not None:
                z = z + net.reach(l) * _along(others[-1], h[l - 1], v[l - 1][:, i], over=h[l - 1])
            pre.append(z)
            others.append(z.clamp(min=0))
        row, kernel, before = net.B[start.j], 0, 0
        for l in range(net.L, 0, -1):
            row = row * (pre[l - 1] >= 0)
            square = net.reach(l) ** 2
            kernel = kernel + square * (p[l - 1] * row).sum(-1) * (h[l - 1] * others[l - 1]).sum(-1)
            before = before + square * _gram(start.p[l - 1][[i, k]]) * _gram(start.h[l - 1][[i, k]])
            if l > 1:
                back = net.apply_transposed(l, row)
                row = back if v[l - 1] is None else back + net.reach(l) * _along(row, v[l - 1][:, i], h[l - 1])
        return (kernel - before[0, 1]).abs() / (before[0, 0] * before[1, 1]).sqrt()

    def _sensitivities(self):
        """[p_1, .., p_L] of the changed net, whose W_l + W'_l act backwards too."""
        delta = self.net.B[self.start.j] * (self.g[-1] >= 0)
        return [row / self.net.reach(l) for l, row in enumerate(self.pull(delta), 1)]


def _gram(a):
    return a @ a.mT


def _along(a, b, c, over=None):
    """c (a . b) / |c|^2, or over |over|^2; all (T, n, m)."""
    over = c if over is None else over
    return c * ((a * b).sum(-1, keepdim=True) / over.square().sum(-1, keepdim=True))


def unchanged(start, omegas):
    """No change, at all radii."""
    return Attack(start, omegas, lambda l, z, h, budget: None)
