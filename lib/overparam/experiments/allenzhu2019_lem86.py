"""Changes of layer products by sparse sign errors and changed weights, as large as they are found.

Lower estimates of the suprema in Lemmas 8.6 and 8.7 of Allen-Zhu et al. 2019. Masks D are those of `products`.
"""

import torch

from ..theory.perturbation.products import back_through, norm, singular, through


def sign_errors(net, D, first, last, s, *, rounds=6, iterations=30, limit=3.0):
    """The largest norm found of the product with D_l + D''_l for D_l, first <= l < last, and its masks.

    D''_l has s nonzero entries in [-limit, limit]: each round puts +-limit where the product's singular vectors make
    the derivative largest, in all layers at once. Returns (norm (), masks). Source: Allen-Zhu et al. 2019, Lemma 8.6.
    """
    value, u, v = singular(net, D, first, last, iterations=iterations)
    best, changed = (value, D), D
    for _ in range(rounds):
        fresh = list(D)
        for l in range(first, last):
            slope = through(net, changed, first, l, v) * back_through(net, changed, l + 1, last, u)
            top = slope.abs().topk(s).indices
            fresh[l] = D[l].index_add(0, top, limit * torch.sign(slope[top]))
        changed = fresh
        value, u, v = singular(net, changed, first, last, iterations=iterations)
        best = (value, changed) if value > best[0] else best
    return best


def random_sign_errors(net, D, first, last, s, *, seed, iterations=30, limit=3.0):
    """The norm () of the product with s entries +-limit of D''_l at random places, first <= l < last."""
    generator, changed = torch.Generator().manual_seed(seed), list(D)
    for l in range(first, last):
        places = torch.randperm(net.m, generator=generator)[:s].to(D[l].device)
        signs = torch.randint(2, (s,), generator=generator).to(D[l]) * 2 - 1
        changed[l] = D[l].index_add(0, places, limit * signs)
    return norm(net, changed, first, last, iterations=iterations)


def changed_weights_norm(net, D, first, last, omega, *, iterations=50):
    """|(W_last + W'_last) D_{last-1} .. D_first (W_first + W'_first)|_2, (), for aligned W'_l of spectral norm omega.

    W'_l = omega b a^T with unit vectors a, b: where the product's leading singular vectors reach W_l from both sides,
    so that u^T P v grows by omega |a| |b| at first order in every layer. The net must not have residual layers.
    Source: Allen-Zhu et al. 2019, Lemma 8.6b.
    """
    _, u, v = singular(net, D, first, last, iterations=iterations)
    W = list(net.W)
    for l in range(first, last + 1):
        below = v if l == first else through(net, D, first, l - 1, v) * D[l - 1]
        above = u if l == last else back_through(net, D, l + 1, last, u) * D[l]
        W[l - 1] = torch.addr(W[l - 1], above / above.norm(), below / below.norm(), alpha=omega)
    return norm(net.with_weights(W), D, first, last, iterations=iterations)


def backward_changes(net, D, s, omega=0.0, *, limit=3.0):
    """|B (D_L + D''_L)(W_L + W'_L) .. (D_a + D''_a) - B D_L W_L .. D_a| of the first output at a = 1..L, (L,).

    From above, D''_l puts `limit` on the s largest entries of the row that arrives, and W'_l, of rank one and spectral
    norm omega, adds to it along what D_{l-1} lets through. At a = L the largest change there is, limit times the norm
    of the s largest entries of B. Source: Allen-Zhu et al. 2019, Lemma 8.7.
    """
    start = row = net.B[0]
    changes = []
    for l in range(net.L, 0, -1):
        mask = D[l].index_add(0, row.abs().topk(s).indices, torch.full_like(row[:s], limit)) if s else D[l]
        start, row = start * D[l], row * mask
        changes.append((row - start).norm())
        start, below = net.apply_transposed(l, start), net.apply_transposed(l, row)
        let = below * D[l - 1]
        row = below + omega * row.norm() * let / let.norm()
    return torch.stack(changes[::-1])
