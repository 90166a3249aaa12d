"""The runs that Theorem 4.1, Lemma 5.3 and Appendix C of Arora et al. 2019 are measured on; the linearised net and the
Rademacher complexity of the nets near their start (Section 5).
"""

from dataclasses import dataclass

import numpy as np
import torch

from ..errors import ParameterError
from ..models.two_layer import TwoLayerReLU, row_space
from ..training import Checkpoint, SquaredLoss, gradient_descent

LOG = {
    "outputs": lambda run: run.forward(),
    "gram": lambda run: run.gram(),
    "movement": lambda run: run.movement(),
    "flipped": lambda run: run.flipped(),
    "near_zero": lambda run: run.near_zero(),
}


def record_steps(steps, count=12):
    """0, `steps` and about `count` steps between them, evenly spaced on a logarithmic axis."""
    return sorted({0, *np.geomspace(1, steps, count).astype(int).tolist(), steps})


@dataclass(frozen=True)
class Sweep:
    """At every width: nets of all scales and seeds, and antisymmetric ones of one scale and all seeds."""

    widths: list
    kappas: list
    antisym_kappa: float
    seeds: list


def width_scale_sweep(x, y, eta, steps, sweep, *, at=None, checkpoints=None):
    """Train the two-layer nets of a `Sweep`, R = widths x (kappas + 1) x seeds runs.

    x: unit-norm inputs (n, d), whose dtype and device are those of the training; y: labels (n,); eta: step size;
    at: steps at which everything but the loss is measured (default: `record_steps`); checkpoints: a folder.
    Returns {name: float64 or bool array}: m, kappa, antisym, seed (R,); residual |y - u(k)|, (R, steps + 1); outputs
    u(0), (R, n); gram0, gram H(0), H(K), (R, n, n); moved |W(k) - W(0)|_F and farthest max_r |w_r(k) - w_r(0)|,
    (R, len(at)); and after the last step flipped, near, stray (R,): shares of the m n patterns and, for stray, a
    number, as in `near_zero`.
    """
    at = record_steps(steps) if at is None else at
    loss, parts = SquaredLoss(y, "halfsum"), []
    for m in sweep.widths:
        for antisym, scales in ((False, sweep.kappas), (True, [sweep.antisym_kappa])):
            kappas = [kappa for kappa in scales for _ in sweep.seeds]
            seeds = list(sweep.seeds) * len(scales)
            place = {"dtype": x.dtype, "device": x.device}
            net = TwoLayerReLU(x.shape[1], m, kappas, seeds=seeds, antisym=antisym, **place)
            saved = checkpoints and Checkpoint(checkpoints / f"sweep-{m}-{antisym}")
            history = gradient_descent(net, x, loss, eta, steps, log=LOG, at=at, checkpoint=saved)
            logs = {name: values.numpy() for name, values in history.logs.items()}
            parts.append({
                "m": np.full(net.runs, float(m)), "kappa": np.array(kappas),
                "antisym": np.full(net.runs, antisym), "seed": np.array(seeds),
                "residual": torch.sqrt(2 * history.loss).numpy(), "outputs": logs["outputs"][:, 0],
                "gram0": logs["gram"][:, 0], "gram": logs["gram"][:, -1],
                "moved": logs["movement"][..., 0], "farthest": logs["movement"][..., 1],
                "flipped": logs["flipped"][:, -1],
                "near": logs["near_zero"][:, -1, 0], "stray": logs["near_zero"][:, -1, 1],
            })  # fmt: skip
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class Features:
    """Z(0), the (m d) x n matrix of the gradients of f at the initial weights, by its action: it is never formed.

    Its column i stacks m^{-1/2} a_r 1{w_r(0) . x_i >= 0} x_i over the neurons r. Weights are kept in an orthonormal
    basis Q (d, r) of the span of the data, in which everything here lives; norms are those of R^d.
    net: a `TwoLayerReLU` with S different initial weights, which lead every shape; x: inputs (n, d).
    Source: Section 3.4, eq. (6); the paper prints Z as m x n, but its entries are vectors.
    """

    def __init__(self, net, x):
        self.basis = row_space(x)
        self.x = x @ self.basis  # (n, r)
        self.signs = (net.a * net.m**-0.5).unsqueeze(-1)  # (S, m, 1)
        self.start = net.W @ x.T  # w_r(0) . x_i, (S, m, n)
        self.signed = self.signs * (self.start >= 0)

    def times(self, v):
        """Z(0) v as a matrix of weights (..., m, r), for v (..., n)."""
        return (self.signed * v.unsqueeze(-2)) @ self.x

    def transposed(self, weights):
        """Z(0)^T vec(W), (..., n), for weights (..., m, r): what the linearised net adds to its outputs."""
        return ((weights @ self.x.T) * self.signed).sum(-2)

    def gram(self):
        """H(0) = Z(0)^T Z(0), (S, n, n), eq. (5)."""
        return (self.signed.mT @ self.signed) * (self.x @ self.x.T)

    def gain(self, weights):
        """f_{W(0) + W} - f_{W(0)} at the data, (..., n), and its gradient's patterns (..., m, n), of the ReLU net."""
        now = self.start + weights @ self.x.T
        return (self.signs * (now.relu() - self.start.relu())).sum(-2), self.signs * (now >= 0)


