"""The fraction of a factorial experiment, and leaky-ReLU nets with biases and batch norm under GD, SGD and Adam."""

import itertools
from collections import Counter

import torch

BETAS, EPSILON = (0.9, 0.999), 1e-8  # of Adam: the values of Kingma and Ba 2015
FLOOR = 1e-5  # added to a batch's variance, in units of the variance 2/m that a pre-activation has at first


def fraction(factors):
    """A regular fraction of a factorial experiment, balanced over every pair of factors.

    factors: {name: levels}. Factors are grouped by their number q of levels; of a group with three factors or more the
    combinations stay whose level numbers (from 0) add up to 0 modulo q, of a smaller group all. With k factors a group
    shrinks by q and has resolution k (main effects of its factors are clear of each other for k >= 3, and of each
    other's two-factor interactions for k >= 4); factors of different groups are crossed in full.
    Returns a list of {name: level}. Source: Finney 1945; Box and Hunter 1961.
    """
    sizes = Counter(len(levels) for levels in factors.values())
    cells = []
    for cell in full(factors):
        sums = Counter()
        for name, level in cell.items():
            sums[len(factors[name])] += factors[name].index(level)
        if all(sums[q] % q == 0 for q, count in sizes.items() if count >= 3):
            cells.append(cell)
    return cells


def full(factors):
    """All combinations of {name: levels}, as a list of {name: level}."""
    return [dict(zip(factors, chosen, strict=True)) for chosen in itertools.product(*factors.values())]


def loss_and_derivative(kind, u, y):
    """Mean loss over examples (...) and its derivative by the outputs u (..., n, d), for targets y (S, n, d).

    squared: |u - y|^2 / 2. logistic: log(1 + exp(-y u)) for d = 1 and y = +1 or -1, the cross entropy of the softmax
    for one-hot y otherwise.
    """
    n = y.shape[-2]
    if kind == "squared":
        residual = u - y
        return residual.square().sum((-2, -1)) / (2 * n), residual / n
    if y.shape[-1] == 1:
        margins = u * y
        return torch.nn.functional.softplus(-margins).mean((-2, -1)), torch.sigmoid(-margins) * y / -n
    logs = torch.log_softmax(u, -1)
    return -(logs * y).sum((-2, -1)) / n, (logs.exp() - y) / n


class LeakRuns:
    """The net of `LeakyMLP` with biases and batch norm, for runs (G, S): settings (slope, step size) times seeds.

    z_l = W_l h_{l-1}; with batch norm z_l becomes g_l (z_l - mean) / sqrt(variance + floor) over the examples that are
    passed together, g_l trained and sqrt(2/m) at first, the scale of z_l without it; with biases b_l is added, trained
    and 0 at first; then the rescaled leaky ReLU. W_l, g_l and b_l are trained, A and B are not.
    Source: Guo et al. 2024, Algorithm 1, eq. (2); biases and batch norm are ours (Ioffe and Szegedy 2015).
    """

    def __init__(self, net, alphas, *, biases=False, batch_norm=False):
        """net: a `LeakyMLP` of one run per seed, whose draws are taken; alphas: G slopes."""
        G, (S, L, m, _) = len(alphas), net.W.shape
        alpha = torch.tensor(alphas, dtype=torch.float64)[:, None, None, None]
        norm = torch.sqrt(1 + alpha**2)
        self.positive, self.negative = ((t / norm).to(net.W) for t in (torch.ones_like(alpha), alpha))
        self.B, self.floor = net.B, FLOOR * 2 / m
        self.W = [W.expand(G, S, m, m).clone() for W in net.W.unbind(1)]
        row = net.W.new_zeros(G, S, 1, m)
        self.shift = [row.clone() for _ in range(L)] if biases else None
        self.gain = [row + (2 / m) ** 0.5 for _ in range(L)] if batch_norm else None

    @property
    def weights(self):
        """All trained tensors, in the order of `gradients`."""
        return [*self.W, *(self.gain or []), *(self.shift or [])]

    def forward(self, h, rows=None):
        """Outputs (G, S, b, d) for h_0 (S, b, m); batch norm takes the moments of the first `rows` examples."""
        self.tape = []
        for l, W in enumerate(self.W):
            z, scale = h @ W.mT, None
            if self.gain:
                seen = z[..., :rows, :]
                mean = seen.mean(-2, keepdim=True)
                scale = ((seen - mean).square_().mean(-2, keepdim=True) + self.floor).rsqrt_()
                normal = (z - mean).mul_(scale)
                z = normal * self.gain[l]
            if self.shift:
                z += self.shift[l]
            slope = torch.where(z > 0, self.positive, self.negative)
            self.tape.append((h, slope, normal, scale) if self.gain else (h, slope))
            h = z.mul_(slope)
        return h @ self.B.mT

    def gradients(self, v):
        """Gradients of sum v . f by `weights`, for v (G, S, b, d). After `forward` of a batch."""
        delta, by_W, by_gain, by_shift = v @ self.B, [], [], []
        for l in reversed(range(len(self.W))):
            h, slope, *norm = self.tape[l]
            delta.mul_(slope)
            if self.gain or self.shift:
                by_shift.append(delta.sum(-2, keepdim=True))
            if self.gain:
                normal, scale = norm
                by_gain.append((delta * normal).sum(-2, keepdim=True))
                delta = (delta - (by_shift[-1] + normal * by_gain[-1]) / delta.shape[-2]) * (self.gain[l] * scale)
            by_W.append(delta.mT @ h)
            delta = delta @ self.W[l] if l else None
        return [*by_W[::-1], *by_gain[::-1], *(by_shift[::-1] if self.shift else [])]


class Optimizer:
    """Steps along the negative gradient (GD and SGD), or those of Adam, in place; eta: one step size per setting."""

    def __init__(self, weights, eta, adam):
        self.weights, self.eta, self.steps = weights, torch.tensor(eta, dtype=torch.float64), 0
        self.eta = self.eta.to(weights[0])[:, None, None, None]
        self.moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in weights] if adam else None

    def step(self, gradients):
        self.steps += 1
        if not self.moments:
            for weight, gradient in zip(self.weights, gradients, strict=True):
                weight.sub_(gradient.mul_(self.eta))
            return
        first, second = (1 - beta**self.steps for beta in BETAS)
        for weight, gradient, (mean, square) in zip(self.weights, gradients, self.moments, strict=True):
            mean.lerp_(gradient, 1 - BETAS[0])
            square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
            size = (square / second).sqrt_().add_(EPSILON)
            weight.sub_(size.reciprocal_().mul_(mean).mul_(self.eta / first))
