"""The tangent kernel of a finite net, contracted layer by layer, against torch.func.jacrev and
neural-tangents.
"""

import torch
from harness import Comparison, JaxPeer, main
from torch.func import jacrev, vmap

from overparam.models.leaky import LeakyMLP
from overparam.theory.finite_width_kernels import tangent_kernel
from overparam.training import fast_products

N, P, M, L = 200, 20, 1024, 3


def net_and_inputs():
    generator = torch.Generator().manual_seed(0)
    return LeakyMLP(P, M, 1, L, alphas=[0.0], seeds=[0]), torch.randn(N, P, generator=generator)


def contraction(net, x):
    """Ours, and where its result goes."""
    results = {}

    def ours():
        fast_products()
        results["ours"] = tangent_kernel(net.descent(x, 0))

    return ours, results


def difference(results, theirs):
    return float((results["ours"] - theirs).abs().max() / theirs.abs().max()), 1e-5


def against_jacrev(chunk=50):
    net, x = net_and_inputs()
    ours, results = contraction(net, x)
    A, W, B = (t[0] for t in (net.A, net.W, net.B))

    def output(W, h):
        for own in W.unbind():
            h = torch.relu(own @ h)
        return B[0] @ h

    def jacobians():
        h0, kernel = x @ A.T, x.new_zeros(N, N)
        blocks = [vmap(jacrev(output), (None, 0))(W, part).flatten(1) for part in h0.split(chunk)]
        for i, a in enumerate(blocks):
            for j, b in enumerate(blocks):
                kernel[i * chunk : (i + 1) * chunk, j * chunk : (j + 1) * chunk] = a @ b.T
        results["jacobians"] = kernel

    return ours, jacobians, lambda: difference(results, results["jacobians"])


def against_neural_tangents():
    net, x = net_and_inputs()
    ours, results = contraction(net, x)
    A, W, B = (t[0] for t in (net.A, net.W, net.B))
    peer = JaxPeer("empirical_ntk", W=W.mT.numpy(), B=B.T.numpy(), h0=(x @ A.T).numpy())
    return ours, peer, lambda: difference(results, torch.from_numpy(peer.result()).reshape(N, N))


if __name__ == "__main__":
    path = f"finite-width NTK, n={N}, m={M}, L={L}"
    main(
        [
            Comparison(path, "torch.func.jacrev", 1 / 150, against_jacrev, alternations=7),
            Comparison(
                path,
                "neural-tangents, structured derivatives, jitted",
                1.3,
                against_neural_tangents,
            ),
        ]
    )
