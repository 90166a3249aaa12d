"""Attacks on deep ReLU nets.

Against brute force at tiny sizes, autograd at the changed weights, and closed forms.
"""

import itertools

import numpy as np
import pytest
import torch

from overparam.bounds import allenzhu2019 as limits
from overparam.data import load
from overparam.models.deep_relu import ReLUNet, WideLayer, unit
from overparam.theory.finite_width_kernels import layer_kernels
from overparam.theory.perturbation import attacks
from overparam.theory.perturbation.changes import Start

P, M, L = 4, 10, 3
X = load("sphere", n_train=2, n_test=0, d=P, seed=2).x_train
OMEGAS = [0.05, 0.4]
LAST = [attacks.flip_last, attacks.grad_last, attacks.kernel_last, attacks.output_last]
ALL = [
    *LAST,
    attacks.flip_all,
    attacks.output_all,
    attacks.amplify,
    attacks.aligned_flip,
    attacks.gradient,
    attacks.stretch,
]


def start_of(seed=0, tau=None, m=M, depth=L):
    """Of a net, or for tau = "trunk" of the residual layers of a deeper one."""
    if tau == "trunk":
        return Start(ReLUNet(P, m, 2, depth + 1, tau=0.05, seed=seed).trunk(), X, j=1)
    return Start(ReLUNet(P, m, 2, depth, tau=tau, seed=seed), X, j=1)


def of(make, start, omegas):
    return attacks.random(start, omegas, seed=3) if make is attacks.random else make(start, omegas)


@pytest.mark.parametrize("tau", [None, 0.4, "trunk"])
@pytest.mark.parametrize("make", [*ALL, attacks.random])
def test_responses_are_those_of_the_net_with_changed_matrices(make, tau):
    start = start_of(1, tau)
    attack, net = of(make, start, OMEGAS), start.net
    found = attack.responses()
    for t, i in itertools.product(range(len(OMEGAS)), range(len(X))):
        changes = [
            torch.zeros_like(w) if v is None else _rank_one(v[t, i], h[t, i])
            for w, v, h in _layers(attack)
        ]
        other = net.with_weights([w + c for w, c in zip(net.W, changes, strict=True)])
        x = X[i : i + 1]
        (g, h), (g0, h0) = other.forward(x), net.forward(x)
        J, J0 = (_gradient(n, x) for n in (other, net))
        linear = torch.cat(J0).flatten() @ torch.cat(changes).flatten()
        expected = {
            "norm": max(torch.linalg.matrix_norm(c, 2) for c in changes),
            "flips": torch.stack(
                [((a >= 0) != (b >= 0)).double().mean() for a, b in zip(g, g0, strict=True)]
            ),
            "flipped": torch.stack(
                [(a * ((a >= 0) != (b >= 0))).norm() for a, b in zip(g, g0, strict=True)]
            ),
            "pre": torch.stack([(a - b).norm() for a, b in zip(g, g0, strict=True)]),
            "hidden": torch.stack([(a - b).norm() for a, b in zip(h[1:], h0[1:], strict=True)]),
            "gradient": torch.cat([a - b for a, b in zip(J, J0, strict=True)]).norm()
            / torch.cat(J0).norm(),
            "gradient last": (J[-1] - J0[-1]).norm() / J0[-1].norm(),
            "output": ((other.outputs(x) - net.outputs(x))[0, 1] - linear).abs(),
            "kernel": (torch.cat(J).square().sum() / torch.cat(J0).square().sum() - 1).abs(),
            "kernel last": (J[-1].square().sum() / J0[-1].square().sum() - 1).abs(),
        }
        assert set(found) == set(expected)
        for name, value in expected.items():
            torch.testing.assert_close(
                found[name][t, i], value, msg=lambda text, name=name: f"{name}: {text}"
            )


@pytest.mark.parametrize("tau", [None, 0.4])
@pytest.mark.parametrize("make", [attacks.output_all, attacks.kernel_last])
def test_the_kernel_of_two_inputs_is_that_of_the_net_changed_for_the_first(make, tau):
    start = start_of(1, tau)
    attack, net = make(start, OMEGAS), start.net
    for t, (i, k) in itertools.product(range(len(OMEGAS)), ((0, 1), (1, 0), (1, 1))):
        changes = [
            torch.zeros_like(w) if v is None else _rank_one(v[t, i], h[t, i])
            for w, v, h in _layers(attack)
        ]
        other = net.with_weights([w + c for w, c in zip(net.W, changes, strict=True)])
        K, K0 = kernel(other), kernel(net)
        expected = (K[i, k] - K0[i, k]).abs() / (K0[i, i] * K0[k, k]).sqrt()
        torch.testing.assert_close(attack.across(i, k)[t], expected)


def kernel(net):
    return layer_kernels(net.factors(X, unit(X, net.d, 1))).sum(0)


def _layers(attack):
    return zip(attack.net.W, attack.v, attack.h, strict=False)


def _rank_one(v, h):
    return torch.outer(v, h) / h.square().sum()


def _gradient(net, x):
    W = [w.clone().requires_grad_() for w in net.W]
    moved = net.with_weights(W)
    return [g.flatten() for g in torch.autograd.grad(moved.outputs(x)[0, 1], W)]


