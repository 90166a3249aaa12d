"""The runs over widths and scales that Theorem 4.1, Lemma 5.3 and Appendix C of Arora et al. 2019 are measured on."""

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


def width_scale_sweep(x, y, eta, steps, *, widths, kappas, antisym_kappa, seeds, at=None, checkpoints=None):
    """Train the two-layer net at every width, scale and seed, and with the antisymmetric start at one scale.

    x: unit-norm inputs (n, d), whose dtype and device are those of the training; y: labels (n,); eta: step size;
    at: steps at which everything but the loss is measured (default: `record_steps`); checkpoints: a folder.
    Returns {name: float64 or bool array}, the first axis being the R = widths x (kappas + 1) x seeds runs:
    m, kappa, antisym, seed (R,); residual |y - u(k)|, (R, steps + 1); outputs u(0), (R, n); gram0, gram H(0), H(K),
    (R, n, n); moved |W(k) - W(0)|_F and farthest max_r |w_r(k) - w_r(0)|, (R, len(at)); and after the last step
    flipped, near, stray (R,): shares of the m n patterns and, for stray, a number, as in `near_zero`.
    """
    at = record_steps(steps) if at is None else at
    loss, parts = SquaredLoss(y, "halfsum"), []
    for m in widths:
        for antisym, scales in ((False, kappas), (True, [antisym_kappa])):
            runs = [(kappa, seed) for kappa in scales for seed in seeds]
            settings = {"kappa": [kappa for kappa, _ in runs], "seeds": [seed for _, seed in runs]}
            net = TwoLayerReLU(x.shape[1], m, **settings, antisym=antisym, dtype=x.dtype, device=x.device)
            saved = checkpoints and Checkpoint(checkpoints / f"sweep-{m}-{antisym}")
            history = gradient_descent(net, x, loss, eta, steps, log=LOG, at=at, checkpoint=saved)
            names = {"m": [m] * len(runs), "antisym": [antisym] * len(runs), **settings}
            parts.append(_measured(names, history))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _measured(names, history):
    logs = {name: values.numpy() for name, values in history.logs.items()}
    return {
        "m": np.array(names["m"], dtype=float),
        "kappa": np.array(names["kappa"], dtype=float),
        "antisym": np.array(names["antisym"]),
        "seed": np.array(names["seeds"]),
        "residual": torch.sqrt(2 * history.loss).numpy(),
        "outputs": logs["outputs"][:, 0],
        "gram0": logs["gram"][:, 0],
        "gram": logs["gram"][:, -1],
        "moved": logs["movement"][..., 0],
        "farthest": logs["movement"][..., 1],
        "flipped": logs["flipped"][:, -1],
        "near": logs["near_zero"][:, -1, 0],
        "stray": logs["near_zero"][:, -1, 1],
    }
