"""The deep residual net of Frei et al. 2019 (Section 2), its plain twin, and their layer products."""

from itertools import pairwise

import torch


class ResidualReLU:
    """x_1 = relu(W_1^T x), x_l = x_{l-1} + theta relu(W_l^T x_{l-1}) for l = 2..L, x_{L+1} = relu(W_{L+1}^T x_L).

    f(x) = v . x_{L+1} with v = (1, .., 1, -1, .., -1) fixed. `theta=None` gives the plain net x_l = relu(W_l^T x_{l-1})
    of the same depth. Entries of W_l ~ N(0, 2/m): the variance uses the output width, W_1 (d, m) included.
    d: input dimension; m: width (even); L: depth. Drawn in float64 and cast.
    Source: Frei et al. 2019, Section 2, Assumption 3.3.
    """

    def __init__(self, d, m, L, theta, *, seed, dtype=torch.float64, device="cpu"):
        generator = torch.Generator().manual_seed(seed)
        draw = lambda rows: torch.randn(rows, m, generator=generator, dtype=torch.float64) * (2 / m) ** 0.5  # noqa: E731
        self.W = [draw(d if l == 0 else m).to(device, dtype) for l in range(L + 1)]
        self.v = torch.ones(m, dtype=dtype, device=device)
        self.v[m // 2 :] = -1
        self.L, self.theta = L, theta

    def forward(self, x):
        """Activations [x_1, .., x_{L+1}], each (n, m), and patterns [Sigma_1, .., Sigma_{L+1}] as booleans (n, m)."""
        activations, patterns = [], []
        for l, W in enumerate(self.W):
            z = (x if l == 0 else activations[-1]) @ W
            patterns.append(z > 0)
            update = z.clamp_(min=0)
            residual = self.theta is not None and 0 < l < self.L
            activations.append(activations[-1].add(update, alpha=self.theta) if residual else update)
        return activations, patterns

    def product(self, patterns, first, last, a):
        """H_first^last a for vectors a (n, m), one per input, layers `first`..`last` of 2..L+1, never formed.

        H_l^{l'} = prod_{r=l}^{l'} (I + theta Sigma_r W_r^T); the last layer's factor is Sigma_{L+1} W_{L+1}^T.
        """
        for l in range(first - 1, last):
            step = (a @ self.W[l]).mul_(patterns[l])
            a = torch.add(a, step, alpha=self.theta) if self._skips(l) else step
        return a

    def product_transposed(self, patterns, first, last, b):
        """(H_first^last)^T b for vectors b (n, m), one per input."""
        for l in reversed(range(first - 1, last)):
            step = (b * patterns[l]) @ self.W[l].T
            b = torch.add(b, step, alpha=self.theta) if self._skips(l) else step
        return b

    def _skips(self, l):
        return self.theta is not None and 0 < l < self.L

    def product_norm(self, patterns, first, last, *, seed, iterations=30):
        """Spectral norms ||H_first^last||_2, shape (n,), one per input, by power iteration through the layers.

        A lower estimate, as every power iteration's. The start vector is drawn from `seed`.
        """
        generator = torch.Generator().manual_seed(seed)
        a = torch.randn(patterns[0].shape, generator=generator, dtype=torch.float64).to(self.v)
        norm = a.new_zeros(len(a))
        for _ in range(iterations):
            a = a / a.norm(dim=1, keepdim=True)
            a = self.product(patterns, first, last, a)
            norm = a.norm(dim=1)
            a = self.product_transposed(patterns, first, last, a / norm.clamp(min=1e-300)[:, None])
        return norm


def theta_of(rule, L):
    """The residual weight that a rule gives at depth L; None for `plain`."""
    return {"1/L": 1 / L, "0.1/L": 0.1 / L, "1/sqrtL": L**-0.5, "1": 1.0, "plain": None}[rule]


def depth_sweep(d, m, depths, rule, x, *, seeds, iterations, dtype=torch.float64, device="cpu"):
    """Norms of activations and of layer products at initialization, for every depth, seed and input x (n, d).

    Returns {name: float64 tensor}: of shape (depths, seeds, n) the norms "|x_1|", "|x_L|", "|x_{L+1}|" and the spectral
    norms "H_2^L", "H_{L/2+1}^L", "H_2^{L+1}"; "profile" (seeds, n, L + 1), all |x_l| at the last depth;
    "range" (depths, seeds, 2), the smallest and largest |x_l| over layers and inputs; and "smallest step"
    (depths, seeds), min over l, j and inputs of x_{l,j} - x_{l-1,j} for 2 <= l <= L.
    """
    x = x.to(device, dtype)
    rows = {}
    for L in depths:
        nets = (ResidualReLU(d, m, L, theta_of(rule, L), seed=seed, dtype=dtype, device=device) for seed in seeds)
        measured = [_at_initialization(net, x, seed, iterations) for net, seed in zip(nets, seeds, strict=True)]
        for name in measured[0]:
            if name != "profile":
                rows.setdefault(name, []).append(torch.stack([run[name] for run in measured]).double().cpu())
        profile = torch.stack([run["profile"] for run in measured]).double().cpu()
    return {**{name: torch.stack(values) for name, values in rows.items()}, "profile": profile}


def _at_initialization(net, x, seed, iterations):
    L = net.L
    activations, patterns = net.forward(x)
    norms = torch.stack([a.norm(dim=1) for a in activations], -1)
    spans = {"H_2^L": (2, L), "H_{L/2+1}^L": (L // 2 + 1, L), "H_2^{L+1}": (2, L + 1)}
    return {
        **{k: net.product_norm(patterns, *span, seed=seed, iterations=iterations) for k, span in spans.items()},
        **{"|x_1|": norms[:, 0], "|x_L|": norms[:, -2], "|x_{L+1}|": norms[:, -1], "profile": norms},
        "range": torch.stack([norms.min(), norms.max()]),
        "smallest step": torch.stack([(b - a).min() for a, b in pairwise(activations[:-1])]).min(),
    }
