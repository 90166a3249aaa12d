"""Gates from factored matrices, Psi_k ~ U_k V_k, and ways to compute a layer whose gates are known (Section 4.4).

Source: Noy et al. 2021, Section 4.4. Factors are for `GatedRuns.with_psi`; the ways are functions to be timed.
"""

from itertools import pairwise

import torch

from ..errors import ParameterError
from ..models.gated import pack, unpack


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


def batch_products(m, batch, *, seed, dtype, device, shares=(0.5, 0.9)):
    """{name: function()} of the forward and the backward products of one layer m x m for a batch with own gates each.

    "dense" multiplies as if there were no gates; "ReLU" and "bool gates", "bit gates" apply gates to the result as
    well; "50 % zeros" multiplies inputs of which so many are zero. Each has its "backward" twin: the products for the
    activations below and for the weights.
    """
    W, h, delta, gate = _draws(m, batch, seed, dtype, device)
    bits, out, back, slope = pack(gate), torch.empty_like(h), torch.empty_like(h), torch.empty_like(W)

    def backward(rows, below):
        torch.matmul(rows, W, out=back)
        torch.matmul(rows.T, below, out=slope)

    ways = {
        "dense": lambda: torch.matmul(h, W.T, out=out),
        "ReLU": lambda: torch.matmul(h, W.T, out=out).clamp_(min=0),
        "bool gates": lambda: torch.matmul(h, W.T, out=out).mul_(gate),
        "bit gates": lambda: torch.matmul(h, W.T, out=out).mul_(unpack(bits, m)),
        "dense backward": lambda: backward(delta, h),
    }
    generator = torch.Generator().manual_seed(seed + 1)
    for share in shares:
        kept = (torch.rand(batch, m, generator=generator) >= share).to(device)
        zeroed, rows = h * kept, delta * kept
        ways[f"{share:.0%} zeros"] = lambda zeroed=zeroed: torch.matmul(zeroed, W.T, out=out)
        ways[f"{share:.0%} zeros backward"] = lambda zeroed=zeroed, rows=rows: backward(rows, zeroed)
    return ways


def single_products(m, block, *, seed, dtype, device):
    """{name: function()} of the product of one layer m x m with one input, half of whose gates are open.

    "gathered rows" (and columns) has copied the open part of the matrix beforehand, which a table of gates allows for
    one input; "gathering rows" copies it each time; "open blocks" (and columns) reads it in place, with gates that are
    equal in blocks of `block` units.
    """
    W, (h,), _, (gate,) = _draws(m, 1, seed, dtype, device)
    order = torch.randperm(m // block, generator=torch.Generator().manual_seed(seed))
    blocks = order < m // block // 2
    opened, inner = gate.nonzero()[:, 0], (h > 0).nonzero()[:, 0]
    rows, both, short = W[opened], W[opened][:, inner].contiguous(), h[inner]
    spans, whole, out = open_spans(blocks, block), [(0, m)], torch.zeros_like(h)
    return {
        "dense": lambda: torch.mv(W, h, out=out),
        "gathered rows": lambda: torch.mv(rows, h),
        "gathered rows and columns": lambda: torch.mv(both, short),
        "gathering rows": lambda: torch.mv(W.index_select(0, opened), h),
        "open blocks": lambda: open_product(W, h, spans, whole, out),
        "open blocks and columns": lambda: open_product(W, h, spans, spans, out),
    }


def _draws(m, batch, seed, dtype, device):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda rows: torch.randn(rows, m, generator=generator, dtype=torch.float64).to(device, dtype)  # noqa: E731
    return draw(m) * (2 / m) ** 0.5, draw(batch), draw(batch), draw(batch) > 0


def open_spans(gate, block):
    """[(start, end), ..] of the open stretches, in units, for positive or zero gates of blocks of `block` units."""
    found = []
    for i, open_ in enumerate((gate > 0).tolist()):
        if open_ and found and found[-1][1] == i * block:
            found[-1] = (found[-1][0], (i + 1) * block)
        elif open_:
            found.append((i * block, (i + 1) * block))
    return found


def open_product(W, h, rows, columns, out):
    """The entries of W h in the open stretches `rows`, into `out`, h zero outside those of `columns`.

    The other entries of `out` stay as they are. Reads the open parts of W alone, in place.
    """
    for start, end in rows:
        part = out[start:end]
        part.zero_()
        for left, right in columns:
            part.addmv_(W[start:end, left:right], h[left:right])
    return out


class BlockInference:
    """A GReLU net whose gates are equal within blocks, for one input at a time, computing what is open alone.

    run: a descent of one run, opened with factors (U_k, V_k) of `factors(.., "blocks", ..)`. The gate net
    is constant on blocks: it is one of width r, the number of blocks, with the matrices V_k U_{k-1}, (r, r). So a layer
    takes about m^2/4 + r^2 multiplications, and m^2 in a ReLU net.
    """

    def __init__(self, run, factors):
        self.B, self.C, self.W, self.block = run.B, run.C, run.W, run.net.m // factors[0][0].shape[1]
        self.first = factors[0][1]
        self.gates = [V @ U for (U, _), (_, V) in pairwise(factors)]
        self.h = [torch.zeros_like(self.C[:, 0]) for _ in range(2)]

    def __call__(self, x):
        """Outputs (d_y,) at one input x (d_x,)."""
        h, out = (self.C @ x).clamp_(min=0), self.h[0]
        s, columns = self.first @ h, [(0, len(h))]
        for k, W in enumerate(self.W):
            s = (self.gates[k - 1] @ s if k else s).clamp_(min=0)
            rows = open_spans(s, self.block)
            open_product(W, h, rows, columns, out)
            h, out, columns = out, self.h[1 - k % 2], rows
        result = torch.zeros_like(self.B[:, 0])
        for start, end in columns:
            result += self.B[:, start:end] @ h[start:end]
        return result
