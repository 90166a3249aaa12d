"""Image tasks: averages of squares, wrong labels, and the scale of the channels."""

import pytest
import torch

from overparam.data import load
from overparam.data.tasks import image_task, relabelled
from overparam.errors import ParameterError


def test_exactly_a_fifth_of_the_labels_is_wrong_and_none_by_chance_right():
    y = torch.arange(1000) % 10
    before = y.clone()
    noisy = relabelled(y, 0.2, 10, seed=0)
    wrong = noisy != y
    assert torch.equal(y, before)
    assert wrong.sum() == 200
    assert not torch.equal(wrong, relabelled(y, 0.2, 10, seed=1) != y)
    shifts = (noisy - y)[wrong].remainder(10).bincount(minlength=10)
    assert shifts[1:].min() >= 9  # each of the nine others about 22 times
    assert torch.equal(relabelled(y, 0.0, 10, seed=0), y)


def test_images_are_means_of_squares_with_the_scale_of_their_channels():
    data, x, y, (mean, std) = image_task("photo-patches", n=30, size=8, seed=3, dtype=torch.float64)
    raw = load("photo-patches", n_train=30, n_test=0, seed=3, transform="raw").x_train
    assert x.shape == (30, 3, 8, 8)
    torch.testing.assert_close(x[7, 1, 2, 5], raw[7, 1, 8:12, 20:24].mean())
    scaled = (x - mean) / std
    torch.testing.assert_close(scaled.mean((0, 2, 3)), torch.zeros(3, dtype=torch.float64))
    torch.testing.assert_close(scaled.std((0, 2, 3)), torch.ones(3, dtype=torch.float64))
    assert torch.equal(y, data.y_train.long())
    with pytest.raises(ParameterError, match="pooled"):
        image_task("photo-patches", n=30, size=5, seed=3)
