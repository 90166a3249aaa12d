"""Norms of matrices that are products, or are seen through products alone."""

import torch


def squared_difference(now, before):
    """||a^T b - c^T d||_F^2 as ||(a - c)^T b + c^T (b - d)||_F^2, which keeps its digits where the two are close."""
    (a, b), (c, d) = now, before
    return squared_product(torch.cat([a - c, c], -2), torch.cat([b, b - d], -2))


def squared_product(a, b):
    """||a^T b||_F^2 of a, b (..., n, m) by their n x n Gram matrices."""
    return ((a @ a.mT) * (b @ b.mT)).sum((-2, -1))


def spectral_norm(matrix, iterations=30):
    """||M||_2 of matrices (..., p, q) by power iteration from one fixed Gaussian vector: from below; 0 for M = 0."""
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(matrix.shape[-1], 1, generator=generator, dtype=torch.float64).to(matrix)
    tiny = torch.finfo(matrix.dtype).tiny
    for _ in range(iterations):
        a = matrix.mT @ (matrix @ (a / a.norm(dim=-2, keepdim=True).clamp(min=tiny)))
    return (matrix @ (a / a.norm(dim=-2, keepdim=True).clamp(min=tiny))).norm(dim=(-2, -1))
