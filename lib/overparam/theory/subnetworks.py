"""The subnetworks F_k and G_k of a gated net at its inputs, and what the theory asks of them.

F_k = B D_L W_L .. D_k W_k D_{k-1}, (d_y, m), F_{L+1} = B D_L;
G_k = D_k W_k .. D_1 W_1 D_0 C, (m, d_x), G_0 = D_0 C.
All are of one input, whose gates they hold; `run` is a descent of one run, at its current weights
and inputs. G_k x is the activation h_k, and y = F_{k+1} h_k.
Source: Noy et al. 2021, eqs. (3), (10).
"""

import torch

from .finite_width_kernels import jacobians

ENTRIES = 2**26  # of the G_k that are held at once


def right_parts(run, rows=slice(None)):
    """[G_0, .., G_L] of the inputs `rows`, each (n, m, d_x)."""
    run.forward()
    found = [(run.h[0][rows] > 0).unsqueeze(-1) * run.C]
    for W, gate in zip(run.W, run.gates, strict=True):
        found.append((W @ found[-1]).mul_(gate[rows].unsqueeze(-1)))
    return found


def left_parts(run):
    """[F_1, .., F_{L+1}], each (n, d_y, m)."""
    rest = jacobians(run)
    first = (rest[0] @ run.W[0]).mul_((run.h[0] > 0).unsqueeze(-2))
    return [first, *rest]


def gram_eigenvalues(run):
    """Smallest and largest eigenvalue of G_k^T G_k, k = 0..L, and of F_k F_k^T, k = 1..L+1.

    Returns {"G": (L + 1, n, 2), "F": (L + 1, n, 2)}. Eq. (14) prints G_k G_k^T, an m x m matrix of
    rank d_x at most. Source: Noy et al. 2021, eqs. (14), (15), Theorem 5.
    """
    n, step = len(run.h[0]), max(1, ENTRIES // run.C.numel())
    of_rows = []
    for start in range(0, n, step):
        parts = right_parts(run, slice(start, start + step))
        of_rows.append(torch.stack([_extremes(G.mT) for G in parts]))
    left = torch.stack([_extremes(F) for F in left_parts(run)])
    return {"G": torch.cat(of_rows, 1), "F": left}


def _extremes(A):
    """Smallest and largest eigenvalue of A A^T, (n, 2), for A (n, p, q), p <= q."""
    return torch.linalg.eigvalsh(A @ A.mT)[..., [0, -1]].clamp(min=0)


def covariances(run):
    """|<G_{k-1}^j x_j, G_{k-1}^i x_i>| ||F_{k+1}^j F_{k+1}^{i T}||_2 for k = 1..L, (L, n, n).

    Off the diagonal this is what eq. (16) bounds by gamma beta^2.
    Source: Noy et al. 2021, eq. (16), Lemma 2.
    """
    found = []
    for h, F in zip(run.h, jacobians(run), strict=False):
        products = torch.einsum("ipm,jqm->ijpq", F, F)
        found.append((h @ h.mT).abs() * torch.linalg.matrix_norm(products, 2))
    return torch.stack(found)
