"""Predictions by tangent kernels: against single steps of descent, wide nets, and loops of matrix products."""

import pytest
import torch

from overparam.errors import ParameterError
from overparam.experiments import synthesis_ntk
from overparam.experiments.synthesis_ntk import Net

NETS = [Net("arora"), *(Net(family, 3) for family in ("allenzhu", "frei", "noy", "guo")), Net("guo", 2, 0.3)]


def inputs(n=5, p=4, seed=0):
    x = torch.randn(n, p, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def problem(n=6, seed=1):
    x, generator = inputs(n + 2, 5, seed), torch.Generator().manual_seed(seed)
    gram = x @ x.T + torch.eye(n + 2, dtype=torch.float64)
    residual = torch.randn(3, n, generator=generator, dtype=torch.float64)
    return gram[:n, :n], gram[n:, :n], residual


@pytest.mark.parametrize("net", NETS)
def test_a_step_of_descent_moves_the_outputs_by_a_column_of_the_kernel(net):
    x, x_test, m, step = inputs(), inputs(3, seed=1), 24, 1e-6
    both = torch.cat([x, x_test])
    outputs, kernel = net.start(both, m, 7)
    for j in range(len(x)):
        run = net.runs(x, m, [7], x_test).descent(x, 0)
        before = run.forward()
        assert torch.allclose(before.flatten(), outputs[: len(x)], atol=1e-10 * m)
        assert torch.allclose(net.predict(run, x_test), outputs[len(x) :], atol=1e-10 * m)
        run.forward()
        v = torch.zeros_like(before)
        v.view(-1)[j] = step
        run.descend(v)
        moved = torch.cat([run.forward().flatten(), net.predict(run, x_test)]) - outputs
        torch.testing.assert_close(moved / -step, kernel[:, j], rtol=1e-3, atol=1e-4 * kernel.abs().max().item())


@pytest.mark.parametrize("net", NETS)
def test_wide_nets_have_the_limit_kernel_in_its_units(net):
    x = inputs()
    expected = [net.limit(x, m) for m in (64, 1024)]
    found = [synthesis_ntk.starts(net, x, m, range(4))[1] for m in (64, 1024)]
    errors = [
        ((a - b).square().sum((1, 2)).mean().sqrt() / b.norm()).item() for a, b in zip(found, expected, strict=True)
    ]
    assert errors[1] < 0.2
    assert errors[1] < 0.6 * errors[0]


def test_an_unknown_net_is_refused():
    with pytest.raises(ParameterError, match="arora, allenzhu"):
        Net("resnet")


def test_the_prediction_is_that_of_a_loop():
    gram, cross, residual = problem()
    eta = 1.9 / synthesis_ntk.largest(gram)
    r, change, losses = residual.clone(), torch.zeros(3, 2, dtype=torch.float64), []
    for _ in range(8):
        losses.append(r.square().sum(1) / 2)
        last, change = change, change + eta * r @ cross.T
        r = r - eta * r @ gram
    torch.testing.assert_close(synthesis_ntk.predicted_loss(gram, residual, eta, 7), torch.stack(losses, 1))
    torch.testing.assert_close(synthesis_ntk.predicted_change(gram, cross, residual, eta, 7), last)


def test_every_run_may_have_its_own_kernel_and_step():
    gram, cross, residual = problem()
    grams, etas = torch.stack([gram, 2 * gram, 3 * gram]), torch.tensor([0.1, 0.05, 0.1 / 3], dtype=torch.float64)
    same = synthesis_ntk.predicted_loss(gram, residual, 0.1, 5)
    torch.testing.assert_close(synthesis_ntk.predicted_loss(grams, residual, etas, 5), same)
    crosses = torch.stack([cross, 2 * cross, 3 * cross])
    expected = synthesis_ntk.predicted_change(gram, cross, residual, 0.1, 5)
    torch.testing.assert_close(synthesis_ntk.predicted_change(grams, crosses, residual, etas, 5), expected)


def test_steps_are_those_of_the_curve():
    gram, _, residual = problem()
    eta = 1.8 / synthesis_ntk.largest(gram)
    curve = synthesis_ntk.predicted_loss(gram, residual, eta, 400)
    expected = (curve <= 0.001 * curve[:, :1]).int().argmax(1)
    assert synthesis_ntk.predicted_steps(gram, residual, eta, 0.001).tolist() == expected.tolist()
    assert synthesis_ntk.predicted_steps(gram, residual, eta, 1.0).tolist() == [0, 0, 0]
    assert synthesis_ntk.predicted_steps(gram, residual, eta, 0.001, most=2).tolist() == [2, 2, 2]
    with pytest.raises(ParameterError, match="exceeds"):
        synthesis_ntk.predicted_steps(gram, residual, 2.1 / synthesis_ntk.largest(gram), 0.1)


@pytest.mark.parametrize("net", NETS)
def test_wide_nets_train_as_predicted(net):
    x, x_test, m = inputs(), inputs(4, seed=1), 1000
    y = torch.tensor([1.0, -1, 1, 1, -1], dtype=torch.float64)
    outputs, kernels = synthesis_ntk.starts(net, torch.cat([x, x_test]), m, [0, 1])
    eta = 0.5 / synthesis_ntk.largest(kernels[:, :5, :5])
    loss, change = synthesis_ntk.train(net, x, y, m, eta, 20, seeds=[0, 1], x_test=x_test)
    residual = y - outputs[:, :5]
    predicted = synthesis_ntk.predicted_loss(kernels[:, :5, :5], residual, eta, 20)
    assert synthesis_ntk.deviation(loss, predicted, 0.05).max() < 0.3
    expected = synthesis_ntk.predicted_change(kernels[:, :5, :5], kernels[:, 5:, :5], residual, eta, 20)
    assert ((change - expected).norm(dim=1) / expected.norm(dim=1)).max() < 0.2


def test_measured_steps_double_until_they_suffice():
    net, x = Net("frei", 2), inputs()
    y = torch.tensor([1.0, -1, 1, 1, -1], dtype=torch.float64)
    eta = 0.5 / synthesis_ntk.largest(net.limit(x, 64))
    loss, _ = synthesis_ntk.train(net, x, y, 64, eta, 200, seeds=[3, 4])
    expected = (loss <= 0.05 * loss[:, :1]).int().argmax(1).tolist()
    settings = {"seeds": [3, 4], "share": 0.05, "first": 2}
    assert min(expected) > 2
    assert synthesis_ntk.measured_steps(net, x, y, 64, eta, **settings, most=200).tolist() == expected
    assert synthesis_ntk.measured_steps(net, x, y, 64, eta, **settings, most=2).tolist() == [2, 2]


def test_labels_are_mixed_in_nested_shares():
    y = torch.ones(40, dtype=torch.float64)
    rows = synthesis_ntk.mixed_labels(y, [0, 0.5, 1], 0)
    assert torch.equal(rows[0], y)
    assert torch.equal(rows.abs(), torch.ones_like(rows))
    changed = rows < 0
    assert bool((changed[1] <= changed[2]).all())
    assert 3 <= changed[1].sum() < changed[2].sum() < 30


def test_rates_and_deviations_by_hand():
    gram = torch.diag(torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64))
    assert synthesis_ntk.condition(gram) == 4
    eta = 2 / 5
    assert synthesis_ntk.best_rate(gram) == pytest.approx(1 - max(abs(1 - eta), abs(1 - 4 * eta)))
    predicted = torch.tensor([[1.0, 0.5, 0.1, 0.001]])
    measured = torch.tensor([[1.0, 0.25, 0.2, 0.5]])
    assert synthesis_ntk.deviation(measured, predicted, 0.01).item() == pytest.approx(torch.tensor(2.0).log().item())
    measured[0, 1] = torch.nan
    assert synthesis_ntk.deviation(measured, predicted, 0.01).isnan().all()
    assert synthesis_ntk.r_squared(torch.tensor([1.0, 2, 3]), torch.tensor([1.0, 2, 4])).item() == pytest.approx(0.5)
