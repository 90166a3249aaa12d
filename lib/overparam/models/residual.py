"""The deep residual net of Frei et al. 2019 (Section 2), its plain twin, their layer products."""

import copy
from functools import partial

import torch

from .. import arguments
from ..errors import ParameterError
from ..norms import largest_singular
from .open_run import OpenRun


class ResidualReLU:
    """x_1 = relu(W_1^T x), x_l = x_{l-1} + theta relu(W_l^T x_{l-1}) for l = 2..L, f = v . x_{L+1}.

    x_{L+1} = relu(W_{L+1}^T x_L), and v = (1, .., 1, -1, .., -1) is fixed. `theta=None` gives the
    plain net x_l = relu(W_l^T x_{l-1}) of the same depth. Entries of W_l ~ N(0, 2/m): the variance
    uses the output width, W_1 (d, m) included.
    d: input dimension; m: width (even); L: depth. Drawn in float64 and cast. The weights `W`, a
    list of L + 1 matrices, may lead with a run axis, as all that is computed from them then does.
    Source: Frei et al. 2019, Section 2, Assumption 3.3.
    """

    def __init__(self, d, m, L, theta, *, seed, dtype=torch.float64, device="cpu"):
        if m % 2:
            raise ParameterError(f"the width must be even, for as many +1 as -1 in v; not {m}")
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

    def skips(self, l):
        """Whether layer l, of 1..L+1, adds its update to its input."""
        return self.theta is not None and 1 < l <= self.L

    def joined(self, l, h, update):
        """h + theta update in a residual layer l, else the update alone."""
        return torch.add(h, update, alpha=self.theta) if self.skips(l) else update

    def forward(self, x, change=None):
        """Activations [x_1, .., x_{L+1}], each (n, m), and patterns [Sigma_1, .., Sigma_{L+1}].

        Patterns are booleans (n, m). change(l, h, z): what a change of W_l adds to z = W_l^T h, or
        None where there is none.
        """
        if x.shape[-1] != self.W[0].shape[-2]:
            raise ParameterError(
                f"x has {x.shape[-1]} columns, the net takes {self.W[0].shape[-2]}"
            )
        if x.dtype != self.W[0].dtype:
            raise ParameterError(
                f"x is {x.dtype} and the net is {self.W[0].dtype}: make them equal"
            )
        h, activations, patterns = x, [], []
        for l, W in enumerate(self.W, 1):
            z = h @ W
            step = change(l, h, z) if change else None
            z = z if step is None else z + step
            patterns.append(z > 0)
            h = self.joined(l, h, z.clamp_(min=0))
            activations.append(h)
        return activations, patterns

    def outputs(self, x):
        """f(x), (n,), for x (n, d)."""
        return self.forward(x)[0][-1] @ self.v

    def factors(self, x, v=None, forward=None):
        """[(x_{l-1}, z_l)], l = 1..L+1, each (n, m): v_i df_i/dW_l = x_{l-1,i} z_{l,i}^T.

        v: (n,), or None for 1; forward: what `forward(x)` gave, if known.
        Source: Frei et al. 2019, eq. (2).
        """
        activations, patterns = forward or self.forward(x)
        back = self.v * patterns[-1]
        rows = [back if v is None else back * v.unsqueeze(-1)]
        back = rows[0] @ self.W[-1].mT
        for l in range(self.L, 0, -1):
            row = back * patterns[l - 1]
            rows.append(row.mul_(self.theta) if self.skips(l) else row)
            if l > 1:
                step = row @ self.W[l - 1].mT
                back = back.add_(step) if self.skips(l) else step
        return list(zip([x, *activations[:-1]], reversed(rows), strict=True))

    def input_jacobian_norms(self, patterns):
        """||dx_l/dx||_2 at every input, (n, L + 1): exact.

        W_1 Sigma_1, (d, m), is pushed through the layers.
        """
        J = patterns[0].unsqueeze(-2) * self.W[0]  # (n, d, m)
        norms = [_largest_singular_value(J)]
        for l in range(2, self.L + 2):
            J = self.joined(l, J, (J @ self.W[l - 1]).mul_(patterns[l - 1].unsqueeze(-2)))
            norms.append(_largest_singular_value(J))
        return torch.stack(norms, -1)

    def product(self, patterns, first, last, a):
        """H_first^last a for vectors a (n, m), one per input, layers `first`..`last` of 2..L+1.

        H_l^{l'} = prod_{r=l}^{l'} (I + theta Sigma_r W_r^T), never formed; the last layer's factor
        is Sigma_{L+1} W_{L+1}^T.
        """
        for l in range(first, last + 1):
            a = self.joined(l, a, (a @ self.W[l - 1]).mul_(patterns[l - 1]))
        return a

    def product_transposed(self, patterns, first, last, b):
        """(H_first^last)^T b for vectors b (n, m), one per input."""
        for l in range(last, first - 1, -1):
            b = self.joined(l, b, (b * patterns[l - 1]) @ self.W[l - 1].T)
        return b

    def product_norm(self, patterns, first, last, *, seed, iterations=30):
        """||H_first^last||_2, (n,), by power iteration from below; `seed` is that of its start."""
        generator = torch.Generator().manual_seed(seed)
        start = torch.randn(patterns[0].shape, generator=generator, dtype=torch.float64).to(self.v)
        apply = partial(self.product, patterns, first, last)
        transposed = partial(self.product_transposed, patterns, first, last)
        return largest_singular(apply, transposed, start, iterations - 1)[0]


