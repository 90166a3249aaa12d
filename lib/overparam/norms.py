"""Norms of matrices that are products, or that are seen through their products with vectors alone.

Where a matrix has two norms they stand in this order: spectral, Frobenius.
"""

import torch


def largest_singular(apply, transposed, start, iterations):
    """(value (...), left vector, right vector) of the largest singular value: from below.

    By power iteration. apply: v (..., q) -> M v (..., p); transposed: u (..., p) -> M^T u; start: v
    (..., q), a row each of the leading axes. One product with M is made after the `iterations` with
    M^T M; all of it is 0 where M v is.
    """
    v = start
    for _ in range(iterations):
        v = transposed(_unit(apply(_unit(v))))
    v = _unit(v)
    u = apply(v)
    return u.norm(dim=-1), _unit(u), v


def spectral_norm(matrix, iterations=30):
    """||M||_2 of matrices (..., p, q) from below, by power iteration from a fixed Gaussian vector.

    0 for M = 0.

    >>> round(float(spectral_norm(torch.diag(torch.tensor([3.0, 1.0])))), 4)
    3.0
    """
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(matrix.shape[-1], generator=generator, dtype=torch.float64).to(matrix)

    def apply(v):
        return (matrix @ v.unsqueeze(-1)).squeeze(-1)

    def transposed(u):
        return (matrix.mT @ u.unsqueeze(-1)).squeeze(-1)

    return largest_singular(apply, transposed, start, iterations)[0]


def matrix_norms(matrix, iterations=30):
    """||M||_2, as `spectral_norm` finds it, and ||M||_F of matrices (..., p, q): (..., 2)."""
    return torch.stack([spectral_norm(matrix, iterations), matrix.norm(dim=(-2, -1))], -1)


def product_norms(a, b):
    """||a^T b||_2 and ||a^T b||_F, (..., 2), of a (..., n, p), b (..., n, m), without iteration.

    Where n is the smallest of the three, the product is one of triangles n x n, by QR.
    """
    if min(a.shape[-1], b.shape[-1]) > b.shape[-2]:
        a = torch.linalg.qr(a.mT, mode="r").R.mT
        b = torch.linalg.qr(b.mT, mode="r").R.mT
    product = a.mT @ b
    return torch.stack([torch.linalg.matrix_norm(product, 2), product.norm(dim=(-2, -1))], -1)


def squared_row_differences(now, before):
    """||a_i b_i^T - c_i d_i^T||_F^2 of each row i, (..., n), without loss of digits.

    now: the pair (a, b), before: (c, d), all (..., n, m).
    """
    (a, b), (c, d) = now, before
    da, db = a - c, b - d
    cross = 2 * (a * da).sum(-1) * (db * d).sum(-1)
    squares = a.square().sum(-1) * db.square().sum(-1) + da.square().sum(-1) * d.square().sum(-1)
    return (squares + cross).clamp(min=0)


def _unit(v):
    return v / v.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(v.dtype).tiny)
