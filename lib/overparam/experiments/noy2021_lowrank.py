"""Gates from factored matrices, Psi_k ~ U_k V_k (Noy et al. 2021, Section 4.4), for `GatedRuns.with_psi`."""

import torch

from ..errors import ParameterError


def factors(net, rank, how, like, *, run=0, seed=0, iterations=200):
    """[(U_k, V_k)], k = 1..L, of rank `rank` for the random Psi_k of a run; U_k (m, rank), V_k (rank, m).

    how "svd": the truncated singular value decomposition, nearest in Frobenius norm; "nonnegative": factors >= 0 of
    the positive part of Psi_k by coordinate descent, as 0 is the nearest that they come to entries < 0; "blocks": the
    first row of each of `rank` blocks, repeated, so that the units of a block open and close together.
    like: a tensor of the dtype and device wanted.
    """
    if how not in ("svd", "nonnegative", "blocks"):
        raise ParameterError(f"how must be svd, nonnegative or blocks, not {how!r}")
    if how == "blocks" and net.m % rank:
        raise ParameterError(f"the width {net.m} does not fall into {rank} equal blocks")
    made = []
    for k in range(1, net.L + 1):
        psi = net.psi(run, k, like)
        if how == "blocks":
            made.append((torch.eye(rank).to(psi).repeat_interleave(net.m // rank, 0), psi[:: net.m // rank]))
        else:
            made.append(_truncated(psi, rank) if how == "svd" else _nonnegative(psi, rank, seed, iterations))
    return made


def _truncated(psi, rank):
    U, s, Vh = torch.linalg.svd(psi)
    return U[:, :rank] * s[:rank], Vh[:rank]


def _nonnegative(psi, rank, seed, iterations):
    from sklearn.decomposition import NMF

    model = NMF(rank, init="random", random_state=seed, max_iter=iterations, tol=0)
    U = model.fit_transform(psi.clamp(min=0).double().cpu().numpy())
    return torch.from_numpy(U).to(psi), torch.from_numpy(model.components_).to(psi)


def relative_error(psi, factored):
    """|Psi - U V|_F / |Psi|_F, ()."""
    U, V = factored
    return (psi - U @ V).norm() / psi.norm()


def gate_agreement(first, second):
    """Shares of equal gates of two descents, and of open gates of the second, by layer: two tensors (..., L)."""
    pairs = [(a.bool(), b.bool()) for a, b in zip(first.gates, second.gates, strict=True)]
    equal = torch.stack([(a == b).double().mean((-2, -1)) for a, b in pairs], -1)
    return equal, torch.stack([b.double().mean((-2, -1)) for _, b in pairs], -1)