def _largest_singular_value(J):
    """Of matrices (..., d, m) with d <= m, through their d x d Gram matrices."""
    return torch.linalg.eigvalsh(J @ J.mT)[..., -1].clamp(min=0).sqrt()


class ResidualRuns:
    """Nets `ResidualReLU(d, m, L, theta, seed=..)`, one per run and seed, for training."""

    def __init__(self, d, m, L, theta, *, seeds, dtype=torch.float64, device="cpu"):
        self.seeds = arguments.seeds(seeds)
        self.runs, self.m, self.dtype = len(self.seeds), m, dtype
        self._net = partial(ResidualReLU, d, m, L, theta, dtype=dtype, device=device)

    def descent(self, x, run=None):
        """Open one run (int) or all (None) on x: (n, d), or (R, n, d), one data set per run."""
        if run is not None:
            net = self._net(seed=self.seeds[run])
            return ResidualDescent(net, x[run] if x.ndim == 3 else x, run)
        nets = [self._net(seed=seed) for seed in self.seeds]
        stacked = [torch.stack(layers) for layers in zip(*(net.W for net in nets), strict=True)]
        return ResidualDescent(nets[0].with_weights(stacked), x)


class ResidualDescent(OpenRun):
    """A `ResidualReLU` in training."""

    flat = True

    def __init__(self, net, x, run=None):
        self.net, self.x, self.run = net, x, run
        self.fixed = [net.theta]  # what the run is drawn as, beside its state
        self.start = [W.clone() for W in net.W]
        self._forward = None  # (activations, patterns) at the current weights

    @property
    def state(self):
        return {f"W{l}": W for l, W in enumerate(self.net.W, 1)}

    def forward(self):
        """Outputs (..., n) at the current weights; computed once between two steps."""
        if self._forward is None:
            self._forward = self.net.forward(self.x)
        return self._forward[0][-1] @ self.net.v

    def factors(self, v):
        """[(x_{l-1}, z_l)], l = 1..L+1, as `OpenRun` says; v (..., n). After `forward`."""
        return self.net.factors(self.x, v, self._forward)

    def descend(self, v):
        """Move the weights by -sum_i v_i df_i/dW; v (..., n). To be called after `forward`."""
        for W, (h, z) in zip(self.net.W, self.factors(v), strict=True):
            h = h.mT.expand(*W.shape[:-2], *h.mT.shape[-2:])
            (W.addmm_ if W.ndim == 2 else W.baddbmm_)(h, z, alpha=-1)
        self._forward = None

    def changes(self):
        """W_l - W_l(0), l = 1..L+1, as `OpenRun` says."""
        for W, W0 in zip(self.net.W, self.start, strict=True):
            yield W - W0

    def predict(self, x):
        """Outputs (..., n) at other inputs x (n, d)."""
        return self.net.outputs(x)


def theta_of(rule, L):
    """The residual weight that a rule gives at depth L; None for `plain`."""
    return {"1/L": 1 / L, "0.1/L": 0.1 / L, "1/sqrtL": L**-0.5, "1": 1.0, "plain": None}[rule]
