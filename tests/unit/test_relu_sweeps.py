"""Sweeps of attacks: against single attacks, and windows against the closed forms."""

import numpy as np
import pytest

from overparam.bounds import allenzhu2019 as limits
from overparam.data import load
from overparam.experiments import allenzhu2019_attacks as relu_sweeps
from overparam.models.deep_relu import ReLUNet, WideLayer
from overparam.theory.perturbation import attacks as relu_attacks
from overparam.theory.perturbation.changes import Start

X = load("sphere", n_train=3, n_test=0, d=4, seed=2).x_train
OMEGAS = np.array([0.01, 0.05, 0.3])


def test_windows_start_where_enough_signs_change():
    for m in (256, 10**6):
        adversarial, gaussian = relu_sweeps.adversarial_window(m, 5), relu_sweeps.gaussian_window(m, 4)
        assert limits.sign_changes_onelayer(m, adversarial[0]) == pytest.approx(10)
        assert limits.sign_changes_random(m, gaussian[0]) == pytest.approx(20, rel=0.02)
        assert (len(adversarial), adversarial[-1]) == (5, pytest.approx(0.1))
        assert (len(gaussian), gaussian[-1]) == (4, pytest.approx(0.5))


@pytest.mark.parametrize("at_once", [None, 1, 2])
def test_sweeps_are_single_attacks_seed_by_seed(at_once):
    radii = {"grad_last": OMEGAS, "random": OMEGAS[:2], "output_all": OMEGAS[1:]}
    make = lambda seed: ReLUNet(4, 30, 2, 3, seed=seed)  # noqa: E731
    found = relu_sweeps.over_seeds(make, X, radii, ["flips", "gradient", "across"], seeds=[4, 7], at_once=at_once)
    for s, seed in enumerate((4, 7)):
        start = Start(make(seed), X)
        for t, omega in enumerate(OMEGAS):
            attack = relu_attacks.grad_last(start, [omega])
            for name in ("flips", "gradient"):
                assert found["grad_last"][name][s, t] == pytest.approx(attack.responses()[name][0].numpy())
            assert found["grad_last"]["across"][s, t] == pytest.approx(attack.across(0, 1).numpy())


def test_gaussian_changes_are_independent_over_seeds_and_of_the_net():
    radii = {"random": [0.3]}
    found = relu_sweeps.over_seeds(lambda seed: WideLayer(2000, seed=0), X, radii, ["hidden"], seeds=[0, 1])
    assert not np.allclose(*found["random"]["hidden"])
    net = ReLUNet(4, 2000, 1, 1, seed=0)
    v = relu_attacks.random(Start(net, X), [0.3], seed=relu_sweeps.NOISE).v[0][0, 0]
    assert abs(np.corrcoef(v.numpy(), net.A[:, 0].numpy())[0, 1]) < 0.1
