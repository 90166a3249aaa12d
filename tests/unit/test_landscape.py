"""Landscapes against closed forms on a saddle, and the objective of a net against torch's own layers."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from overparam.errors import ParameterError
from overparam.experiments import allenzhu2019_landscape as landscape
from overparam.experiments.allenzhu2019_landscape import Objective, Probe, gradients, landscapes
from overparam.models.convolutional import cifar_net
from overparam.training.autograd import Recipe, error, train
from overparam.training.checkpoints import Checkpoint

SHAPE = {"shape": (1, 8, 8), "classes": 4}
SCALE = (torch.full((1, 1, 1), 0.5, dtype=torch.float64), torch.full((1, 1, 1), 0.25, dtype=torch.float64))
QUICK = Probe(oja_steps=8, oja_batch=6, oja_doublings=1, lanczos_steps=5, displacements=1, grid=5)


class Saddle:
    """F(w) = 3 + g.w + sum of spectrum w^2/2 around w = 0, shifted so that |W| = 1."""

    def __init__(self, p=40):
        draw = torch.Generator().manual_seed(0)
        self.spectrum = torch.cat(
            [torch.tensor([-0.5]), torch.linspace(0.01, 0.3, p - 2), torch.tensor([4.0])]
        ).double()
        self.w = torch.nn.functional.normalize(torch.randn(p, generator=draw, dtype=torch.float64), dim=0)
        self.g = 0.01 * torch.randn(p, generator=draw, dtype=torch.float64)
        self.y = torch.zeros(10)

    def value(self, w):
        return 3 + self.g @ (w - self.w) + (self.spectrum * (w - self.w) ** 2).sum() / 2

    def gradient(self, w, rows=None):
        return self.g + self.spectrum * (w - self.w)

    def accuracy(self, w):
        return torch.tensor(0.5)


def test_the_landscape_of_a_saddle_has_its_closed_forms():
    saddle = Saddle()
    found = landscape.landscape(saddle, saddle.w, Probe(oja_steps=200, grid=13), seed=1)
    g = saddle.g / saddle.g.norm()
    assert found["F"].item() == pytest.approx(3)
    assert found["gradient"].item() == pytest.approx(saddle.g.norm().item())
    assert found["lambda_max"].item() == pytest.approx(4, rel=1e-6)
    assert found["lambda_lanczos"].item() == pytest.approx(-0.5, rel=1e-3)
    assert found["lambda_min"].item() == pytest.approx(-0.5, rel=1e-3)  # nothing is noisy here
    assert found["lambda_lanczos_fresh"].item() == pytest.approx(-0.5, rel=1e-3)
    assert found["lambda_min_se"].item() == pytest.approx(0, abs=1e-12)
    assert found["lambda_g"].item() == pytest.approx((saddle.spectrum * g**2).sum().item())
    assert found["cosine"].item() == pytest.approx(abs(g[0].item()), abs=0.01)
    assert found["q"].item() == pytest.approx(0.02)
    assert found["sigma"].item() == pytest.approx(0.02 / 40**0.5)
    best = saddle.g.norm().item() / found["lambda_g"].item()  # of the parabola along -g
    ratio = 10 ** (4 / 24)
    assert best / ratio < found["alpha"].item() < best * ratio
    assert 0.9 < found["D_g"].item() / (saddle.g.norm().item() * best / 2) <= 1
    for name, length in (("D_v1", 1), ("D_v2", 2)):
        reach = length * found["alpha"].item()
        exact = abs(saddle.g[0].item()) * reach + 0.25 * reach**2
        assert found[name].item() == pytest.approx(exact, rel=0.02)


def test_ojas_steps_are_doubled_until_they_reach_half_of_lanczos():
    saddle = Saddle()
    steps = {
        d: landscape.landscape(saddle, saddle.w, Probe(oja_steps=4, oja_doublings=d), 1)["oja_steps"] for d in (0, 9)
    }
    assert steps[0] == 4
    assert 8 <= steps[9] <= 512
    values = torch.tensor([-1.0, 2.0])
    assert landscape.needs_more(torch.tensor(-0.4), values)
    assert not landscape.needs_more(torch.tensor(-0.6), values)
    assert not landscape.needs_more(torch.tensor(0.1), torch.tensor([-0.01, 2.0]))


def trained(at=(0, 1, 2)):
    draw = torch.Generator().manual_seed(0)
    x = torch.rand(12, 1, 8, 8, generator=draw, dtype=torch.float64)
    y = torch.randint(0, 4, (12,), generator=draw)
    net = cifar_net("vgg19", [1, 1], 2, **SHAPE, seed=0)
    recipe = Recipe(2, 0.1, 6, drops=(1,), momentum=0.9, weight_decay=5e-4, padding=1, flip=True)
    course = train(net, x, y, recipe, scale=SCALE, at=at, seed=0)
    return net, course, (x - 0.5) / 0.25, y


def test_the_objective_is_the_mean_cross_entropy_with_normalization_by_chunks():
    net, course, x, y = trained()
    objective = Objective(net, x, y, chunk=8)
    w = objective.flat.vector(course.states[2])
    before = {name: t.clone() for name, t in net.state_dict().items()}
    net.train()
    parts = [cross_entropy(net(x[rows]), y[rows], reduction="sum") for rows in (slice(8), slice(8, 12))]
    expected = sum(parts) / 12
    own = torch.cat([g.flatten() for g in torch.autograd.grad(expected, list(net.parameters()))])
    net.load_state_dict(before)
    torch.testing.assert_close(objective.value(w), expected.detach())
    torch.testing.assert_close(objective.gradient(w), own)
    rows = torch.tensor([3, 1, 7, 2])
    net.train()
    some = cross_entropy(net(x[rows]), y[rows])
    own = torch.cat([g.flatten() for g in torch.autograd.grad(some, list(net.parameters()))])
    torch.testing.assert_close(objective.gradient(w, rows), own)
    two = [objective.gradient(w, torch.arange(8)), objective.gradient(w, torch.arange(8, 11))]
    torch.testing.assert_close(objective.gradient(w, torch.arange(11)), (8 * two[0] + 3 * two[1]) / 11)


def test_the_objective_by_running_statistics_is_the_net_in_evaluation():
    net, course, x, y = trained()
    for epoch in (1, 2):
        net.load_state_dict(course.states[epoch])
        net.eval()
        found = gradients(net, course, x, y, bn="eval")
        expected = cross_entropy(net(x), y)
        own = torch.cat([g.flatten() for g in torch.autograd.grad(expected, list(net.parameters()))])
        assert found["F"][epoch] == pytest.approx(expected.item())
        assert found["gradient"][epoch] == pytest.approx(own.norm().item())
        wrong = (net(x).argmax(1) != y).double().mean().item()
        assert error(net, course.states[epoch], x * 0.25 + 0.5, y, scale=SCALE, chunk=5) == pytest.approx(wrong)
    with pytest.raises(ParameterError, match="bn"):
        Objective(net, x, y, bn="none")


def test_finished_snapshots_are_read_and_not_computed_again(tmp_path, monkeypatch):
    net, course, x, y = trained()
    first = landscapes(net, course, x, y, QUICK, checkpoint=Checkpoint(tmp_path / "land"))
    assert first["epoch"].tolist() == [1, 2]
    assert first["surface"].shape == (2, 5, 5)
    start, w = (torch.cat([course.states[e][n].flatten() for n, _ in net.named_parameters()]) for e in (0, 2))
    assert first["distance"][1] == pytest.approx(((w - start).norm() / start.norm()).item())
    monkeypatch.setattr(landscape, "landscape", None)
    again = landscapes(net, course, x, y, QUICK, checkpoint=Checkpoint(tmp_path / "land"))
    assert all(np.array_equal(first[name], again[name]) for name in first)
