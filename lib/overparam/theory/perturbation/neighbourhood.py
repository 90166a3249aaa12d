"""Nets within ||W_l - W_l(0)||_F <= tau of a residual net's start: drawn, along the gradient, and adversarial.

Every function returns changes of the weights, a list of L + 1 matrices of Frobenius norm tau (at most, where patterns
are flipped one by one), for `moved`. Source of the neighbourhood: Frei et al. 2019, Section 3.
"""

import torch

PAST_ZERO = 1 + 1e-4  # a pre-activation is moved this much further than to zero, so that rounding leaves it flipped


def moved(net, changes):
    """The net with W_l + changes[l-1]."""
    return net.with_weights([W + change for W, change in zip(net.W, changes, strict=True)])


def gaussian(net, tau, *, seed):
    """Independent Gaussian directions, of norm tau in every layer."""
    generator = torch.Generator().manual_seed(seed)
    draws = [torch.randn(W.shape, generator=generator, dtype=torch.float64).to(W) for W in net.W]
    return [draw * (tau / draw.norm()) for draw in draws]


def along_gradient(net, x, c, tau):
    """The direction of sum_i c_i df(x_i)/dW_l, of norm tau in every layer; x: (n, d), c: (n,)."""
    return [g * (tau / g.norm()) for g in net.gradients(x, c)]


def flip_cheapest(z, budget, among=None):
    """The change of pre-activations z (m,) that flips as many signs as a Euclidean norm `budget` allows.

    among: boolean (m,), the ones that may be flipped (default: all). A pattern is 1{z > 0}. Exact up to PAST_ZERO:
    flipping z_j costs z_j^2, so the smallest ones come first.
    """
    cost = (z * PAST_ZERO).square()
    cost = cost if among is None else cost.where(among, torch.inf)
    order = cost.argsort()
    chosen = order[cost[order].cumsum(0) <= budget**2]
    change = torch.zeros_like(z)
    change[chosen] = -z[chosen] * PAST_ZERO
    return change


def flip_patterns(net, x, tau):
    """Flip patterns of one input x (d,), layer by layer, each layer greedily with a change of norm at most tau.

    At layer l the input h is the already perturbed one; among the neurons that still agree with the start the cheapest
    are flipped by the change h delta^T / |h|^2 of rank one.
    """
    _, start = net.forward(x.unsqueeze(0))
    h, changes = x, []
    for l, W in enumerate(net.W):
        z = h @ W
        delta = flip_cheapest(z, tau * h.norm(), among=(z > 0) == start[l][0])
        changes.append(torch.outer(h, delta) / h.square().sum())
        update = (z + delta).clamp(min=0)
        h = h.add(update, alpha=net.theta) if net.skips(l) else update
    return changes


def flip_last_layer(net, x, tau):
    """Flip, in the last layer alone, the cheapest neurons with v_j = +1 for one input x (d,), mirrored: z_j to -z_j.

    |delta| <= tau |x_L|. Each moved neuron changes f by |z_j| beyond its linearisation, all with the same sign.
    """
    h = net.forward(x.unsqueeze(0))[0][-2][0]
    z = h @ net.W[-1]
    delta = 2 * flip_cheapest(z, tau * h.norm() / 2, among=net.v > 0) / PAST_ZERO
    return [torch.zeros_like(W) for W in net.W[:-1]] + [torch.outer(h, delta) / h.square().sum()]


def flipped(net, other, x):
    """Shares of the patterns of `net` that differ in `other`, (n, L + 1)."""
    pairs = zip(net.forward(x)[1], other.forward(x)[1], strict=True)
    return torch.stack([(a != b).double().mean(-1) for a, b in pairs], -1)


def shifts(net, other, x):
    """|x_l' - x_l| of every layer between the two nets, (n, L + 1)."""
    pairs = zip(net.forward(x)[0], other.forward(x)[0], strict=True)
    return torch.stack([(a - b).norm(dim=-1) for a, b in pairs], -1)


def spread(net, changes):
    """h = |D_1|_2 + theta sum_{l=2..L} |D_l|_2 + |D_{L+1}|_2 of changes D, spectral norms; theta = 1 for a plain net.

    Source: Frei et al. 2019, Lemma 4.2.
    """
    norms = [torch.linalg.matrix_norm(change, 2) for change in changes]
    return sum(norm * (net.theta if net.skips(l) else 1) for l, norm in enumerate(norms))


def linear_complexity(net, x, signs):
    """Sum_l |sum_i xi_i df(x_i)/dW_l|_F / n per unit of tau, and its parts: (L + 1,) for signs xi (n,) of +1, -1.

    tau times the sum, averaged over xi, is the linear part I_2 of the Rademacher complexity of the tau-neighbourhood.
    Source: Frei et al. 2019, Appendix A.2.
    """
    return torch.stack([g.norm() for g in net.gradients(x, signs)]) / len(signs)


def linear_complexities(net, x, signs):
    """What `linear_complexity` gives, for many sign vectors (draws, n) at once: (draws, L + 1).

    |sum_i xi_i df(x_i)/dW_l|^2 = xi^T G xi, where G_ij = <df(x_i)/dW_l, df(x_j)/dW_l> is the product of the Gram
    entries of the layer's inputs and of its sensitivities, as each gradient has rank one.
    """
    activations, patterns = net.forward(x)
    parts = []
    for a, b in zip([x, *activations[:-1]], net.sensitivities(patterns), strict=True):
        gram = (a @ a.mT) * (b @ b.mT)
        parts.append(((signs @ gram) * signs).sum(-1).clamp(min=0).sqrt())
    return torch.stack(parts, -1) / signs.shape[-1]


def ascent(net, x, signs, tau, steps=40):
    """Lower estimates of sup sum_i xi_i (f_W(x_i) - f_{W(0)}(x_i)) / n over the tau-neighbourhood, (steps + 1,).

    Projected gradient ascent from the maximiser of the linearised net, with steps of length tau in every layer. The
    supremum is at least the largest entry; the first is that of the start. signs: xi (n,) of +1, -1.
    """
    base, changes, values = net.outputs(x), along_gradient(net, x, signs, tau), []
    for step in range(steps + 1):
        current = moved(net, changes)
        values.append(((current.outputs(x) - base) @ signs).double() / len(signs))
        if step < steps:
            ahead = along_gradient(current, x, signs, tau)
            changes = [_into_ball(change + more, tau) for change, more in zip(changes, ahead, strict=True)]
    return torch.stack(values).cpu()


def _into_ball(change, tau):
    return change * (tau / change.norm()).clamp(max=1)
