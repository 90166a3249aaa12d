"""Norms of matrices that are products, or that are seen through their products with vectors
alone.
"""

import torch


def largest_singular(apply, transposed, start, iterations):
    """(value (...), left vector, right vector) of the largest singular value, by power iteration:
    from below.

    apply: v (..., q) -> M v (..., p); transposed: u (..., p) -> M^T u; start: v (..., q). A row
    each of the leading axes. One product with M is made after the `iterations` with M^T M; all of
    it is 0 where M v is.
    """
    v = start
    for _ in range(iterations):
        v = transposed(_unit(apply(_unit(v))))
    v = _unit(v)
    u = apply(v)
    return u.norm(dim=-1), _unit(u), v


def spectral_norm(matrix, iterations=30):
    """||M||_2 of matrices (..., p, q) by power iteration from one fixed Gaussian vector: from
    below; 0 for M = 0.

    >>> round(float(spectral_norm(torch.diag(torch.tensor([3.0, 1.0])))), 4)
    3.0
    """
    start = torch.randn(
        matrix.shape[-1], generator=torch.Generator().manual_seed(0), dtype=torch.float64
    ).to(matrix)
    times = lambda M: lambda v: (M @ v.unsqueeze(-1)).squeeze(-1)  # noqa: E731
    return largest_singular(times(matrix), times(matrix.mT), start, iterations)[0]


def product_norms(a, b):
    """||a^T b||_F and ||a^T b||_2, (..., 2), of a (..., n, p), b (..., n, m): n x n at most, by
    triangles of QR.
    """
    if min(a.shape[-1], b.shape[-1]) > b.shape[-2]:
        a, b = (torch.linalg.qr(t.mT, mode="r").R.mT for t in (a, b))
    product = a.mT @ b
    return torch.stack([product.norm(dim=(-2, -1)), torch.linalg.matrix_norm(product, 2)], -1)


def squared_row_differences(now, before):
    """||a_i b_i^T - c_i d_i^T||_F^2 of each row i of the pairs (a, b), (c, d), (..., n, m): (...,
    n), digits kept.
    """
    (a, b), (c, d) = now, before
    da, db = a - c, b - d
    cross = 2 * (a * da).sum(-1) * (db * d).sum(-1)
    total = (
        a.square().sum(-1) * db.square().sum(-1) + da.square().sum(-1) * d.square().sum(-1) + cross
    )
    return total.clamp(min=0)


def _unit(v):
    return v / v.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(v.dtype).tiny)
