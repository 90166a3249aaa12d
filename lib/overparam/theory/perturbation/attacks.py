"""Attacks: changes W'_l of spectral norm at most omega that hit one input of a net hardest.

Each takes a `Start`, of a deep ReLU net, and T radii, and gives an `Attack`. Those of the last
layer alone reach the largest change there is of what they aim at, so what they measure bounds the
supremum over all changes from below; the others are greedy.
The neighbourhood is that of Allen-Zhu et al. 2019, Section 8; the attacks are ours.
"""

import math

import torch

from .changes import Attack

PAST_ZERO = (
    1 + 1e-4
)  # pre-activations are moved so much past zero that rounding leaves them flipped


def random(start, omegas, *, seed):
    """Gaussian W'_l of spectral norm omega: v_l ~ N(0, (omega |h_{l-1}|)^2 / (4 m) I).

    One draw serves all radii.
    """
    generator = torch.Generator().manual_seed(seed)

    def choose(l, z, h, budget):
        noise = torch.randn(z.shape[1:], generator=generator, dtype=torch.float64).to(z)
        return budget * noise / (2 * math.sqrt(z.shape[-1]))

    return Attack(start, omegas, choose)


def gradient(start, omegas, *, sign=1):
    """Every W'_l along sign dy_j(0)/dW_l, which has rank one."""

    def choose(l, z, h, budget):
        z0, below = start.z[l - 1], start.h[l - 1]
        return sign * budget * _unit(z0) * (_unit(below) * _unit(h)).sum(-1, keepdim=True)

    return Attack(start, omegas, choose)


def stretch(start, omegas):
    """Every W'_l = omega h_{l-1} h_{l-1}^T / |h_{l-1}|^2, along the activations themselves."""
    return Attack(start, omegas, lambda l, z, h, budget: budget * _unit(h))


def _of_last_layer(start, omegas, choose):
    """The attack that changes W_L alone, by choose(z, budget)."""
    last = start.net.L
    return Attack(start, omegas, lambda l, z, h, budget: choose(z, budget) if l == last else None)


def flip_last(start, omegas):
    """W'_L alone: as many sign changes of the last layer as the norm allows.

    Exact, up to the share PAST_ZERO - 1.
    """
    reach = start.net.reach(start.net.L)
    return _of_last_layer(start, omegas, lambda z, budget: flips(z / reach, z.abs(), budget))


def grad_last(start, omegas):
    """W'_L alone: the largest |dy_j/dW_L - dy_j(0)/dW_L|_F.

    A knapsack of values B_jk^2 at costs g_k^2: exact up to one neuron, and up to PAST_ZERO.
    """

    def choose(z, budget):
        return flips(z, _price(z, start.back[-1]), budget)

    return _of_last_layer(start, omegas, choose)


def kernel_last(start, omegas):
    """W'_L alone: the largest rise of the last layer's kernel at x, by turning neurons on.

    Exact as `grad_last` is.
    """

    def choose(z, budget):
        return flips(z, torch.where(z < 0, _price(z, start.back[-1]), torch.inf), budget)

    return _of_last_layer(start, omegas, choose)


def output_last(start, omegas):
    """W'_L alone: the largest y_j - y_j(0) - y_j^ntk > 0. Exact up to one neuron, see `_kinks`."""
    b = start.back[-1].clamp(min=0)
    return _of_last_layer(start, omegas, lambda z, budget: _kinks(z, b, budget))


def flip_all(start, omegas):
    """In every layer as many as possible of the signs that still agree with the start."""

    def choose(l, z, h, budget):
        agree = (z >= 0) == (start.g[l - 1] >= 0)
        return flips(z, torch.where(agree, z.abs(), torch.inf), budget)

    return Attack(start, omegas, choose)


def output_all(start, omegas):
    """`output_last` in every layer, Back_{l+1}^T e_j for B_j, at the signs that still agree."""

    def choose(l, z, h, budget):
        agree = (z >= 0) == (start.g[l - 1] >= 0)
        return _kinks(z, start.back[l - 1].clamp(min=0) * agree, budget)

    return Attack(start, omegas, choose)