def largest_scale(norms, R, B):
    """The largest s with sum_r min(R, s norms_r)^2 <= B^2, (...), or infinity; norms: (..., m), exact."""
    v = norms.sort(dim=-1, descending=True).values
    rest = v.square().flip(-1).cumsum(-1).flip(-1)  # sum over the rows k.., if the first k are cut
    cut = torch.arange(v.shape[-1], device=v.device, dtype=v.dtype)
    s = ((B**2 - cut * R**2).clamp(min=0) / rest).sqrt()
    fits = s * v <= R * (1 + 4 * torch.finfo(v.dtype).eps)
    first = fits.int().argmax(-1, keepdim=True)
    scale = s.gather(-1, first).squeeze(-1)
    return torch.where((v.shape[-1] * R**2 <= B**2) | ~fits.any(-1), torch.inf, scale)


def project(weights, R, B):
    """The nearest weights (..., m, r) with rows of norm <= R, Frobenius norm <= B: scaled, then cut."""
    norms = weights.norm(dim=-1)
    s = largest_scale(norms, R, B).clamp(max=1)
    return _scaled_and_cut(weights, norms, s, R)


def linear_maximiser(direction, R, B):
    """The weights in the set of `project` with the largest inner product with `direction` (..., m, r)."""
    norms = direction.norm(dim=-1)
    return _scaled_and_cut(direction, norms, largest_scale(norms, R, B), R)


def _scaled_and_cut(weights, norms, s, R):
    factor = torch.minimum(s.unsqueeze(-1), R / norms.clamp(min=torch.finfo(norms.dtype).tiny))
    return weights * factor.unsqueeze(-1)


def ascent(features, signs, R, B, steps=40):
    """Lower estimates of sup sum_i eps_i (f_W(x_i) - f_{W(0)}(x_i)) / n over |w_r - w_r(0)| <= R, |W - W(0)|_F <= B.

    Projected gradient ascent, from the maximiser of the linearised net, with steps of length B; the best point counts,
    so that the result is never below its start. signs: eps (n,) of +1, -1. Returns (S, 2) float64: at the start, best.
    Source of the supremum: Arora et al. 2019, Lemma 5.4; f_{W(0)}, whose expectation is 0, is subtracted (ours).
    """
    if not (R > 0 and B > 0):
        raise ParameterError(f"R and B must be positive, not {R} and {B}")
    weights, values = linear_maximiser(features.times(signs), R, B), []
    for step in range(steps + 1):
        gain, patterns = features.gain(weights)
        values.append((gain @ signs).double() / len(signs))
        if step < steps:
            slope = (patterns * signs) @ features.x
            weights = project(weights + slope * (B / slope.norm(dim=(-2, -1), keepdim=True)), R, B)
    return torch.stack([values[0], torch.stack(values).amax(0)], -1).cpu()


def linearised_suprema(gram, signs, B):
    """sup over |W|_F <= B of eps^T Z(0)^T vec(W) / n, (S, draws), by H(0). Source: Appendix D.2."""
    squares = ((signs @ gram) * signs).sum(-1)
    return B * squares.clamp(min=0).sqrt() / signs.shape[-1]
