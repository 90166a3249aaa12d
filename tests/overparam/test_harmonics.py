"""Coefficients by degree against closed forms, and the norm they give against Gram matrices."""

import math

import numpy as np
import pytest
import torch

from overparam.bounds.arora2019 import thm61_sharp_const
from overparam.data import load
from overparam.errors import ParameterError
from overparam.theory.harmonics import relu_norm, relu_profile, zonal_coefficients
from overparam.theory.infinite_width_kernels import relu_gram


@pytest.mark.parametrize("d", [2, 3, 7, 40])
def test_the_cubic_has_its_known_linear_part_and_the_parts_add_up(d):
    linear, cubic = zonal_coefficients(lambda t: t**3, d, [1, 3])
    assert linear == pytest.approx(3 / (d + 2), rel=1e-12)
    assert linear + cubic == pytest.approx(1, rel=1e-11)


def test_on_the_circle_they_are_the_fourier_coefficients():
    found = zonal_coefficients(lambda t: np.cos(3 * t), 2, range(9))
    angle = np.linspace(0, 2 * np.pi, 256, endpoint=False)
    fourier = np.fft.rfft(np.cos(3 * np.cos(angle))).real[:9] / 128
    assert found == pytest.approx(fourier * np.array([0.5, *[1] * 8]), abs=1e-13)


def test_the_relu_kernel_in_three_dimensions():
    assert zonal_coefficients(relu_profile, 3, range(6)) == pytest.approx(
        [1 / 16, 1 / 4, 35 / 256, 0, 21 / 1024, 0], abs=1e-13
    )


@pytest.mark.parametrize("d", [3, 5])
def test_the_norm_is_the_limit_of_the_form_from_below(d):
    x = load("sphere", d=d, n_train=1500, n_test=0, seed=1).x_train
    y = x[:, :1] ** 4
    form = (y.T @ torch.linalg.solve(relu_gram(x), y)).item()
    assert 0.95 < math.sqrt(form) / relu_norm(lambda t: t**4, d, [0, 2, 4]) < 1


@pytest.mark.parametrize("p", [1, 2, 8])
def test_in_high_dimension_the_norm_is_that_of_one_term_of_the_series(p):
    norm = relu_norm(lambda t: t**p, 400, range(p % 2, p + 1, 2))
    assert norm == pytest.approx(thm61_sharp_const(p), rel=0.15 if p == 8 else 0.02)
    assert norm <= thm61_sharp_const(p) * (1 + 1e-12)


def test_odd_degrees_have_no_norm():
    with pytest.raises(ParameterError, match="even"):
        relu_norm(lambda t: t**3, 3, [1, 3])


def test_a_sphere_needs_two_dimensions():
    with pytest.raises(ParameterError, match="d >= 2"):
        zonal_coefficients(np.cos, 1, [0])
