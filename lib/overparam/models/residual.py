"""The deep residual net of Frei et al. 2019 (Section 2), its plain twin, and their layer
products.
"""

import copy
from functools import partial

import torch

from ..errors import ParameterError
from ..norms import largest_singular, product_norms


class ResidualReLU:
    """x_1 = relu(W_1^T x), x_l = x_{l-1} + theta relu(W_l^T x_{l-1}) for l = 2..L, x_{L+1} =
    relu(W_{L+1}^T x_L).

    f(x) = v . x_{L+1} with v = (1, .., 1, -1, .., -1) fixed. `theta=None` gives the plain net x_l =
    relu(W_l^T x_{l-1}) of the same depth. Entries of W_l ~ N(0, 2/m): the variance uses the output
    width, W_1 (d, m) included.
    d: input dimension; m: width (even); L: depth. Drawn in float64 and cast. The weights `W`, a
    list of L + 1 matrices, may lead with a run axis, as everything that is computed from them then
    does.
    Source: Frei et al. 2019, Section 2, Assumption 3.3.
    """

    def __init__(self, d, m, L, theta, *, seed, dtype=torch.float64, device="cpu"):
        if m % 2:
            raise ParameterError(
                f"the width m must be even, so that v has as many +1 as -1; not {m}"
            )
        generator = torch.Generator().manual_seed(seed)
        self.W = []
        for rows in [d] + [m] * L:
            draw = torch.randn(rows, m, generator=generator, dtype=torch.float64)
            self.W.append((draw * (2 / m) ** 0.5).to(device, dtype))
        self.v = torch.ones(m, dtype=dtype, device=device)
        self.v[m // 2 :] = -1
        self.L, self.theta = L, theta

    def with_weights(self, W):
        """The same net with other weights, a list of L + 1 matrices."""
        net = copy.copy(self)
        net.W = list(W)
        return net

    def forward(self, x, change=None):
        """Activations [x_1, .., x_{L+1}], each (n, m), and patterns [Sigma_1, .., Sigma_{L+1}] as
        booleans (n, m).

        change(l, h, z): what a change of W_{l+1} adds to z = W_{l+1}^T h, or None where there is
        none.
        """
        activations, patterns = [], []
        for l, W in enumerate(self.W):
            h = x if l == 0 else activations[-1]
            z = h @ W
            step = change(l, h, z) if change else None
            z = z if step is None else z + step
            patterns.append(z > 0)
            update = z.clamp_(min=0)
            activations.append(
                activations[-1].add(update, alpha=self.theta) if self.skips(l) else update
            )
        return activations, patterns

    def outputs(self, x):
        """f(x), (n,), for x (n, d)."""
        return self.forward(x)[0][-1] @ self.v

    def sensitivities(self, patterns, c=None):
        """[B_1, .., B_{L+1}], each (n, m), with c_i df_i/dW_l = x_{l-1,i} B_{l,i}^T; c: (n,), or 1
        for all.

        Source: Frei et al. 2019, eq. (2).
        """
        back = self.v * patterns[-1]
        rows = [back if c is None else back * c.unsqueeze(-1)]
        back = rows[0] @ self.W[-1].mT
        for l in reversed(range(self.L)):
            row = back * patterns[l]
            row = row.mul_(self.theta) if self.skips(l) else row
            rows.append(row)
            if l:
                step = row @ self.W[l].mT
                back = back.add_(step) if self.skips(l) else step
        return rows[::-1]

    def factors(self, x, c=None, forward=None):
        """(x_{l-1}, B_l) of every layer, as `sensitivities`; forward: what `forward(x)` gave, if
        known.
        """
        activations, patterns = forward or self.forward(x)
        return list(zip([x, *activations[:-1]], self.sensitivities(patterns, c), strict=True))

    def gradients(self, x, c=None):
        """Sum_i c_i df(x_i)/dW_l for every layer, a list of L + 1 matrices; x: (n, d), c: (n,), or
        1 for all.
        """
        return [a.mT @ b for a, b in self.factors(x, c)]

    def grams(self, x):
        """<df(x_i)/dW_l, df(x_k)/dW_l> of every layer, (L + 1, n, n); their sum is the tangent
        kernel.
        """
        return torch.stack([(a @ a.mT) * (b @ b.mT) for a, b in self.factors(x)])

    def input_jacobian_norms(self, patterns):
        """||dx_l/dx||_2 at every input, (n, L + 1): exact, by pushing W_1 Sigma_1, (d, m), through
        the layers.
        """
        J = patterns[0].unsqueeze(-2) * self.W[0]  # (n, d, m)
        norms = [_largest_singular_value(J)]
        for l in range(1, self.L + 1):
            step = (J @ self.W[l]).mul_(patterns[l].unsqueeze(-2))
            J = torch.add(J, step, alpha=self.theta) if self.skips(l) else step
            norms.append(_largest_singular_value(J))
        return torch.stack(norms, -1)

    def product(self, patterns, first, last, a):
        """H_first^last a for vectors a (n, m), one per input, layers `first`..`last` of 2..L+1,
        never formed.

        H_l^{l'} = prod_{r=l}^{l'} (I + theta Sigma_r W_r^T); the last layer's factor is Sigma_{L+1}
        W_{L+1}^T.
        """
        for l in range(first - 1, last):
            step = (a @ self.W[l]).mul_(patterns[l])
            a = torch.add(a, step, alpha=self.theta) if self.skips(l) else step
        return a

    def product_transposed(self, patterns, first, last, b):
        """(H_first^last)^T b for vectors b (n, m), one per input."""
        for l in reversed(range(first - 1, last)):
            step = (b * patterns[l]) @ self.W[l].T
            b = torch.add(b, step, alpha=self.theta) if self.skips(l) else step
        return b

    def skips(self, l):
        """Whether layer l + 1, counted from l = 0, adds its update to its input."""
        return self.theta is not None and 0 < l < self.L

    def product_norm(self, patterns, first, last, *, seed, iterations=30):
        """||H_first^last||_2, (n,), by power iteration from below; its start is drawn from
        `seed`.
        """
        generator = torch.Generator().manual_seed(seed)
        start = torch.randn(patterns[0].shape, generator=generator, dtype=torch.float64).to(self.v)
        apply, transposed = (
            partial(f, patterns, first, last) for f in (self.product, self.product_transposed)
        )
        return largest_singular(apply, transposed, start, iterations - 1)[0]


def _largest_singular_value(J):
    """Of matrices (..., d, m) with d <= m, through their d x d Gram matrices."""
    return torch.linalg.eigvalsh(J @ J.mT)[..., -1].clamp(min=0).sqrt()


class ResidualRuns:
    """Nets `ResidualReLU(d, m, L, theta, seed=..)`, one per run and seed, for
    `overparam.training`.
    """

    def __init__(self, d, m, L, theta, *, seeds, dtype=torch.float64, device="cpu"):
        self.runs, self.m, self.seeds = len(seeds), m, list(seeds)
        self._net = lambda seed: ResidualReLU(d, m, L, theta, seed=seed, dtype=dtype, device=device)

    def descent(self, x, run=None):
        """Open one run (int) or all (None) for training on x: (n, d), or (R, n, d) for one data set
        per run.
        """
        if run is not None:
            return ResidualDescent(self._net(self.seeds[run]), x[run] if x.ndim == 3 else x)
        nets = [self._net(seed) for seed in self.seeds]
        stacked = [torch.stack(layers) for layers in zip(*(net.W for net in nets), strict=True)]
        return ResidualDescent(nets[0].with_weights(stacked), x)


class ResidualDescent:
    """A `ResidualReLU` in training: the state that `gradient_descent` moves, and what can be logged
    on the way.
    """

    def __init__(self, net, x):
        self.net, self.x, self.fixed = net, x, [net.theta]
        self.start = [W.clone() for W in net.W]
        self._forward = None  # (activations, patterns) at the current weights

    @property
    def state(self):
        return {f"W{l + 1}": W for l, W in enumerate(self.net.W)}

    def forward(self):
        """Outputs (..., n) at the current weights; computed once between two steps."""
        if self._forward is None:
            self._forward = self.net.forward(self.x)
        return self._forward[0][-1] @ self.net.v

    def descend(self, v):
        """Move the weights by -sum_i v_i df_i/dW; v (..., n). To be called after `forward`."""
        for W, (a, b) in zip(self.net.W, self.net.factors(self.x, v, self._forward), strict=True):
            (W.addmm_ if W.ndim == 2 else W.baddbmm_)(
                a.mT.expand(*W.shape[:-2], *a.mT.shape[-2:]), b, alpha=-1
            )
        self._forward = None

    def distances(self):
        """||W_l - W_l(0)||_F of every layer, (..., L + 1)."""
        return torch.stack(
            [(W - W0).norm(dim=(-2, -1)) for W, W0 in zip(self.net.W, self.start, strict=True)], -1
        )

    def gradient_norms(self, loss):
        """||dLoss/dW_l||_F and ||dLoss/dW_l||_2 of every layer, (..., L + 1, 2)."""
        _, c = loss(self.forward())
        return torch.stack(
            [product_norms(a, b) for a, b in self.net.factors(self.x, c, self._forward)], -2
        )

    def predict(self, x):
        """Outputs (..., n) at other inputs x (n, d)."""
        return self.net.outputs(x)


def theta_of(rule, L):
    """The residual weight that a rule gives at depth L; None for `plain`."""
    return {"1/L": 1 / L, "0.1/L": 0.1 / L, "1/sqrtL": L**-0.5, "1": 1.0, "plain": None}[rule]
