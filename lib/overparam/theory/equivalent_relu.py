"""From a trained GReLU net to a ReLU net with the same features at given inputs.

Source: Noy et al. 2021, Theorem 2.
With Z~_k the features of the GReLU net after its gates, as columns, the ReLU net's pre-activations
are to be P_k = W~_k [P_{k-1}]^+ = Z~_k, so W~_k = Z~_k ([Z~_{k-1}]^+)^+, the solution of smallest
norm. It exists where [Z~_{k-1}]^+ has rank n. Eq. (49) prints the factors the other way round and
without the ReLU. Here inputs are rows.
"""

from dataclasses import dataclass

import torch

from ..errors import ParameterError

LAST = ("nonneg", "linear", "naive")


@dataclass(frozen=True, eq=False)
class EquivalentNet:
    """A ReLU net made from a GReLU net.

    `weights`: [W~_1, .., W~_L], float64 (m, m), for `GatedRuns.with_weights`.
    ranks, conditions: of [Z~_0]^+, .., [Z~_{L-1}]^+ at the inputs of the fit, (L,): numerical
    ranks, and quotients of the largest and the smallest singular value that was used. errors: |P_k
    - Z~_k|_F / |Z~_k|_F at these inputs, (L,) (of P_L and its target). With last="linear" the
    outputs are B P_L, without a ReLU below B.
    """

    weights: list
    B: torch.Tensor
    C: torch.Tensor
    last: str
    ranks: torch.Tensor
    conditions: torch.Tensor
    errors: torch.Tensor

    def preactivations(self, x):
        """[P_0, .., P_L], each (n, m), float64, at inputs x (n, d_x)."""
        found = [x.to(self.C) @ self.C.T]
        for W in self.weights:
            found.append(found[-1].clamp(min=0) @ W.T)
        return found

    def outputs(self, x):
        """Outputs (n, d_y), float64, at inputs x (n, d_x)."""
        top = self.preactivations(x)[-1]
        return (top if self.last == "linear" else top.clamp(min=0)) @ self.B.T


def equivalent_relu(run, *, last="nonneg", cut=None, sequential=False):
    """The `EquivalentNet` of one run of a GReLU net, at the inputs that it holds.

    `run.load` takes others.
    last: what becomes of layer L, as B [Z~_L]^+ is not B Z~_L: "naive", the literal target Z~_L;
    "linear", that without the last ReLU; "nonneg", a target H >= 0 near [Z~_L]^+ with B H equal to
    the outputs.
    cut: singular values below cut times the largest count as zero; where it is None, too low a rank
    raises ParameterError. sequential: fit every layer to the ReLU net's own features below instead
    of [Z~_{k-1}]^+, which matters where the fit is not exact.
    Source: Noy et al. 2021, Section 10.7, eq. (48).
    """
    if last not in LAST:
        raise ParameterError(f"last must be one of {', '.join(LAST)}, not {last!r}")
    targets = features(run)
    below, B, C = targets[0], run.B.double(), run.C.double()
    outputs = targets[-1] @ B.T
    if last == "nonneg":
        targets[-1] = nonnegative_target(targets[-1].clamp(min=0), B, outputs)
    weights, ranks, conditions, errors = [], [], [], []
    for k, target in enumerate(targets[1:], 1):
        weight, rank, condition = _least_squares(below, target, cut, k - 1)
        weights.append(weight.T)
        fitted = below @ weight
        ranks.append(rank)
        conditions.append(condition)
        errors.append((fitted - target).norm() / target.norm())
        below = (fitted if sequential else target).clamp(min=0)
    return EquivalentNet(
        weights, B, C, last, *(torch.stack(found) for found in (ranks, conditions, errors))
    )


def features(run):
    """[Z~_0, .., Z~_L] of a GReLU descent at its inputs, each (n, m), computed in float64."""
    found = [run.h[0].double()]
    for W, gate in zip(run.W, run.gates, strict=True):
        found.append((found[-1] @ W.double().T).mul_(gate))
    return found


def _least_squares(R, Z, cut, layer):
    """Smallest X with R X = Z, rank and condition of R (n, m); by SVD, or R^T R for n > 4 m."""
    tall = R.shape[0] > 4 * R.shape[1]
    if tall:
        values, V = torch.linalg.eigh(R.T @ R)
        s = values.clamp(min=0).sqrt()
    else:
        U, s, Vh = torch.linalg.svd(R, full_matrices=False)
        V = Vh.T
    smallest = torch.finfo(R.dtype).eps * max(R.shape) if cut is None else cut
    kept = s > smallest * s.max()
    rank, inverse = kept.sum(), torch.where(kept, 1 / s, 0)
    if cut is None and int(rank) < len(R):
        raise ParameterError(
            f"layer {layer}: its {len(R)} features have rank {int(rank)}, so no exact equivalent "
            "exists; "
            "take fewer inputs, a wider net, or set cut for a least-squares fit"
        )
    rotated = inverse[:, None] * (V.T @ (R.T @ Z)) if tall else U.T @ Z
    return V @ (inverse[:, None] * rotated), rank, s.max() / torch.where(kept, s, torch.inf).min()


def nonnegative_target(H, B, outputs, *, tolerance=1e-13, limit=5000):
    """H' >= 0 near H (n, m) with H' B^T = outputs by alternating projections, or ParameterError."""
    back = torch.linalg.pinv(B).T
    for step in range(limit):
        rest = outputs - H @ B.T
        if step % 10 == 0 and bool(rest.norm() <= tolerance * outputs.norm()):
            return H
        H = (H + rest @ back).clamp(min=0)
    raise ParameterError(f"no nonnegative features with these outputs were found in {limit} steps")
