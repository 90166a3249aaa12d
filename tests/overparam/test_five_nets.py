"""The five papers' nets under one roof: kernels against a small step, and over the width.

That the kernels are those of autograd's gradients is shown in test_open_runs.py.
"""

import pytest
import torch

from overparam.theory.five_nets import PAPERS, Guo, Problem

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


def flat_problem():
    """Inputs that span four of ten dimensions, in a turned basis, with labels."""
    basis = torch.linalg.qr(torch.randn(10, P, generator=torch.Generator().manual_seed(5)).double())
    x, y = inputs() @ basis.Q.T, torch.tensor([1.0, -1, 1, 1, -1], dtype=torch.float64)
    return x, y, Problem.of(x, y)


@each_paper
def test_a_problem_in_its_own_coordinates_has_the_kernel_of_its_inputs(paper):
    x, _, problem = flat_problem()
    assert problem.x.shape == (N, P)
    found = paper.limit_kernel(paper.inputs(problem), 1, 2)
    torch.testing.assert_close(found, paper.limit_kernel(x, 1, 2))


@each_paper
def test_the_curvature_is_the_largest_second_derivative_of_the_loss(paper):
    _, y, _ = flat_problem()
    loss, flat = paper.loss(y), torch.linspace(-2, 2, 401, dtype=torch.float64)
    u = paper.targets(flat.unsqueeze(-1).expand(-1, N)).contiguous()
    slopes = loss(u)[1].reshape(len(flat), N)
    second = slopes.diff(dim=0) / flat.diff().unsqueeze(-1)
    assert float(second.max()) == pytest.approx(paper.curvature(N), rel=1e-3)


@each_paper
def test_a_linear_descent_is_stable_up_to_the_stable_step_only(paper):
    _, _, problem = flat_problem()
    kernel = paper.curvature(N) * paper.limit_kernel(paper.inputs(problem), 1, 2)
    u = torch.ones(N, dtype=torch.float64)
    for factor, grows in ((0.99, False), (1.01, True)):
        step = torch.eye(N) - factor * paper.stable_step(problem, 2) * kernel
        left = float((torch.linalg.matrix_power(step, 4000) @ u).norm())
        assert (left > 1e3) is grows


def test_a_problem_reads_what_the_theorems_require_off_its_inputs():
    x, _, problem = flat_problem()
    pairs = [float((x[i] - x[j]).norm()) for i in range(N) for j in range(i)]
    assert problem.delta == pytest.approx(min(pairs))
    assert problem.d == 10
    required = problem.required(3, 0.1, 0.05)
    arora, noy, guo = (required[paper] for paper in ("Arora", "Noy", "Guo"))
    assert 10**arora.width == pytest.approx(N**6 / (problem.lam0**4 * 0.05**3))
    assert 10**noy.width == pytest.approx(N**2 * 3)
    assert 10**noy.step == pytest.approx(10 / (N**4 * 3**3))
    assert 10 ** (guo.step + guo.width) == pytest.approx(1 / (N * 3**2))


def test_a_surrogate_error_counts_wrong_signs():
    _, y, _ = flat_problem()
    loss = PAPERS["Frei"].loss(y)
    right, wrong = loss(9 * y)[0], loss(9 * y * torch.tensor([1, 1, -1, 1, 1]))[0]
    assert float(right) < 1e-3
    assert float(wrong) == pytest.approx(1.2, abs=1e-3)
