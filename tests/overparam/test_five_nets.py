"""The five papers' nets under one roof: kernels against a small step, and over the width.

That the kernels are those of autograd's gradients is shown in test_open_runs.py.
"""

import pytest
import torch

from overparam.theory.five_nets import PAPERS, Guo

N, P, M, L, SEEDS = 5, 4, 12, 3, [3, 8]
NETS = {**PAPERS, "Guo, alpha = 0.3": Guo(0.3)}
each_paper = pytest.mark.parametrize("paper", NETS.values(), ids=NETS)


def inputs(n=N, seed=0):
    x = torch.randn(n, P, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


@each_paper
def test_a_small_step_moves_the_outputs_of_every_run_by_the_kernel(paper):
    x, elsewhere = inputs(), inputs(2, seed=1)
    outputs, kernels = paper.kernel_at_start(torch.cat([x, elsewhere]), M, L, SEEDS)
    run = paper.runs(x, M, L, SEEDS, held_out=elsewhere).descent(x)
    v = paper.targets(torch.linspace(-1, 1, N, dtype=x.dtype).expand(len(SEEDS), N))
    eta = 1e-6
    before, held_out = run.forward(), paper.outputs_at(run, elsewhere)
    torch.testing.assert_close(before, paper.targets(outputs[:, :N]))
    torch.testing.assert_close(held_out, outputs[:, N:])
    run.descend(eta * v)
    moved = (kernels[..., :N] @ v.reshape(len(SEEDS), N, 1))[..., 0]
    expected = -moved[:, :N], -moved[:, N:]
    found = (
        (run.forward() - before).reshape(len(SEEDS), N) / eta,
        (paper.outputs_at(run, elsewhere) - held_out) / eta,
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(moved.abs().max()))


@each_paper
@pytest.mark.parametrize("depth", [1, 2])
def test_the_mean_of_wide_nets_kernels_is_the_limit(paper, depth):
    """Up to five standard errors of the mean, and what a finite width shifts.

    Some 1/m of the size.
    """
    m, seeds = 256, range(40)
    x = inputs()
    limit = paper.limit_kernel(x, m, depth)
    _, kernels = paper.kernel_at_start(x, m, depth, seeds)
    error = kernels.std(0) / len(seeds) ** 0.5
    assert bool(((kernels.mean(0) - limit).abs() <= 5 * error + 4 / m * limit.abs().max()).all())
    assert float(error.max()) < 0.06 * float(limit.abs().max())  # so that a wrong factor would show


@each_paper
def test_the_limit_grows_like_the_stated_power_of_the_width(paper):
    x = inputs()
    expected = paper.limit_kernel(x, 1, 2) * 6**paper.q
    torch.testing.assert_close(paper.limit_kernel(x, 6, 2), expected)


def test_options_reach_the_net():
    x = inputs()
    torch.testing.assert_close(
        PAPERS["Arora"].runs(x, M, L, SEEDS, antisym=True).outputs(x), x.new_zeros(2, N)
    )
