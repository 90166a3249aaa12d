"""F(W + W') - F(W) - <dF(W), W'> of a deep ReLU net and n samples, along directions W' and at kinks.

Changes are lists [W'_1, .., W'_L] of matrices (m, m), or of pairs (P, H) of (n, m) that stand for W'_l = P^T H.
Source: Allen-Zhu et al. 2019, Theorem 4.
"""

import torch

from ..norms import product_norms, spectral_norm


def gaussian(net, *, seed, iterations=100):
    """Independent Gaussian matrices, scaled to spectral norm 1 (by power iteration, which may leave 1 % more)."""
    generator = torch.Generator().manual_seed(seed)
    draws = [torch.randn(W.shape, generator=generator, dtype=torch.float64).to(W) for W in net.W]
    return [draw / spectral_norm(draw, iterations) for draw in draws]


def along_gradient(net, x, v):
    """The pairs (P, H) of the gradient sum_i v_i . dy(x_i)/dW, scaled to max_l |W'_l|_2 = 1; v (n, d): dF/dy."""
    g, h = net.forward(x)
    pairs = [(p * net.reach(l), below) for l, (p, below) in enumerate(zip(net.sensitivities(g, v), h, strict=False), 1)]
    largest = torch.stack([product_norms(*pair)[..., 1] for pair in pairs]).max()
    return [(p / largest, below) for p, below in pairs]


def remainder(net, x, loss, changes, sizes):
    """F(W + w W') - F(W) - w <dF(W), W'> at the T sizes w, (T,); loss: of `overparam.training`, gives F at outputs."""
    g, h = net.forward(x)
    start, v = loss(h[-1] @ net.B.mT)
    slope = sum(
        net.reach(l) * (p * _acted(change, below)).sum()
        for l, (p, change, below) in enumerate(zip(net.sensitivities(g, v), changes, h, strict=False), 1)
    )
    w = torch.as_tensor(sizes, dtype=x.dtype, device=x.device)[:, None, None]
    h0 = h[0].expand(len(sizes), *h[0].shape)
    _, moved = net.upward(h0, change=lambda l, below, _: w * _acted(changes[l - 1], below))
    after = torch.stack([loss(y)[0] for y in moved[-1] @ net.B.mT])
    return after - start - w[:, 0, 0] * slope


def _acted(change, h):
    """W' h of rows h (..., m)."""
    return h @ change[1].mT @ change[0] if isinstance(change, tuple) else h @ change.mT


def kinks(net, x, loss, sizes, *, bisections=50):
    """The remainder of the W'_L that bends most neurons past zero with the sign that raises F, at T sizes |W'_L|_2.

    V_ik = -sign(g_ik) t c_ik where |g_ik| < t c_ik / 2 and c_i = B^T v_i / |v_i|, v_i = dF/dy_i, is positive; W'_L, of
    rank n, maps h_{i,L-1} to V_i. t is found by bisection. Returns {"remainder", "norm" (T,), "condition" ()}, of the
    norms that were reached and of the matrix of the h_{i,L-1}.
    """
    g, h = net.forward(x)
    start, v = loss(h[-1] @ net.B.mT)
    c = (v @ net.B / v.norm(dim=1, keepdim=True)).clamp(min=0)
    sizes = torch.as_tensor(sizes, dtype=x.dtype, device=x.device)
    inverse = torch.linalg.pinv(h[-2])  # (m, n)
    low, high = torch.zeros_like(sizes), torch.full_like(sizes, 1e3)
    for _ in range(bisections):
        middle = (low + high) / 2
        over = _span_norm(_bent(g[-1], c, middle), inverse) > sizes
        low, high = torch.where(over, low, middle), torch.where(over, middle, high)
    V = _bent(g[-1], c, low)
    after = torch.stack([loss(y)[0] for y in (g[-1] + V).clamp(min=0) @ net.B.mT])
    slope = ((V * (g[-1] >= 0)) @ net.B.mT * v).sum((-2, -1))
    singular = torch.linalg.svdvals(h[-2])
    return {
        "remainder": after - start - slope,
        "norm": _span_norm(V, inverse),
        "condition": singular[0] / singular[-1],
    }


def _bent(g, c, t):
    """V (T, n, m) for the multipliers t (T,)."""
    t = t[:, None, None]
    return torch.where(g.abs() < t * c / 2, -torch.sign(g) * t * c, 0)


def _span_norm(V, inverse):
    """|W'|_2 (T,) of the W' that maps h_i to V_i and vanishes on what is orthogonal to all h_i."""
    return product_norms(V, inverse.mT.expand_as(V))[..., 1]
