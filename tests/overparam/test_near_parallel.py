"""The numerics of the Gram matrix against high-precision arithmetic and cases with known
answers.
"""

import math

import pytest
import torch

from overparam.theory.infinite_width_kernels import relu_gram
from overparam.theory.near_parallel import nearest_parallel, stable_relu_gram, turned


@pytest.fixture
def x():
    generator = torch.Generator().manual_seed(0)
    return torch.nn.functional.normalize(
        torch.randn(12, 5, generator=generator, dtype=torch.float64), dim=1
    )


def test_the_stable_gram_is_the_gram_and_keeps_what_arccos_loses(x):
    torch.testing.assert_close(stable_relu_gram(x), relu_gram(x), rtol=0, atol=1e-14)
    for distance in (1e-9, 1e-6, 1e-3):
        pair = torch.stack([x[0], turned(x[0], x[1], distance)])
        angle = 2 * math.asin(distance / 2)
        gap = 0.5 - stable_relu_gram(pair)[0, 1].item()
        expected = 0.5 - math.cos(angle) * (0.5 - angle / (2 * math.pi))
        assert gap == pytest.approx(expected, rel=1e-6, abs=2e-16)


def test_turned_is_a_unit_vector_at_the_distance(x):
    for distance in (1e-8, 1e-3, 1.0):
        other = turned(x[0], x[1], distance)
        assert other.norm().item() == pytest.approx(1, abs=1e-15)
        assert (other - x[0]).norm().item() == pytest.approx(distance, rel=1e-7)


def test_nearest_parallel_against_all_pairs(x):
    found = nearest_parallel(x)
    for i in range(len(x)):
        others = torch.cat([x[:i], x[i + 1 :]])
        apart = torch.minimum((x[i] - others).norm(dim=1), (x[i] + others).norm(dim=1))
        assert found[i].item() == pytest.approx(apart.min().item(), rel=1e-12)
    assert nearest_parallel(torch.cat([x, -x[3:4]]))[[3, 12]].tolist() == [0, 0]
