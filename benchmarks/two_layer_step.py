"""One gradient descent step of the two-layer net against the bare matrix products that it needs, in one process.

    python benchmarks/two_layer_step.py [threads]

Random inputs of the size and rank of MNIST 0/1 (n = 1000, d = 784, m = 10,000). Prints the median over alternations of
(time of the products) / (time of the step): 1 would be a step that costs nothing but its products.
"""

import statistics
import sys
import time

import torch

from overparam.nets.two_layer import TwoLayerReLU
from overparam.train import fast_products

N, D, M, ALTERNATIONS = 1000, 784, 10_000, 9


def products(descent):
    """The bare products of one step of either form of training, on the same buffers."""
    if "W" in descent.state:
        torch.mm(descent.W, descent.x.T, out=descent.Z)
        descent.W.addmm_(descent.Z, descent.x, alpha=1e-12)
    else:
        torch.mm(descent.S, descent.inner, out=descent.Z)


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(rank, generator):
    x = torch.randn(N, rank, generator=generator) @ torch.randn(rank, D, generator=generator)
    x /= x.norm(dim=1, keepdim=True)
    y = torch.randn(N, generator=generator).sign()
    descent = TwoLayerReLU(D, M, 0.01, seeds=[0]).descent(x, 0)

    def step():
        descent.descend((descent.forward() - y) * 1e-4)

    step(), products(descent)
    ratios = [seconds(lambda: products(descent)) / seconds(step) for _ in range(ALTERNATIONS)]
    form = "weights in the span" if "W" in descent.state else "pre-activations"
    print(f"rank {rank}, {form}: {statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]")


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, float32 by oneDNN: {fast_products()}")
    for rank in (467, D):
        compare(rank, torch.Generator().manual_seed(0))
