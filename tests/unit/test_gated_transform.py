"""The equivalent ReLU net, random nets by depth, factored gates and timings against what defines them."""

import math

import numpy as np
import pytest
import torch

from overparam.bounds import noy2021
from overparam.errors import ParameterError
from overparam.experiments import noy2021_depth, noy2021_sec44
from overparam.models.gated import GatedRuns
from overparam.theory import equivalent_relu
from overparam.theory.finite_kernels import initial_lambda_max
from overparam.training import RegressionLoss, gradient_descent


def unit_inputs(n, d, seed=0):
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def trained(n=20, m=48, d=10, L=3, out=2, steps=40):
    x, y = unit_inputs(n, d), torch.randn(n, out, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
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


def test_the_weights_are_the_smallest_solution_and_not_the_only_one():
    run = trained()
    net = equivalent_relu.equivalent_relu(run, last="linear")
    R = run.h[1].clamp(min=0)
    torch.testing.assert_close(net.weights[1], run.h[2].T @ torch.linalg.pinv(R.T))
    N = torch.randn(48, 48, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    other = equivalent_relu.another_weight(net.weights[1], R, N)
    torch.testing.assert_close(other @ R.T, net.weights[1] @ R.T)
    assert (other - net.weights[1]).norm() > 1
    assert net.weights[1].norm() < other.norm()


def test_equation_49_as_printed_has_the_wrong_shape():
    assert equivalent_relu.literal_weight(trained(), 2).shape == (20, 20)


def test_too_many_inputs_are_refused_or_fitted_by_least_squares():
    run = trained(n=60)
    with pytest.raises(ParameterError, match="so no exact equivalent exists"):
        equivalent_relu.equivalent_relu(run)
    net = equivalent_relu.equivalent_relu(run, last="linear", cut=1e-12)
    R = run.h[0].clamp(min=0)
    expected = torch.linalg.lstsq(R, run.h[1], driver="gelsd").solution.T
    torch.testing.assert_close(net.weights[0], expected)
    assert net.errors[0].item() == pytest.approx(((R @ expected.T - run.h[1]).norm() / run.h[1].norm()).item())
    ridge = equivalent_relu.equivalent_relu(run, last="linear", ridge=1e-2)
    penalty = 1e-2 * torch.linalg.matrix_norm(R, 2) ** 2 * torch.eye(48, dtype=torch.float64)
    torch.testing.assert_close(ridge.weights[0], torch.linalg.solve(R.T @ R + penalty, R.T @ run.h[1]).T)
    assert ridge.weights[0].norm() < net.weights[0].norm()


def test_a_cut_drops_small_singular_values_by_either_way():
    for n in (60, 250):  # by the SVD, and by the normal equations
        run = trained(n=n, steps=3)
        net = equivalent_relu.equivalent_relu(run, last="linear", cut=0.1)
        R = run.h[1].clamp(min=0)
        s = torch.linalg.svdvals(R)
        assert net.ranks[1] == (s > 0.1 * s[0]).sum()
        torch.testing.assert_close(net.weights[1], (torch.linalg.pinv(R, rtol=0.1) @ run.h[2]).T, rtol=1e-6, atol=1e-9)


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
    a, b = (equivalent_relu.equivalent_relu(exact, sequential=sequential) for sequential in (False, True))
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


def test_weights_of_a_training_can_be_logged_and_trained_on():
    """GReLU, transformed, then ReLU: the loss goes on where it was."""
    x, y = unit_inputs(12, 10), torch.randn(12, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    net, loss = GatedRuns("grelu", 10, 48, 3, seeds=[0, 1]), RegressionLoss(y)
    eta = (6 / initial_lambda_max(net, x)).tolist()
    log = {"W": lambda run: torch.stack(equivalent_relu.equivalent_relu(run).weights)}
    first = gradient_descent(net, x, loss, eta, 30, log=log, batched=False)
    relu = net.twin("relu").with_weights(first.logs["W"][:, 0].unbind(1))
    second = gradient_descent(relu, x, loss, [e / 50 for e in eta], 5, batched=False)
    torch.testing.assert_close(second.loss[:, 0], first.loss[:, -1])
    assert (second.loss[:, -1] < second.loss[:, 0]).all()
    together = gradient_descent(relu, x, loss, [e / 50 for e in eta], 5, batched=True)
    torch.testing.assert_close(together.loss, second.loss)


@pytest.mark.parametrize("kind", ["grelu", "relu"])
def test_layers_at_the_start_are_those_of_a_descent(kind):
    x, net = unit_inputs(6, 5), GatedRuns(kind, 5, 30, 3, seeds=[3, 4])
    run = net.descent(x, 1)
    run.forward()
    found = list(noy2021_depth.layers(net, x, 1))
    torch.testing.assert_close([h for h, _ in found], run.h)
    assert all(torch.equal(gate, own > 0) for (_, gate), own in zip(found[1:], run.gates, strict=True))


def test_the_profile_by_depth_is_made_of_its_definitions():
    x, net = unit_inputs(6, 5), GatedRuns("grelu", 5, 30, 3, seeds=[3])
    profile = noy2021_depth.depth_profile(net, x)
    pairs = [(i, j) for i in range(6) for j in range(6) if i != j]
    for k, (h, gate) in enumerate(noy2021_depth.layers(net, x)):
        cosines = [torch.cosine_similarity(h[i], h[j], 0).item() for i, j in pairs]
        mean = h.mean(0)
        expected = {
            "cosine": np.mean(cosines),
            "largest": np.abs(cosines).max(),
            "overlap": np.mean([(gate[i] & gate[j]).double().mean().item() for i, j in pairs]),
            "shift": (h.mean() / h.square().mean().sqrt()).item(),
            "energy": (mean.norm() ** 2 / h.square().sum(1).mean()).item(),
            "dead": np.mean([not any(gate[i, s] for i in range(6)) for s in range(30)]),
        }
        for name, value in expected.items():
            assert profile[name][0, k].item() == pytest.approx(value, rel=1e-9), name


def test_profiles_have_their_wide_limits():
    x = torch.eye(8, 16, dtype=torch.float64)
    grelu, relu = (
        noy2021_depth.depth_profile(GatedRuns(kind, 16, 600, 4, seeds=range(3)), x) for kind in ("grelu", "relu")
    )
    np.testing.assert_allclose(grelu["cosine"].mean(0), noy2021.covariances(4, 0.0), atol=0.04)
    overlaps = noy2021.gate_overlap(noy2021.gate_cosines(4, 0.0))
    for profile in (grelu, relu):
        np.testing.assert_allclose(profile["overlap"].mean(0), overlaps, atol=0.02)
    np.testing.assert_allclose(relu["cosine"].mean(0), noy2021.gate_cosines(5, 0.0)[1:], atol=0.03)
    np.testing.assert_allclose(relu["shift"].mean(0), math.pi**-0.5, atol=0.02)
    np.testing.assert_allclose(grelu["shift"].mean(0)[1:], 0, atol=0.05)
    assert relu["energy"].mean(0).diff().min() > 0 > grelu["energy"].mean(0).diff().max()


def test_nets_born_dead_at_width_one_die_as_a_coin_falls():
    """At width 1 and one input a unit survives each of k + 1 draws with probability 1/2."""
    shares = noy2021_depth.born_dead(1, [1, 3], torch.ones(1, 1, dtype=torch.float64), 20_000, seed=0)
    np.testing.assert_allclose(shares, [1 - 2.0**-2, 1 - 2.0**-4], atol=0.015)
    wide = noy2021_depth.born_dead(16, [5], unit_inputs(10, 4), 200, seed=0)
    assert wide.tolist() == [0.0]


def test_truncated_factors_are_the_nearest_and_nonnegative_ones_open_every_gate():
    x, net = unit_inputs(30, 6), GatedRuns("grelu", 6, 64, 2, seeds=[0])
    run = net.descent(x, 0)
    for rank in (4, 64):
        made = noy2021_sec44.factors(net, rank, "svd", x)
        s = torch.linalg.svdvals(net.psi(0, 1, x))
        expected = (s[rank:].square().sum() / s.square().sum()).sqrt()
        assert noy2021_sec44.relative_error(net.psi(0, 1, x), made[0]).item() == pytest.approx(
            expected.item(), abs=1e-12
        )
    agreement, opened = noy2021_sec44.gate_agreement(run, net.with_psi(made).descent(x, 0))
    assert agreement.tolist() == [1.0, 1.0]
    assert opened.tolist() == pytest.approx([gate.double().mean().item() for gate in run.gates])
    made = noy2021_sec44.factors(net, 5, "nonnegative", x)
    assert all((part >= 0).all() for pair in made for part in pair)
    psi = net.psi(0, 1, x).clamp(min=0)
    s = torch.linalg.svdvals(psi)
    assert (s[5:].square().sum() / s.square().sum()).sqrt() <= noy2021_sec44.relative_error(psi, made[0]) < 0.8
    _, opened = noy2021_sec44.gate_agreement(run, net.with_psi(made).descent(x, 0))
    assert opened.tolist() == [1.0, 1.0]


def test_gates_by_blocks_are_equal_within_blocks():
    x, net = unit_inputs(30, 6), GatedRuns("grelu", 6, 64, 2, seeds=[0])
    run = net.with_psi(noy2021_sec44.factors(net, 8, "blocks", x)).descent(x, 0)
    for gate in run.gates:
        assert torch.equal(gate, gate[:, ::8].repeat_interleave(8, 1))
        assert 0.2 < gate.double().mean() < 0.8
    for how, match in (("blocks", "equal blocks"), ("qr", "svd, nonnegative or blocks")):
        with pytest.raises(ParameterError, match=match):
            noy2021_sec44.factors(net, 9, how, x)


def test_products_of_open_gates_alone():
    m, block = 40, 8
    gate = torch.tensor([1.0, 1, 0, 1, 0])
    spans = noy2021_sec44.open_spans(gate, block)
    assert spans == [(0, 16), (24, 32)]
    W, h, opened = torch.rand(m, m), torch.rand(m), gate.repeat_interleave(block)
    found = noy2021_sec44.open_product(W, h, spans, [(0, m)], torch.zeros(m))
    torch.testing.assert_close(found, (W @ h) * opened)
    found = noy2021_sec44.open_product(W, h, spans, spans, torch.zeros(m))
    torch.testing.assert_close(found, (W @ (h * opened)) * opened)


def test_inference_by_blocks_has_the_outputs_of_the_net():
    x, net = unit_inputs(30, 6), GatedRuns("grelu", 6, 64, 4, 2, seeds=[0])
    for blocks in (4, 16):
        made = noy2021_sec44.factors(net, blocks, "blocks", x)
        run = net.with_psi(made).descent(x, 0)
        fast = noy2021_sec44.BlockInference(run, made)
        torch.testing.assert_close(torch.stack([fast(point) for point in x]), run.forward())


def test_ways_to_compute_a_layer_give_what_they_say():
    options = {"seed": 0, "dtype": torch.float64, "device": "cpu"}
    W, h, _, gate = noy2021_sec44._draws(32, 6, 0, torch.float64, "cpu")
    ways = noy2021_sec44.batch_products(32, 6, **options)
    torch.testing.assert_close(ways["dense"](), h @ W.T)
    torch.testing.assert_close(ways["ReLU"](), (h @ W.T).clamp(min=0))
    for name in ("bool gates", "bit gates"):
        torch.testing.assert_close(ways[name](), (h @ W.T) * gate)
    assert {"50% zeros", "90% zeros backward", "dense backward"} <= set(ways)
    W, h, _, gate = noy2021_sec44._draws(32, 1, 0, torch.float64, "cpu")
    h, gate = h[0], gate[0]
    ways, full = noy2021_sec44.single_products(32, 4, **options), W @ h
    torch.testing.assert_close(ways["dense"]().clone(), full)
    ways["open blocks"]().zero_()
    for name in ("gathered rows", "gathering rows"):
        torch.testing.assert_close(ways[name](), full[gate])
    torch.testing.assert_close(ways["gathered rows and columns"](), (W @ h.clamp(min=0))[gate])
    found = [ways[name]().clone() for name in ("open blocks", "open blocks and columns")]
    assert [(part == 0).sum().item() for part in found] == [16, 16]
    opened = found[0] != 0
    torch.testing.assert_close(found[0][opened], full[opened])
    torch.testing.assert_close(found[1][opened], (W @ (h * opened))[opened])
