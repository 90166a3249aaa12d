"""The deep leaky-ReLU net of Guo et al. 2024, Algorithm 1; at alpha = 0, layers 1..L of Allen-Zhu et al. 2019."""

import torch


class LeakyMLP:
    """h_0 = A x, h_l = s(W_l h_{l-1}) for l = 1..L, output B h_L; only W_1..W_L are trained, no biases.

    s(z) = z / sqrt(1 + alpha^2) for z >= 0, alpha z / sqrt(1 + alpha^2) below. Entries A ~ N(0, 1/m),
    W_l ~ N(0, 2/m), B ~ N(0, 1/d).
    p, m, d, L: input dimension, width, output dimension, depth. alphas, seeds: one each per run, R in all; runs with
    the same seed share their draw (paired). Drawn in float64 on the CPU and then cast.
    Source: Guo et al. 2024, Algorithm 1, eq. (2).
    """

    def __init__(self, p, m, d, L, *, alphas, seeds, dtype=torch.float32, device="cpu"):
        self.p, self.m, self.d, self.L, self.runs = p, m, d, L, len(seeds)
        unique = sorted(set(seeds))
        draws = [torch.stack(parts) for parts in zip(*(_draw(p, m, d, L, seed) for seed in unique), strict=True)]
        self.A, self.W, self.B = (t.to(device, dtype) for t in draws)  # (S, m, p), (S, L, m, m), (S, d, m)
        self.draw = [unique.index(seed) for seed in seeds]  # run -> which of the S draws
        alpha = torch.tensor(alphas, dtype=torch.float64)
        norm = torch.sqrt(1 + alpha**2)
        self.slopes = torch.stack([1 / norm, alpha / norm], -1).to(device, dtype)  # (R, 2): for z > 0 and below

    def outputs(self, x):
        """Outputs (R, n, d) at the initial weights for x (n, p) or, one set per run, (R, n, p)."""
        return torch.stack([self.descent(x, run).forward() for run in range(self.runs)])

    def descent(self, x, run=None):
        """Open one run (int) or all (None) for training on x: (n, p), or (R, n, p) for one data set per run."""
        draw, select = (self.draw, slice(None)) if run is None else (self.draw[run], run)
        x = x[select] if x.ndim == 3 else x
        return LeakyDescent(self.A[draw], self.W[draw].clone(), self.B[draw], self.slopes[select], x)


def _draw(p, m, d, L, seed):
    generator = torch.Generator().manual_seed(seed)
    normal = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    return normal(m, p) / m**0.5, normal(L, m, m) * (2 / m) ** 0.5, normal(d, m) / d**0.5


class LeakyDescent:
    """Forward, backward and update of the trained layers in preallocated buffers; leading run axis or none.

    The input h_0 = A x has rank p, so W_1 moves only by P A^T with P (m, p): the state keeps W_1 A + P A^T A instead of
    W_1 and saves two of the 3 L - 1 products of a step.
    """

    def __init__(self, A, W, B, slopes, x):
        self.B = B
        self.W = list(W.unbind(-3))
        self.A = A
        self.gramA = A.mT @ A
        self.V0 = self.W[0] @ A
        self.P = torch.zeros_like(self.V0)
        self.negative = slopes[..., 1, None, None]
        self.jump = slopes[..., 0, None, None] - self.negative
        self.load(x)

    def load(self, x):
        """Take other inputs (..., n, p), a batch of them say; buffers are kept where n stays the same."""
        self.x = x
        shape = (*self.V0.shape[:-2], x.shape[-2], self.A.shape[-2])
        if not hasattr(self, "delta") or self.delta.shape != shape:
            self.h, self.slope = ([x.new_empty(shape) for _ in self.W] for _ in range(2))
            self.delta, self.back = x.new_empty(shape), x.new_empty(shape)

    @property
    def state(self):
        return {"P": self.P, **{f"W{l + 1}": W for l, W in enumerate(self.W) if l}}

    @property
    def W1(self):
        """The first layer's weights (..., m, m)."""
        return self.W[0] + self.P @ self.A.mT

    def forward(self):
        """Outputs (..., n, d) at the current weights."""
        V = self.V0 + self.P @ self.gramA
        for l, (h, slope) in enumerate(zip(self.h, self.slope, strict=True)):
            torch.matmul(self.x if l == 0 else self.h[l - 1], V.mT if l == 0 else self.W[l].mT, out=h)
            torch.gt(h, 0, out=slope)  # 0/1, then the slopes: a tenth of the time of torch.where
            slope.mul_(self.jump).add_(self.negative)
            h.mul_(slope)
        return self.h[-1] @ self.B.mT

    def descend(self, v):
        """Move the weights by -sum_i v_i . df_i/dW; v (..., n, d). To be called after `forward`."""
        delta, back = torch.matmul(v, self.B, out=self.delta), self.back
        for l in reversed(range(len(self.W))):
            delta.mul_(self.slope[l])
            if l == 0:
                self.P -= delta.mT @ self.x
                return
            torch.matmul(delta, self.W[l], out=back)
            _accumulate(self.W[l], delta.mT, self.h[l - 1])
            delta, back = back, delta

    def predict(self, x):
        """Outputs (..., n, d) at other inputs x (n, p)."""
        h = x @ (self.V0 + self.P @ self.gramA).mT
        for l in range(len(self.W)):
            g = h if l == 0 else h @ self.W[l].mT
            h = g * (self.negative + self.jump * (g > 0))
        return h @ self.B.mT

    def sensitivities(self, v):
        """[Z_1, .., Z_L], each (..., n, m), with v_i . df_i/dW_l = Z_{l,i} h_{l-1,i}^T; v (..., n, d). After `forward`.

        Source: Guo et al. 2024, eq. (61), whose Back_{i,l} must read Back_{i,l+1}.
        """
        delta, rows = v @ self.B, []
        for l in reversed(range(len(self.W))):
            rows.append(delta * self.slope[l])
            delta = rows[-1] @ (self.W1 if l == 0 else self.W[l])
        return rows[::-1]

    def inputs_of_layers(self):
        """[h_0, .., h_{L-1}], each (..., n, m), at the current weights. After `forward`."""
        return [self.x @ self.A.mT, *self.h[:-1]]

    def gram(self):
        """Gram matrices of the gradients by W_1, .., W_L of a net with one output, (..., L, n, n). After `forward`."""
        ones = self.h[-1].new_ones(*self.h[-1].shape[:-1], 1)
        pairs = zip(self.inputs_of_layers(), self.sensitivities(ones), strict=True)
        return torch.stack([(h @ h.mT) * (z @ z.mT) for h, z in pairs], -3)


def _accumulate(W, left, right):
    (W.addmm_ if W.ndim == 2 else W.baddbmm_)(left, right, alpha=-1)
