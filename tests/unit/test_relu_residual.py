"""The residual layers by themselves and their sign changes, against the net with changed matrices and a sorted sum."""

import numpy as np
import torch

from overparam.data import load
from overparam.models.deep_relu import ReLUNet
from overparam.theory.perturbation.attacks import aligned_flip, random
from overparam.theory.perturbation.changes import Start

X = load("sphere", n_train=3, n_test=0, d=5, transform="unit_bias", seed=1).x_train
OMEGAS = [0.02, 0.1]


def trunk_of(depth, m=60, tau=0.05):
    return ReLUNet(6, m, 1, depth, tau=tau, seed=2).trunk()


def test_a_trunk_is_the_net_without_its_last_layer():
    net = ReLUNet(6, 40, 1, 4, tau=0.1, seed=0)
    g, h = net.trunk().forward(X)
    full_g, full_h = net.forward(X)
    assert len(g) == 3
    for found, expected in zip([*g, *h], [*full_g[:3], *full_h[:4]], strict=True):
        torch.testing.assert_close(found, expected)
    assert net.L == 4
    assert not net.skips(4)


def test_flips_are_those_of_changed_matrices_within_the_radius():
    trunk = trunk_of(5)
    start = Start(trunk, X)
    attack = aligned_flip(start, OMEGAS)
    assert (attack.norms() <= torch.tensor(OMEGAS, dtype=torch.float64)[:, None] * (1 + 1e-9)).all()
    flips = attack.responses()["flips"]
    for t in range(len(OMEGAS)):
        for i in range(len(X)):
            pairs = [(v[t, i], h[t, i]) for v, h in zip(attack.v, attack.h, strict=False)]
            changed = [W + torch.outer(v, h) / (h @ h) for W, (v, h) in zip(trunk.W, pairs, strict=True)]
            g, _ = trunk.with_weights(changed).forward(X[i : i + 1])
            differ = [((a >= 0) != (b[i] >= 0)).double().mean() for a, b in zip(g, start.g, strict=True)]
            torch.testing.assert_close(flips[t, i], torch.stack(differ))


def test_one_residual_layer_flips_as_many_signs_as_the_norm_allows():
    trunk = trunk_of(2)
    start = Start(trunk, X)
    found = aligned_flip(start, OMEGAS).responses()["flips"][..., 0] * 60
    for t, omega in enumerate(OMEGAS):
        for i in range(len(X)):
            costs = np.sort((start.g[0][i] / trunk.tau).numpy() ** 2).cumsum()
            budget = (omega * start.h[0][i].norm().item()) ** 2
            assert round(found[t, i].item()) == (costs <= budget).sum()


def test_several_layers_flip_more_than_random_changes_do():
    start = Start(trunk_of(6, m=300), X)
    aligned = aligned_flip(start, OMEGAS).responses()["flips"][..., -1]
    assert (aligned > 3 * random(start, OMEGAS, seed=0).responses()["flips"][..., -1]).all()
