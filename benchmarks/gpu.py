"""Gradient descent on a GPU.

Steps against their own products, one call against runs in turn, TF32 against float64.

Skipped where there is no GPU. The goals: 0.7 of the speed of the machine's own products for wide
nets, ten times that of runs in turn for small ones, and rounding that nobody would see in a figure.
"""

import time
from functools import partial

import sweep
import torch
from harness import Absent, Comparison, Quantity, main

from overparam.models.leaky import LeakyMLP
from overparam.training import SquaredLoss, gradient_descent

SMALL = [(50, 50, 32, 200), (50, 1000, 256, 50)]  # runs, n, m, steps
WIDE = [
    (1, 1000, 5000),
    (1, 1000, 10_000),
]  # Guo et al. 2024 train nets of width 5,000 on 1,000 points


def require_gpu():
    if not torch.cuda.is_available():
        raise Absent("there is no GPU here")


def on_gpu(prepare):
    """The two sides of a comparison, each of which returns the seconds that the GPU needs for
    it. Without a floor.
    """
    require_gpu()
    ours, peer, difference, _ = prepare(device="cuda")
    return partial(finished, ours), partial(finished, peer), difference


def finished(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def rounding(device="cuda", n=1000, m=2000, steps=300):
    """Largest relative errors of five loss curves with TF32 products, against float64."""
    if device == "cuda":
        require_gpu()
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(n, sweep.P, generator=generator), torch.randn(n, 1, generator=generator)
    alphas, seeds = [-2.0, -1.0, 0.0, 0.01, 0.05], [0] * 5

    def curves(dtype):
        net = LeakyMLP(
            sweep.P, m, 1, sweep.L, alphas=alphas, seeds=seeds, dtype=dtype, device=device
        )
        loss = SquaredLoss(y.to(device, dtype), "mean")
        return gradient_descent(net, x.to(device, dtype), loss, sweep.ETA, steps).loss

    chosen = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        rounded = curves(torch.float32)
    finally:
        torch.backends.cuda.matmul.fp32_precision = chosen
    exact = curves(torch.float64)
    return ((rounded - exact) / exact).abs().amax(1).tolist()


def rows():
    for R, n, m in WIDE:
        both = partial(on_gpu, partial(sweep.against_products, R, n, m))
        yield Comparison(
            f"GPU: step, runs={R}, n={n}, m={m}", "its own products", 1 / 0.7, both, "wall"
        )
    for R, n, m, steps in SMALL:
        both = partial(on_gpu, partial(sweep.sweep, R, n, m, steps))
        yield Comparison(
            f"GPU: sweep of {R} nets, n={n}, m={m}", "a module each", 0.1, both, "wall"
        )
    yield Quantity("GPU: losses with TF32, m=2000", "float64", 1e-3, "of the loss", rounding)


if __name__ == "__main__":
    main(list(rows()))
