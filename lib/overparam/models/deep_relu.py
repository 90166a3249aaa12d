"""The deep ReLU net of Allen-Zhu et al. 2019, whose first and last layer stay fixed, and its residual form."""

import copy

import torch

LAST = 1_000_002  # the stream of B, whatever the depth


class ReLUNet:
    """h_0 = relu(A x), g_l = W_l h_{l-1}, h_l = relu(g_l) for l = 1..L, y = B h_L; W_1..W_L are what is changed.

    Entries of A and W_l ~ N(0, 2/m), of B ~ N(0, 1/d): variances, so outputs are of order sqrt(m/d).
    p, m, d, L: input dimension, width, output dimension, depth. tau: None, or the weight of the residual form
    g_l = h_{l-1} + tau W_l h_{l-1}, l < L. Every layer has a stream of `seed` of its own, so that nets of different
    depth share layers. draw_on: "cpu", in float64 and then cast, or "device", which is faster on a GPU.
    `W`: a list [W_1, .., W_L]. Source: Allen-Zhu et al. 2019, Section 2; Appendix C.
    """

    def __init__(self, p, m, d, L, *, tau=None, seed, dtype=torch.float64, device="cpu", draw_on="cpu"):
        self.m, self.d, self.L, self.tau = m, d, L, tau
        options = {"dtype": dtype, "device": device, "draw_on": draw_on}
        self.A = drawn((m, p), 2 / m, seed, 0, **options)
        self.W = [drawn((m, m), 2 / m, seed, l, **options) for l in range(1, L + 1)]
        self.B = drawn((d, m), 1 / d, seed, LAST, **options)

    def with_weights(self, W):
        """The same net with other weights [W_1, .., W_L]."""
        net = copy.copy(self)
        net.W = list(W)
        return net

    def skips(self, l):
        """Whether layer l, of 1..L, adds its input to tau W_l h."""
        return self.tau is not None and l < self.L

    def reach(self, l):
        """What W_l is multiplied by: tau in a residual layer, else 1."""
        return self.tau if self.skips(l) else 1.0

    def apply(self, l, h):
        """g_l of h = h_{l-1}, (..., m)."""
        g = h @ self.W[l - 1].mT
        return torch.add(h, g, alpha=self.tau) if self.skips(l) else g

    def apply_transposed(self, l, p):
        """The transpose of `apply`, on p (..., m)."""
        back = p @ self.W[l - 1]
        return torch.add(p, back, alpha=self.tau) if self.skips(l) else back

    def forward(self, x):
        """Pre-activations [g_1, .., g_L] and activations [h_0, .., h_L], each (n, m), at inputs x (n, p)."""
        g, h = [], [(x @ self.A.mT).clamp_(min=0)]
        for l in range(1, self.L + 1):
            g.append(self.apply(l, h[-1]))
            h.append(g[-1].clamp(min=0))
        return g, h

    def outputs(self, x):
        """y (n, d) at inputs x (n, p)."""
        return self.forward(x)[1][-1] @ self.B.mT

    def sensitivities(self, g, v):
        """[p_1, .., p_L], each (n, m): p_{i,l} = D_{i,l} Back_{i,l+1}^T v_i, for v (n, d) and the pre-activations g.

        The gradient of v_i . y_i by W_l is reach(l) p_{i,l} h_{i,l-1}^T. Source: Allen-Zhu et al. 2019, Fact 2.6.
        """
        delta, rows = v @ self.B, []
        for l in range(self.L, 0, -1):
            rows.append(delta * (g[l - 1] >= 0))
            if l > 1:
                delta = self.apply_transposed(l, rows[-1])
        return rows[::-1]

    def back(self, g, l):
        """Back_{i,l} = B D_{i,L} W_L .. D_{i,l} W_l, (n, d, m), for l = 1..L + 1, at the pre-activations g.

        In the residual form the factors are those of `apply`. Source: Allen-Zhu et al. 2019, Fact 2.6.
        """
        rows = self.B.expand(len(g[0]), *self.B.shape)
        for k in range(self.L, l - 1, -1):
            rows = self.apply_transposed(k, rows * (g[k - 1] >= 0).unsqueeze(-2))
        return rows

    def gradients(self, x, v):
        """[sum_i v_i . dy_i/dW_l], a list of L matrices (m, m); x: (n, p), v: (n, d), the loss vectors for dF/dW_l."""
        g, h = self.forward(x)
        rows = self.sensitivities(g, v)
        return [p.mT @ below * self.reach(l) for l, (p, below) in enumerate(zip(rows, h, strict=False), 1)]

    def tangent(self, x, changes):
        """y^ntk: the derivative (n, d) of the outputs along the changes [W'_1, .., W'_L] of the weights."""
        g, h = self.forward(x)
        t = torch.zeros_like(h[0])
        for l, (change, below, pre) in enumerate(zip(changes, h, g, strict=False), 1):
            t = (self.apply(l, t) + self.reach(l) * (below @ change.mT)) * (pre >= 0)
        return t @ self.B.mT

    def grams(self, x, j=0):
        """<dy_j(x_i)/dW_l, dy_j(x_k)/dW_l> of every layer, (L, n, n); their sum is the tangent kernel of output j."""
        g, h = self.forward(x)
        rows = self.sensitivities(g, unit(x, self.d, j))
        parts = zip(rows, h, strict=False)
        return torch.stack([(p @ p.mT) * (b @ b.mT) * self.reach(l) ** 2 for l, (p, b) in enumerate(parts, 1)])


