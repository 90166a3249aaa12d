import numpy as np
import pytest
import torch

from overparam.data import load
from overparam.experiments import synthesis_depth


@pytest.fixture
def data():
    return load("margin-sphere", n_train=6, n_test=30, d=4, rho=0.2, seed=0, transform="unit_bias")


def gradients(kind, descent):
    """Per-example gradients by all trained weights from autograd, (n, parameters), of a net written out here."""
    x = descent.x
    if kind == "residual":
        start, signs, theta = [W.clone() for W in descent.net.W], descent.net.v, descent.net.theta
    else:
        start = [W.clone() for W in descent.W]
        if kind != "gated":
            start[0] = descent.weights[0].clone()
    weights = [W.requires_grad_() for W in start]

    def outputs():
        if kind == "residual":
            h = torch.relu(x @ weights[0])
            for W in weights[1:-1]:
                h = h + theta * torch.relu(h @ W)
            return torch.relu(h @ weights[-1]) @ signs
        if kind == "gated":
            h = torch.relu(x @ descent.C.T)
            for W, gate in zip(weights, descent.gates, strict=True):
                h = (h @ W.T) * gate
        else:
            h = x @ descent.A.T
            for W in weights:
                z = h @ W.T
                h = torch.relu(z) if kind == "relu" else z.abs() / 2**0.5
        return (h @ descent.B.T)[:, 0]

    rows = [torch.autograd.grad(f, weights, retain_graph=True) for f in outputs()]
    return torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])


@pytest.mark.parametrize("kind", synthesis_depth.KINDS)
@pytest.mark.parametrize("L", [1, 3])
def test_the_tangent_kernel_is_that_of_autograd(kind, L, data):
    x = synthesis_depth.inputs_of(kind, data.x_train, 8)
    descent = synthesis_depth.net_of(kind, 5, 8, L, seeds=[3]).descent(x, 0)
    jacobian = gradients(kind, descent)
    ours = synthesis_depth.tangent_kernels(kind, descent).sum(-3)
    assert torch.allclose(ours, jacobian @ jacobian.T, rtol=1e-9, atol=1e-9 * float(ours.max()))


@pytest.mark.parametrize("kind", synthesis_depth.KINDS)
def test_all_runs_at_once_give_the_kernels_and_norms_of_each(kind, data):
    x = synthesis_depth.inputs_of(kind, data.x_train, 8)
    net = synthesis_depth.net_of(kind, 5, 8, 3, seeds=[1, 2])
    for measure in (synthesis_depth.tangent_kernels, synthesis_depth.layer_norms):
        each = torch.stack([measure(kind, net.descent(x, run)) for run in range(2)])
        assert torch.allclose(measure(kind, net.descent(x)), each)


@pytest.mark.parametrize("kind", synthesis_depth.KINDS)
def test_outputs_of_one_layer_start_with_variance_1(kind, data):
    x = synthesis_depth.inputs_of(kind, data.x_train[:1], 128)
    outputs = [synthesis_depth.net_of(kind, 5, 128, 1, seeds=[s]).descent(x, 0).forward().flatten() for s in range(400)]
    expected = 1 - 1 / np.pi if kind == "residual" else 1.0
    assert float(torch.cat(outputs).square().mean()) == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize("kind", synthesis_depth.KINDS)
def test_the_finite_kernel_tends_to_the_limit(kind, data):
    start = synthesis_depth.at_start(kind, data.x_train, 1000, 2, seeds=range(4))
    assert np.median(start["high"] / start["low"]) == pytest.approx(
        synthesis_depth.limit_condition(kind, data.x_train, 2), rel=0.25
    )


