"""The five papers' nets and their tangent kernels: against autograd, a small step, and each other
over the width.
"""

import pytest
import torch

from overparam.models.deep_relu import ReLUNet
from overparam.models.residual import ResidualReLU
from overparam.theory.five_nets import (
    PAPERS,
    kernel_at_start,
    limit_kernel,
    net_of,
    outputs_at,
    targets_of,
)

N, P, M, L, SEEDS = 5, 4, 12, 3, [3, 8]
each_paper = pytest.mark.parametrize("paper", PAPERS)


def inputs(n=N, seed=0):
    x = torch.randn(n, P, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def by_hand(paper, x, seed, alpha):
    """The trained weights and the net as its paper writes it, a function of them."""
    if paper == "Arora":
        net = net_of(paper, x, M, L, [seed])
        return [net.W[0]], lambda W: torch.relu(x @ W[0].T) @ net.a[0] / M**0.5
    if paper == "Frei":
        net = ResidualReLU(P, M, L, 1 / L, seed=seed)

        def residual(W):
            h = torch.relu(x @ W[0])
            for layer in W[1:-1]:
                h = h + torch.relu(h @ layer) / L
            return torch.relu(h @ W[-1]) @ net.v

        return net.W, residual
    run = net_of(paper, x, M, L, [seed], alpha=alpha).descent(x, 0)
    if paper == "Allen-Zhu":
        net = ReLUNet(P, M, 1, L, seed=seed)
        A, W, B = net.A, list(net.W), net.B
    elif paper == "Guo":
        A, W, B = run.A, run.weights, run.B
    else:
        A, W, B = run.C, run.W, run.B

    def deep(W):
        h = x @ A.T if paper == "Guo" else torch.relu(x @ A.T)
        for l, layer in enumerate(W):
            g = h @ layer.T
            if paper == "Noy":
                h = g * run.gates[l]
            elif paper == "Guo":
                h = torch.where(g > 0, g, alpha * g) / (1 + alpha**2) ** 0.5
            else:
                h = torch.relu(g)
        return (h @ B.T)[:, 0]

    return W, deep


@each_paper
@pytest.mark.parametrize("alpha", [-1.0, 0.3])
def test_the_kernel_at_the_start_is_the_gram_matrix_of_autograds_gradients(paper, alpha):
    x = inputs()
    outputs, kernels = kernel_at_start(paper, x, M, L, SEEDS, alpha=alpha)
    for seed, u, kernel in zip(SEEDS, outputs, kernels, strict=True):
        weights, f = by_hand(paper, x, seed, alpha)
        weights = [W.detach().clone().requires_grad_() for W in weights]
        expected = f(weights)
        rows = [torch.autograd.grad(value, weights, retain_graph=True) for value in expected]
        gradients = torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])
        torch.testing.assert_close(u, expected.detach())
        torch.testing.assert_close(kernel, gradients @ gradients.T)


@each_paper
def test_a_small_step_moves_the_outputs_of_every_run_by_the_kernel(paper):
    x, elsewhere = inputs(), inputs(2, seed=1)
    outputs, kernels = kernel_at_start(paper, torch.cat([x, elsewhere]), M, L, SEEDS)
    run = net_of(paper, x, M, L, SEEDS, held_out=elsewhere).descent(x)
    v, eta = targets_of(paper, torch.linspace(-1, 1, N, dtype=x.dtype).expand(len(SEEDS), N)), 1e-6
    before, held_out = run.forward(), outputs_at(paper, run, elsewhere)
    torch.testing.assert_close(before, targets_of(paper, outputs[:, :N]))
    torch.testing.assert_close(held_out, outputs[:, N:])
    run.descend(eta * v)
    moved = (kernels[..., :N] @ v.reshape(len(SEEDS), N, 1))[..., 0]
    expected = -moved[:, :N], -moved[:, N:]
    found = (
        (run.forward() - before).reshape(len(SEEDS), N) / eta,
        (outputs_at(paper, run, elsewhere) - held_out) / eta,
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(moved.abs().max()))


@each_paper
@pytest.mark.parametrize(("depth", "alpha"), [(1, -0.5), (2, -1.0)])
def test_the_mean_of_wide_nets_kernels_is_the_limit(paper, depth, alpha):
    """Up to five standard errors of the mean, and what a finite width shifts: some 1/m of the
    size.
    """
    m, seeds = 256, range(40)
    x = inputs()
    limit = limit_kernel(paper, x, m, depth, alpha=alpha)
    _, kernels = kernel_at_start(paper, x, m, depth, seeds, alpha=alpha)
    error = kernels.std(0) / len(seeds) ** 0.5
    assert bool(((kernels.mean(0) - limit).abs() <= 5 * error + 4 / m * limit.abs().max()).all())
    assert float(error.max()) < 0.06 * float(limit.abs().max())  # so that a wrong factor would show


@each_paper
def test_the_limit_grows_like_the_stated_power_of_the_width(paper):
    x = inputs()
    torch.testing.assert_close(
        limit_kernel(paper, x, 6, 2), limit_kernel(paper, x, 1, 2) * 6 ** PAPERS[paper]
    )


def test_options_reach_the_net():
    x = inputs()
    torch.testing.assert_close(
        net_of("Arora", x, M, L, SEEDS, antisym=True).outputs(x), x.new_zeros(2, N)
    )