def amplify(start, omegas, *, rounds=6):
    """A large |h'_L|: every v_l along J_l^T q, q the h'_L of the round before, at first h_L."""
    attack = Attack(start, omegas)
    q = attack.h[-1]
    for _ in range(rounds):
        pulls = attack.pull(q * (attack.g[-1] >= 0))

        def choose(l, z, h, budget, pulls=pulls):
            return budget * _unit(pulls[l - 1])

        attack = Attack(start, omegas, choose)
        q = attack.h[-1] - start.h[-1]
    return attack


def aligned_flip(start, omegas, *, supports=(0.5, 1, 2, 4, 8), rounds=3):
    """Many sign changes in layer L by all layers: those below push its smallest |g_L| to zero.

    The last one flips. supports: how many coordinates are pushed, in units of what `flip_last`
    flips. The best of them is kept, for each radius and input.
    """
    if start.net.L == 1:
        return flip_last(start, omegas)
    best = _pushed(start, omegas, supports[0], rounds)
    for factor in supports[1:]:
        attack = _pushed(start, omegas, factor, rounds)
        best = best.better(attack, _changed(attack) > _changed(best))
    return best


def _changed(attack):
    return ((attack.g[-1] >= 0) != (attack.start.g[-1] >= 0)).sum(-1)


def _pushed(start, omegas, factor, rounds):
    g, last = start.g[-1], start.net.L
    reach = start.net.reach(last)
    radii = torch.as_tensor(omegas, dtype=g.dtype, device=g.device)[:, None, None]
    count = factor * g.shape[-1] * (3 * radii.square() / math.pi) ** (1 / 3)
    target = -torch.sign(g) * (g.abs().argsort(-1).argsort(-1) < count)
    attack = Attack(start, omegas)
    for _ in range(rounds):
        pulls = attack.pull(target)

        def choose(l, z, h, budget, pulls=pulls):
            if l < last:
                return budget * _unit(pulls[l - 1])
            return flips(z / reach, torch.where((z >= 0) == (g >= 0), z.abs(), torch.inf), budget)

        attack = Attack(start, omegas, choose)
    return attack


def _unit(v):
    return v / v.norm(dim=-1, keepdim=True)


def _price(z, b):
    """|g_k| / |b_k|: what a sign change costs over what it is worth, roots; b_k = 0 never pays."""
    return z.abs() / b.abs().clamp(min=torch.finfo(z.dtype).tiny)


def flips(z, price, budget):
    """Sign changes v_k = -z_k PAST_ZERO, cheapest first by `price` (..., m), while |v| <= budget.

    budget: (..., 1).
    """
    cost = (z * PAST_ZERO).square().where(price < torch.inf, torch.inf)
    order = price.argsort(-1)
    chosen = torch.zeros_like(z, dtype=torch.bool)
    chosen = chosen.scatter(-1, order, cost.gather(-1, order).cumsum(-1) <= budget**2)
    return torch.where(chosen, -z * PAST_ZERO, 0)


def _kinks(z, b, budget):
    """v with |v| <= budget (..., 1) that maximises sum_k b_k (|v_k| - |z_k|)_+, v_k against z_k.

    b >= 0. On a set S of neurons v_k is proportional to b_k and the sum is
    budget |b_S| - sum_S b_k |z_k|. With S ordered by |z_k| / b_k the best set is a first part of
    the order and at most one neuron more; here it is the best first part.
    """
    b = b.expand_as(z)
    order = _price(z, b).where(b > 0, torch.inf).argsort(-1)
    b_in, z_in = b.gather(-1, order), z.abs().gather(-1, order)
    squares = b_in.square().cumsum(-1)
    last = (budget * squares.sqrt() - (b_in * z_in).cumsum(-1)).argmax(-1, keepdim=True)
    chosen = torch.arange(z.shape[-1], device=z.device) <= last
    scale = budget / squares.gather(-1, last).sqrt()
    chosen = torch.zeros_like(chosen).scatter(-1, order, chosen)
    return torch.where(chosen, -torch.sign(z) * scale * b, 0)
