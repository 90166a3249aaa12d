"""The runs that Theorem 4.1 and Appendix C of Arora et al. 2019 are measured on."""

from dataclasses import dataclass

import numpy as np
import torch

from ..models.two_layer import TwoLayerReLU
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
