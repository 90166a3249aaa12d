"""Products of layers W_b D_{b-1} W_{b-1} .. D_a W_a at one input of a deep ReLU net.

Norms and sparse suprema: every supremum comes from an iteration, and is a lower estimate of it.
Source: Allen-Zhu et al. 2019, Lemmas 7.3, 7.4.
"""

import torch

from ...norms import largest_singular


def masks(net, x):
    """[D_0, .., D_L], each (m,), of zeros and ones, at one input x (p,); D_0 is that of h_0."""
    g, h = net.forward(x.unsqueeze(0))
    return [(h[0][0] > 0).to(h[0]), *((pre[0] >= 0).to(pre) for pre in g)]


def through(net, D, first, last, a):
    """W_last D_{last-1} .. D_first W_first a for vectors a (..., m).

    For a residual net with I + tau W_l for W_l.
    """
    for l in range(first, last + 1):
        a = net.apply(l, a if l == first else a * D[l - 1])
    return a


def back_through(net, D, first, last, b):
    """The transpose of `through`, on b (..., m)."""
    for l in range(last, first - 1, -1):
        b = net.apply_transposed(l, b if l == last else b * D[l])
    return b


def product(net, D, first, last):
    """The matrix W_last D_{last-1} .. D_first W_first, (m, m)."""
    eye = torch.eye(net.m, dtype=D[0].dtype, device=D[0].device)
    return through(net, D, first, last, eye).T


def norm(net, D, first, last, *, masked=False, iterations=50):
    """|W_last D_{last-1} .. W_first|_2 by power iteration from a fixed start, ().

    masked: of D_last .. D_{first-1}.
    """
    return singular(net, D, first, last, masked=masked, iterations=iterations)[0]


def singular(net, D, first, last, *, masked=False, iterations=50):
    """The largest singular value (), and its left and right vectors (m,), as `norm` finds it."""
    left, right = (D[last], D[first - 1]) if masked else (1, 1)
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(net.m, generator=generator, dtype=torch.float64).to(D[0])

    def apply(v):
        return left * through(net, D, first, last, right * v)

    def transposed(u):
        return right * back_through(net, D, first, last, left * u)

    return largest_singular(apply, transposed, start, iterations)


def sparse_gain(matrix, s, *, starts=8, iterations=10):
    """sup |M v|, v unit with s nonzeros, M (q, m): truncated power from the longest columns."""
    columns = matrix.norm(dim=0).topk(min(starts, matrix.shape[1])).indices
    v = torch.zeros(len(columns), matrix.shape[1], dtype=matrix.dtype, device=matrix.device)
    v.scatter_(1, columns.unsqueeze(1), 1.0)
    best = matrix.norm(dim=0).max()
    for _ in range(iterations):
        v = _sparse((v @ matrix.T) @ matrix, s)
        best = torch.maximum(best, (v @ matrix.T).norm(dim=1).max())
    return best


def sparse_form(matrix, s, *, starts=8, iterations=10):
    """sup |u^T M v|, u, v unit with s nonzeros, M (q, m): alternation from the largest entries."""
    columns = matrix.abs().amax(0).topk(min(starts, matrix.shape[1])).indices
    v = torch.zeros(len(columns), matrix.shape[1], dtype=matrix.dtype, device=matrix.device)
    v.scatter_(1, columns.unsqueeze(1), 1.0)
    best = matrix.abs().max()
    for _ in range(iterations):
        u = _sparse(v @ matrix.T, s)
        v = _sparse(u @ matrix, s)
        best = torch.maximum(best, ((u @ matrix) * v).sum(1).max())
    return best


def _sparse(a, s):
    """The s largest entries of each row, scaled to norm 1."""
    top = a.abs().topk(s, dim=1).indices
    kept = torch.zeros_like(a).scatter_(1, top, a.gather(1, top))
    return kept / kept.norm(dim=1, keepdim=True)
