"""What depth does to random gated nets at initialization, layer by layer; their matrices are drawn and discarded."""

import torch

from .noy2021_subnetworks import mean_cosine

QUANTITIES = ("cosine", "largest", "overlap", "shift", "energy", "dead")


def layers(net, x, run=0):
    """Yields (h_k, D_k), k = 0..L, of a `GatedRuns` at its start: activations (n, m) and open gates as booleans (n, m).

    x: inputs (n, d_x). At most two m x m matrices are alive at once.
    """
    _, C = net.outer(run, x)
    h = z = (x @ C.T).clamp_(min=0)
    yield h, h > 0
    for k in range(1, net.L + 1):
        h = h @ net.layer(run, k, x).T
        if net.kind == "grelu":
            z = net.psi_times(run, k, z).clamp_(min=0)
            gate = z > 0
            h = h.mul_(gate)
        else:
            h = h.clamp_(min=0)
            gate = h > 0
        yield h, gate


def depth_profile(net, x):
    """{name: float64 (R, L + 1) on the CPU} of all runs at inputs x (n, d_x), at k = 0..L:

    cosine: mean over pairs of inputs of cos(h_k^i, h_k^j); largest: max of its absolute value; overlap: mean over pairs
    of the share of gates that are open at both; shift: mean of h_k over its root mean square, over units and inputs
    (1/sqrt(pi) for a wide ReLU net); energy: |mean_i h_k^i|^2 / mean_i |h_k^i|^2; dead: share of units closed at all x.
    Source: Noy et al. 2021, Theorem 6 (with k for G_k), Lemma 4, Remark 3.
    """
    rows = []
    for run in range(net.runs):
        measured = [_measured(h, gate) for h, gate in layers(net, x, run)]
        rows.append(torch.stack(measured, 1).double().cpu())
    return dict(zip(QUANTITIES, torch.stack(rows, 1), strict=True))


def _measured(h, gate):
    """The QUANTITIES of one layer, (6,)."""
    n, m = h.shape
    tiny = torch.finfo(h.dtype).tiny
    cosine, largest = mean_cosine(h)
    open_ = gate.to(h)
    both = (open_ @ open_.T) * (1 - torch.eye(n).to(h))
    square = h.square().mean().clamp(min=tiny)
    energy = h.mean(0).square().mean() / square
    dead = 1 - gate.any(0).to(h).mean()
    return torch.stack([cosine, largest, both.sum() / (n * (n - 1) * m), h.mean() / square.sqrt(), energy, dead])