@pytest.mark.parametrize("make", [*ALL, attacks.random])
def test_no_attack_goes_beyond_its_radius(make):
    norms = of(make, start_of(4, m=200), OMEGAS).norms()
    limit = (
        1.2 if make is attacks.random else 1 + 1e-12
    )  # Gaussian matrices have that norm in the limit
    assert (norms <= limit * torch.tensor(OMEGAS)[:, None]).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_last_layer_attacks_are_maxima_by_brute_force(seed):
    start = start_of(seed, depth=1)
    g, b, h = start.g[-1][0], start.back[-1][0], start.h[-2][0]
    masks = torch.tensor(list(itertools.product([0.0, 1.0], repeat=M)), dtype=torch.float64)
    cost = masks @ (g * attacks.PAST_ZERO).square()
    for omega in (0.2, 0.6):
        allowed = masks[cost <= (omega * h.norm()) ** 2]
        value = b.square()
        size = value[g >= 0].sum()
        flips = attacks.flip_last(start, [omega]).responses()["flips"][0, 0, -1] * M
        assert flips.item() == allowed.sum(1).max()
        for make, name, worth in (
            (attacks.grad_last, "gradient last", value),
            (attacks.kernel_last, "kernel last", value * (g < 0)),
        ):
            found = make(start, [omega]).responses()[name][0, 0]
            found = (found**2 if name == "gradient last" else found) * size
            best = (allowed @ worth).max()
            assert found <= best * (1 + 1e-9)
            assert best <= found + worth.max() * (1 + 1e-9)
        found = attacks.output_last(start, [omega]).responses()["output"][0, 0]
        kinks = masks[:, b > 0]
        b_pos, g_pos = b[b > 0], g[b > 0].abs()
        best = (omega * h.norm() * (kinks @ b_pos.square()).sqrt() - kinks @ (b_pos * g_pos)).max()
        assert found <= best * (1 + 1e-9)
        assert best <= found + (omega * h.norm() * b_pos - b_pos * g_pos).max()


def test_the_output_attack_is_a_maximum_over_all_vectors():
    start = start_of(7, depth=1)
    g, b, h = start.g[-1][0], start.back[-1][0], start.h[-2][0]
    omega = 0.5
    found = attacks.output_last(start, [omega]).responses()["output"][0, 0]
    v = torch.randn(
        2000, M, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    ).requires_grad_()
    optimizer = torch.optim.Adam([v], lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        change = omega * h.norm() * v / v.norm(dim=1, keepdim=True)
        error = ((g + change).clamp(min=0) - g.clamp(min=0) - (g >= 0) * change) @ b
        (-error.sum()).backward()
        optimizer.step()
    assert error.max() <= found * (1 + 1e-6)
    assert error.max() >= 0.9 * found


def test_the_pull_is_autograds_jacobian():
    start = start_of(2, tau=0.5)
    attack = attacks.output_all(start, OMEGAS)
    q = torch.randn(
        attack.g[-1].shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    pulls = attack.pull(q)
    v = [part[1, 0].clone().requires_grad_() for part in attack.v]
    W = [w + _rank_one(part[1, 0], h[1, 0]) for w, part, h in _layers(attack)]
    changed, h = start.net.with_weights(W), attack.h[0][1, 0]
    for l in range(1, L + 1):  # W' itself is held; v_l is added beside it
        g = changed.apply(l, h) + changed.reach(l) * (v[l - 1] - v[l - 1].detach())
        h = torch.relu(g)
    expected = torch.autograd.grad((g * q[1, 0]).sum(), v)
    for found, wanted in zip(pulls, expected, strict=True):
        torch.testing.assert_close(found[1, 0], wanted)


def test_stretching_a_residual_net_adds_up_over_its_layers():
    tau, depth = 0.02, 9
    start = start_of(3, tau=tau, m=400, depth=depth)
    hidden = attacks.stretch(start, [0.01]).responses()["hidden"][0, 0]
    expected = tau * 0.01 * torch.arange(1.0, depth, dtype=torch.float64) * start.h[0][0].norm()
    torch.testing.assert_close(hidden[:-1], expected, rtol=0.1, atol=0)


def test_wide_layers_reach_the_closed_forms():
    m, omegas = 400_000, np.array([0.003, 0.03])
    start = Start(WideLayer(m, seed=1), X[:1])
    scale = start.h[0].norm().item()
    of_ = lambda make, name: make(start, omegas).responses()[name][:, 0].numpy()  # noqa: E731
    flips = attacks.flip_last(start, omegas).responses()["flips"][:, 0, 0].numpy()
    assert flips * m == pytest.approx(limits.sign_changes_onelayer(m, omegas), rel=0.03)
    assert of_(attacks.grad_last, "gradient") == pytest.approx(
        limits.thm5a_onelayer(omegas), rel=0.03
    )
    assert of_(attacks.output_last, "output") == pytest.approx(
        scale * limits.thm5b_onelayer(omegas, m, 1), rel=0.05
    )
    assert of_(attacks.kernel_last, "kernel") == pytest.approx(
        limits.thm5c_onelayer(omegas), rel=0.05
    )
    moved = attacks.random(start, omegas, seed=2).responses()["flips"][:, 0, 0].numpy()
    expected = limits.sign_changes_random(m, omegas)
    assert (np.abs(moved * m - expected) < 4 * np.sqrt(expected)).all()


def test_random_vectors_have_the_law_of_gaussian_matrices_of_that_norm():
    start = start_of(0, m=800, depth=1)
    v = attacks.random(start, [0.1], seed=1).v[0][0, 0]
    G = torch.randn(800, 800, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    G = 0.1 * G / torch.linalg.matrix_norm(G, 2)
    expected = (G @ start.h[0][0]).norm()
    assert v.norm().item() == pytest.approx(expected.item(), rel=0.05)
