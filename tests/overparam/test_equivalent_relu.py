"""The ReLU net that is equivalent to a GReLU net against what defines it."""

import pytest
import torch

from overparam.errors import ParameterError
from overparam.models.gated import GatedRuns
from overparam.theory import equivalent_relu
from overparam.theory.finite_width_kernels import initial_lambda_max
from overparam.training import RegressionLoss


def unit_inputs(n, d, seed=0):
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def trained(n=20, m=48, d=10, L=3, out=2, steps=40):
    x = unit_inputs(n, d)
    y = torch.randn(n, out, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    net = GatedRuns("grelu", d, m, L, out, seeds=[0])
    run, loss = net.descent(x, 0), RegressionLoss(y)
    eta = n / initial_lambda_max(net, x).item()
    for _ in range(steps):
        run.descend(loss(run.forward())[1] * eta)
    run.forward()
    return run


def worst(found, expected):
    return max(((a - b).norm() / b.norm()).item() for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("last", equivalent_relu.LAST)
def test_the_equivalent_net_has_the_features_and_but_for_naive_the_outputs(last):
    run = trained()
    net = equivalent_relu.equivalent_relu(run, last=last)
    P, y = net.preactivations(run.x), run.forward()
    assert worst(P[1:-1], run.h[1:-1]) < 1e-10
    assert (worst(P[-1:], run.h[-1:]) < 1e-10) == (last != "nonneg")
    error = worst([net.outputs(run.x)], [y])
    assert error > 0.1 if last == "naive" else error < 1e-10
    assert net.ranks.tolist() == [20] * 3
    singular = torch.linalg.svdvals(run.h[1].clamp(min=0))
    assert net.conditions[1].item() == pytest.approx((singular[0] / singular[-1]).item())
    assert net.errors.max() < 1e-12
    if last != "linear":
        plain = run.net.twin("relu").with_weights(net.weights).descent(run.x, 0)
        torch.testing.assert_close(plain.forward(), net.outputs(run.x))


def test_the_weights_are_the_smallest_solution():
    run = trained()
    net = equivalent_relu.equivalent_relu(run, last="linear")
    R = run.h[1].clamp(min=0)
    torch.testing.assert_close(net.weights[1], run.h[2].T @ torch.linalg.pinv(R.T))


def test_too_many_inputs_are_refused_or_fitted_by_least_squares():
    run = trained(n=60)
    with pytest.raises(ParameterError, match="so no exact equivalent exists"):
        equivalent_relu.equivalent_relu(run)
    net = equivalent_relu.equivalent_relu(run, last="linear", cut=1e-12)
    R = run.h[0].clamp(min=0)
    expected = torch.linalg.lstsq(R, run.h[1], driver="gelsd").solution.T
    torch.testing.assert_close(net.weights[0], expected)
    assert net.errors[0].item() == pytest.approx(
        ((R @ expected.T - run.h[1]).norm() / run.h[1].norm()).item()
    )


def test_a_cut_drops_small_singular_values_by_either_way():
    for n in (60, 250):  # by the SVD, and by the normal equations
        run = trained(n=n, steps=3)
        net = equivalent_relu.equivalent_relu(run, last="linear", cut=0.1)
        R = run.h[1].clamp(min=0)
        s = torch.linalg.svdvals(R)
        assert net.ranks[1] == (s > 0.1 * s[0]).sum()
        torch.testing.assert_close(
            net.weights[1], (torch.linalg.pinv(R, rtol=0.1) @ run.h[2]).T, rtol=1e-6, atol=1e-9
        )


def test_the_sequential_fit_uses_the_new_nets_own_features():
    run = trained(n=60)
    net = equivalent_relu.equivalent_relu(run, last="linear", cut=1e-12, sequential=True)
    P = net.preactivations(run.x)
    expected = torch.linalg.lstsq(P[1].clamp(min=0), run.h[2], driver="gelsd").solution.T
    torch.testing.assert_close(net.weights[1], expected)
    plain = equivalent_relu.equivalent_relu(run, last="linear", cut=1e-12)
    y = run.forward()
    assert worst([net.outputs(run.x)], [y]) < worst([plain.outputs(run.x)], [y])
    exact = trained()
    a, b = (
        equivalent_relu.equivalent_relu(exact, sequential=sequential)
        for sequential in (False, True)
    )
    torch.testing.assert_close(a.weights, b.weights)


def test_targets_that_cannot_be_had_nonnegative_are_an_error():
    B, H = torch.ones(1, 4, dtype=torch.float64), torch.rand(3, 4, dtype=torch.float64)
    outputs = torch.tensor([[1.0], [0.5], [2.0]], dtype=torch.float64)
    found = equivalent_relu.nonnegative_target(H, B, outputs)
    assert (found >= 0).all()
    torch.testing.assert_close(found @ B.T, outputs)
    with pytest.raises(ParameterError, match="no nonnegative features"):
        equivalent_relu.nonnegative_target(H, B, -outputs, limit=50)
    with pytest.raises(ParameterError, match="last must be one of"):
        equivalent_relu.equivalent_relu(None, last="exact")
