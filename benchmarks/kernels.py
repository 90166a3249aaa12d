"""Kernels in closed form against neural-tangents.

And the complexity of label vectors against an eigendecomposition.
"""

from functools import partial

import numpy as np
import torch
from harness import Comparison, JaxPeer, main

from overparam.bounds.arora2019 import complexity
from overparam.theory.infinite_width_kernels import leaky_ntk, relu_gram

N, P, DEPTH, ALPHA = 2000, 20, 5, -1.0


def sphere():
    x = torch.randn(N, P, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def against_neural_tangents(kernel, task):
    x, results = sphere(), {}
    peer = JaxPeer(task, x=x.numpy(), depth=DEPTH, alpha=ALPHA)

    def ours():
        results["ours"] = kernel(x)

    def difference():
        """Off the diagonal, which neural-tangents has from an arccos near 1."""
        theirs = torch.from_numpy(peer.result())
        gap = (results["ours"] - theirs).fill_diagonal_(0).abs().max() / theirs.abs().max()
        return float(gap), 1e-10

    return ours, peer, difference


def against_eigh():
    """Eleven label vectors of increasing noise on 2000 inputs, against one `torch.linalg.eigh` of
    the same matrix.
    """
    gram, results = relu_gram(sphere()), {}
    y = torch.randn(N, 11, generator=torch.Generator().manual_seed(1), dtype=torch.float64).sign()

    def ours():
        results["ours"] = complexity(y.numpy(), gram.numpy())

    def eigh():
        values, vectors = torch.linalg.eigh(gram)
        results["eigh"] = (
            (2 * ((vectors.T @ y).square() / values[:, None]).sum(0) / N).sqrt().numpy()
        )

    def difference():
        return float(np.abs(results["ours"] / results["eigh"] - 1).max()), 1e-9

    return ours, eigh, difference


if __name__ == "__main__":
    leaky = partial(against_neural_tangents, lambda x: leaky_ntk(x, DEPTH, ALPHA), "leaky_ntk")
    main(
        [
            Comparison(f"leaky NTK, L={DEPTH}, n={N}", "neural-tangents, jitted", 0.40, leaky),
            Comparison(
                f"H-infinity, n={N}",
                "neural-tangents, jitted",
                0.80,
                partial(against_neural_tangents, relu_gram, "relu_gram"),
            ),
            Comparison(
                f"complexity of 11 label vectors, n={N}",
                "one eigh",
                1 / 16,
                against_eigh,
                alternations=7,
            ),
        ]
    )