class WideLayer(ReLUNet):
    """The net of depth L = 1 seen at given inputs alone: W_1 h_0 is drawn with its law, and there is no m x m matrix.

    So m may be 10^8. Each call of `forward` gives the same draw for the same inputs, up to an orthogonal change of
    variables; what depends on W_1 itself (`gradients`, `back` at l = 1, `outputs` at other inputs) does not exist.
    Source: Allen-Zhu et al. 2019, Section 2; the reduction is ours.
    """

    def __init__(self, m, d=1, *, seed, dtype=torch.float64, device="cpu", draw_on="cpu"):
        self.m, self.d, self.L, self.tau, self.seed = m, d, 1, None, seed
        self._options = {"dtype": dtype, "device": device, "draw_on": draw_on}
        self.B = drawn((d, m), 1 / d, seed, LAST, **self._options)

    def forward(self, x):
        """[g_1] and [h_0, h_1], each (n, m), at inputs x (n, p)."""
        draw = lambda stream: drawn((len(x), self.m), 2 / self.m, self.seed, stream, **self._options)  # noqa: E731
        h = (gram_root(x) @ draw(0)).clamp_(min=0)
        g = gram_root(h) @ draw(1)
        return [g], [h, g.clamp(min=0)]


def drawn(shape, variance, seed, stream, *, dtype=torch.float64, device="cpu", draw_on="cpu"):
    """Normal entries of mean 0, the same for the same seed and stream."""
    device = torch.device(device)
    place = device if draw_on == "device" and device.type == "cuda" else torch.device("cpu")
    generator = torch.Generator(place).manual_seed(seed * 1_000_003 + stream)
    kind = torch.float64 if place.type == "cpu" else dtype
    return torch.randn(*shape, generator=generator, dtype=kind, device=place).mul_(variance**0.5).to(device, dtype)


def gram_root(h):
    """A root C, (..., n, n), of h h^T = C C^T, which may be singular; h: (..., n, m)."""
    values, vectors = torch.linalg.eigh(h.double() @ h.double().mT)
    return (vectors * values.clamp(min=0).sqrt().unsqueeze(-2)).to(h)


def unit(x, d, j=0):
    """The loss vectors e_j, (n, d), one for each row of x."""
    v = x.new_zeros(*x.shape[:-1], d)
    v[..., j] = 1
    return v
