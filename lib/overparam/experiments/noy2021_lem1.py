"""One step of gradient descent on a gated net, taken apart: Lemmas 1 and 2 of Noy et al. 2021, for small nets.

`run` is a descent of one run; the loss is l = sum_i |y_i - target_i|^2 / 2, and e_i = y_i - target_i.
"""

import torch

from ..errors import ParameterError
from ..theory.finite_kernels import jacobian_rows
from .noy2021_subnetworks import covariances, right_parts


def step_parts(run, target, eta):
    """W_{t+1}^i - W_t^i = -eta (self + cross) + eta^2 higher, with W^i = G_L's B G_L: a dict of tensors (n, d_y, d_x).

    "change" is the left side from the weights after the step, with the gates that the net then has; "self", "cross"
    (Gamma of eq. (11)) and "higher" (Delta of eq. (12)) use those before. "flips" counts the gates that the step
    changed, (): 0 for a GReLU net. The 2^L - L - 1 terms of Delta are summed layer by layer as a polynomial in eta.
    Source: Noy et al. 2021, Lemma 1, eqs. (11), (12).
    """
    e = run.forward() - target
    slopes = [z.mT @ h for z, h in zip(run.sensitivities(e), run.inputs_of_layers(), strict=True)]  # eq. (9)
    right, left = right_parts(run), jacobian_rows(run)
    own, cross = 0, 0
    for h, G, F in zip(run.h, right, left, strict=False):
        pairs = torch.einsum("ipm,jqm,jq->ijp", F, F, e)  # F^i F^{j T} e_j
        rows = torch.einsum("jm,imd->ijd", h, G)  # x_j^T G^{j T} G^i
        every = torch.arange(len(e), device=e.device)
        own = own + torch.einsum("ip,id->ipd", pairs[every, every], rows[every, every])
        pairs[every, every] = 0
        cross = cross + torch.einsum("ijp,ijd->ipd", pairs, rows)
    after = run.at([W - eta * slope for W, slope in zip(run.W, slopes, strict=True)])
    change = run.B @ (right_parts(after)[-1] - right[-1])
    flips = sum((a != b).sum() for a, b in zip(run.gates, after.gates, strict=True))
    higher = _higher(run, slopes, right[0], eta)
    return {"change": change, "self": own, "cross": cross, "higher": higher, "flips": flips}


def _higher(run, slopes, G, eta):
    """Delta: from the coefficients of lambda^s in B D_L (W_L + lambda dW_L) .. D_0 C, s >= 2, at lambda = -eta."""
    powers = [G]
    for W, slope, gate in zip(run.W, slopes, run.gates, strict=True):
        grown = [W @ term for term in powers] + [torch.zeros_like(G)]
        for s, term in enumerate(powers, 1):
            grown[s] = grown[s] + slope @ term
        powers = [term * gate.unsqueeze(-1) for term in grown]
    total = torch.zeros_like(run.B @ G)
    for s, term in enumerate(powers[2:]):
        total = total + run.B @ term * (-eta) ** s
    return total


def step_bound(run, target, eta, x, a=None, form="printed"):
    """The change of the loss by a step, and the right side of eq. (13): {"change": (), "bound": ()}.

    x: the inputs (n, d_x); a: (n,) positive numbers, by default |Delta_i x_i|/|e_i|, for which the bound is smallest.
    form "printed" has lambda_max(F F^T) in the third term of Lambda_i, "corrected" its square, as the proof does.
    Source: Noy et al. 2021, Lemma 2.
    """
    if form not in ("printed", "corrected"):
        raise ParameterError(f"form must be printed or corrected, not {form!r}")
    parts = step_parts(run, target, eta)
    e = run.forward() - target
    squares = e.square().sum(-1)
    higher = torch.einsum("ipd,id->ip", parts["higher"], x).norm(dim=-1)
    a = higher / squares.sqrt() if a is None else a
    rates, n, L = torch.zeros_like(squares), len(e), len(run.W)
    pairs = covariances(run)
    for k, (F, G) in enumerate(zip(jacobian_rows(run), right_parts(run), strict=False)):
        f, g = torch.linalg.eigvalsh(F @ F.mT), torch.linalg.eigvalsh(G.mT @ G)
        others = pairs[k] - torch.diag(pairs[k].diagonal())
        top = f[..., -1] ** (1 if form == "printed" else 2)
        rates += -2 * eta * f[..., 0] * g[..., 0] + 2 * eta * others.sum(1)
        rates += 3 * eta**2 * L * (top * run.h[k].norm(dim=-1) ** 4 + n * others.square().sum(1))
    bound = (rates + eta**2 * a) * squares / 2 + eta**2 * (3 * eta**2 + 1 / a) * higher.square() / 2
    moves = torch.einsum("ipd,id->ip", parts["change"], x)
    return {"change": (moves * (e + moves / 2)).sum(), "bound": bound.sum()}