def test_the_smallest_gradient_is_attained_and_no_residual_gives_less(data):
    start = synthesis_depth.at_start("relu", data.x_train, 16, 2, seeds=[5])
    descent = synthesis_depth.net_of("relu", 5, 16, 2, seeds=[5]).descent(data.x_train, 0)
    jacobian = gradients("relu", descent)
    r = torch.randn(2000, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ratio = (r @ jacobian).square().sum(1) / (r.square().sum(1) / 2)
    assert float(ratio.min()) >= start["gradient"][0]
    worst = torch.linalg.eigh(jacobian @ jacobian.T).eigenvectors[:, 0]
    assert float(2 * (worst @ jacobian).square().sum()) == pytest.approx(start["gradient"][0], rel=1e-6)


@pytest.mark.parametrize("kind", synthesis_depth.KINDS)
def test_training_is_the_linear_model_at_small_steps_and_each_run_is_its_own(kind, data):
    """At a hundredth of the largest stable step, the first step lowers the loss as the tangent kernel says."""
    seeds, m, n = [0, 1], 32, 6
    start = synthesis_depth.at_start(kind, data.x_train, m, 2, seeds=seeds)
    options = {"high": start["high"], "seeds": seeds, "dtype": torch.float64}
    result = synthesis_depth.train(kind, data, m, 2, 3, factors=[1e-4, 0.5], **options)
    assert result["loss"].shape == (2, 2, 4)
    assert result["error"].shape == (2, 2)
    x = synthesis_depth.inputs_of(kind, data.x_train, m)
    descent = synthesis_depth.net_of(kind, 5, m, 2, seeds=[1]).descent(x, 0)
    r = descent.forward().flatten() - data.y_train
    kernel = synthesis_depth.tangent_kernels(kind, descent).sum(-3)
    eta = 1e-4 * n / start["high"][1]
    expected = eta * float((2 * r / n) @ kernel @ (2 * r / n))
    assert result["loss"][0, 1, 0] == pytest.approx(float(r.square().mean()))
    assert result["loss"][0, 1, 0] - result["loss"][0, 1, 1] == pytest.approx(expected, rel=2e-3)


def test_curves_are_summed_up():
    falling = 2.0 ** -np.arange(6)
    stuck, rising, lost = np.ones(6), 1.0 + np.arange(6), np.array([1, 0.5, 0.1, 9, np.inf, np.nan])
    loss = np.stack([falling, stuck, rising, lost])
    assert synthesis_depth.steps_to(loss, 0.25).tolist() == [2, 5, 5, 5]
    assert synthesis_depth.rate_to(loss, 0.25) == pytest.approx([0.5, 0, 0, 0])
    assert synthesis_depth.rate_to(falling, 1e-9) == pytest.approx(0.5)
    slower = 1.5 ** -np.arange(6)
    assert synthesis_depth.best_factor(np.stack([[stuck, stuck], [slower, slower], [falling, falling]]), 0.25) == 2
    assert synthesis_depth.best_factor(np.stack([[stuck, stuck], [slower, slower], [rising, rising]]), 1e-9) == 1


def test_wrong_signs_keeps_a_divergence():
    y = torch.tensor([1.0, -1.0, 1.0, 1.0])
    outputs = torch.tensor([[1.0, 1.0, 0.0, 2.0], [1.0, -2.0, float("nan"), 1.0]])
    assert synthesis_depth.wrong_signs(outputs, y)[0] == 0.5
    assert synthesis_depth.wrong_signs(outputs, y)[1].isnan()


@pytest.mark.parametrize("kind", synthesis_depth.KINDS)
def test_the_test_error_does_not_depend_on_how_many_inputs_are_taken_at_a_time(kind, data, monkeypatch):
    options = {"high": [9.0, 9.0], "factors": [0.5], "seeds": [0, 1], "dtype": torch.float64}
    whole = synthesis_depth.train(kind, data, 8, 2, 2, **options)["error"]
    monkeypatch.setattr(synthesis_depth, "ROWS", 7)
    assert np.array_equal(synthesis_depth.train(kind, data, 8, 2, 2, **options)["error"], whole)
    assert ((whole > 0) & (whole < 1)).all()


def test_allowed_rate_is_the_contraction_of_the_best_step():
    low, high = 0.3, 2.0
    eta = 2 / (low + high)
    assert 1 - max(abs(1 - eta * low), abs(1 - eta * high)) == pytest.approx(synthesis_depth.allowed_rate(low, high))
