"""Nets and training of the landscape figures: the cited code's sizes, torch's steps, resuming."""

import copy
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy, pad

from overparam.errors import ParameterError, TrainingDiverged
from overparam.models.convolutional import cifar_net
from overparam.training import autograd
from overparam.training.autograd import Recipe, augmented, train
from overparam.training.checkpoints import Checkpoint

SMALL = {"shape": (1, 8, 8), "classes": 4}
SCALE = (
    torch.full((1, 1, 1), 0.5, dtype=torch.float64),
    torch.full((1, 1, 1), 0.25, dtype=torch.float64),
)
SHORT = Recipe(4, 0.1, 4, drops=(2,), momentum=0.9, weight_decay=5e-4, padding=1, flip=True)


@pytest.mark.parametrize(
    ("name", "layers", "width", "counts"),
    [
        ("vgg19", [2, 2, 4, 4, 4], 64, (20_040_522, 20_086_692)),  # VGG19
        ("resnet32", [5, 5, 5], 16, (466_906, 472_756)),  # ResNet-32
        ("resnet110-basic", [18, 18, 18], 16, (1_730_714, 1_736_564)),  # ResNet-110
        ("resnet110", [18, 18, 18], 16, (1_704_154, 1_727_284)),  # what the code called so: "1.70M"
    ],
)
def test_the_papers_nets_have_the_numbers_of_weights_of_the_cited_code(name, layers, width, counts):
    nets = [cifar_net(name, layers, width, shape=(3, 32, 32), classes=k, seed=0) for k in (10, 100)]
    assert tuple(sum(p.numel() for p in net.parameters()) for net in nets) == counts


def test_convolutions_have_the_announced_variance():
    net = cifar_net("vgg19", [1, 1, 1, 1], 64, shape=(3, 16, 16), classes=10, seed=0)
    convolutions = [m for m in net.modules() if isinstance(m, torch.nn.Conv2d)]
    assert convolutions[-1].weight.var().item() == pytest.approx(2 / (9 * 512), rel=0.01)
    assert net.layers[-1].weight.std().item() == pytest.approx(0.01, rel=0.05)


def test_unknown_families_and_sizes_are_refused():
    with pytest.raises(ParameterError, match="unknown net"):
        cifar_net("alexnet", [1], 8, **SMALL, seed=0)
    with pytest.raises(ParameterError, match="halved"):
        cifar_net("vgg19", [1] * 4, 8, **SMALL, seed=0)


def test_windows_and_mirror_images():
    x = torch.arange(2 * 3 * 4 * 4, dtype=torch.float64).reshape(2, 3, 4, 4)
    made = augmented(x, torch.tensor([[0, 3], [2, 1]]), torch.tensor([False, True]), 2)
    padded = pad(x, [2] * 4)
    torch.testing.assert_close(made[0], padded[0, :, 0:4, 3:7])
    torch.testing.assert_close(made[1], padded[1, :, 2:6, 1:5].flip(-1))
    same = augmented(x, torch.full((2, 2), 2), torch.zeros(2, dtype=torch.bool), 2)
    torch.testing.assert_close(same, x)


def images(n=10):
    draw = torch.Generator().manual_seed(3)
    x = torch.rand(n, 1, 8, 8, generator=draw, dtype=torch.float64)
    return x, torch.randint(0, 4, (n,), generator=draw)


def test_training_is_torchs_sgd_with_momentum_and_weight_decay():
    """Without augmentation, batch by batch in the order of an epoch, with torch's scheduler."""
    x, y = images()
    recipe = Recipe(4, 0.1, 4, drops=(2,), momentum=0.9, weight_decay=0.01)
    net = cifar_net("vgg19", [1, 1], 2, **SMALL, seed=0)
    other = copy.deepcopy(net)
    course = train(net, x, y, recipe, scale=SCALE, at=[0, 3, 4], seed=7)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    drops = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2], gamma=0.1)
    for epoch in range(4):
        order = torch.randperm(10, generator=torch.Generator().manual_seed(7 * 1_000_003 + epoch))
        for rows in order.split(4):
            optimizer.zero_grad()
            cross_entropy(other((x[rows] - 0.5) / 0.25), y[rows]).backward()
            optimizer.step()
        drops.step()
    assert sorted(course.states) == [0, 3, 4]
    for name, t in other.state_dict().items():
        torch.testing.assert_close(course.states[4][name], t, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("stop", [7, 9])  # within epoch 2, and as epoch 3 begins
def test_a_training_resumes_to_the_bit(tmp_path, monkeypatch, stop):
    x, y = images()

    def trained(checkpoint=None):
        net = cifar_net("resnet32", [1, 1], 2, **SMALL, seed=0)
        net = torch.nn.Sequential(net, torch.nn.Dropout(0.3))
        more = {"at": [0, 2, 10], "seed": 0, "checkpoint": checkpoint}
        return train(net, x, y, replace(SHORT, epochs=10), scale=SCALE, **more)

    whole = trained()
    saved = Checkpoint(tmp_path / "run", every=0.0)
    monkeypatch.setattr(autograd, "augmented", augmented_until(stop))
    with pytest.raises(KeyboardInterrupt):
        trained(saved)
    monkeypatch.undo()
    for _ in range(2):  # the second time it is only read
        again = trained(saved)
        assert torch.equal(again.loss, whole.loss)
        assert list(again.states) == [0, 2, 10]
        for epoch, state in whole.states.items():
            for name, tensor in state.items():
                assert torch.equal(again.states[epoch][name], tensor)


def augmented_until(stop):
    """`augmented` of a training that is killed in the batch `stop`, from 0."""
    calls = []

    def until(*args):
        calls.append(args)
        if len(calls) > stop:
            raise KeyboardInterrupt
        return augmented(*args)

    return until


def test_training_refuses_epochs_beyond_its_end_and_reports_divergence():
    x, y = images()
    net = cifar_net("vgg19", [1], 2, **SMALL, seed=0)
    with pytest.raises(ParameterError, match="at must lie"):
        train(net, x, y, SHORT, scale=SCALE, at=[5], seed=0)
    with pytest.raises(TrainingDiverged, match="lower eta"):
        train(net, x * float("nan"), y, SHORT, scale=SCALE, at=[4], seed=0)
