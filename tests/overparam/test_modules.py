"""The nets in plain torch: the sizes that the paper's tables have, functions, and training."""

import dataclasses

import pytest
import torch

from overparam.data import load
from overparam.errors import ParameterError, TrainingDiverged
from overparam.models.convolutional import LeakyCNN
from overparam.models.modules import LeakyUnit
from overparam.models.sequence import LeakyLSTM, LeakyViT
from overparam.training import Checkpoint, Recipe
from overparam.training.autograd import train
from overparam.training.batches import epoch_order

SMALL_VIT = {"size": 8, "dim": 6, "layers": 2, "heads": 2, "head_dim": 3, "mlp": 10, "head": 12}
SMALL_CNN = {"size": 8, "width": 3, "hidden": 5}
cross_entropy = torch.nn.functional.cross_entropy


def parameter_count(module):
    return sum(p.numel() for p in module.parameters())


def test_the_papers_sizes_have_the_papers_numbers_of_weights():
    assert parameter_count(LeakyCNN(-1.0, 0)) == 9 * 512 * (3 + 3 * 512) + 32_768 * 512 + 512 * 10
    lstm = sum(4 * 256 * (inputs + 256 + 2) for inputs in (64, 256))
    assert parameter_count(LeakyLSTM(-1.0, 0)) == 1000 * 64 + lstm + (256 + 1) * 4096 + 4096 + 1
    attention = 64 * 3 * 512 + 512 * 64 + 64
    block = attention + 64 * 8192 + 8192 + 8192 * 64 + 64 + 4 * 64
    head = (64 + 1) * 8192 + (8192 + 1) * 10
    assert parameter_count(LeakyViT(-1.0, 0)) == 16 * 64 + 64 + 49 * 64 + 6 * block + 2 * 64 + head


@pytest.mark.parametrize("alpha", [-2.0, -1.0, 0.0, 0.5])
def test_the_unit_and_its_derivative(alpha):
    x = torch.tensor([-2.0, 3.0], dtype=torch.float64, requires_grad=True)
    y = LeakyUnit(alpha)(x)
    norm = (1 + alpha**2) ** 0.5
    expected = torch.tensor([-2 * alpha, 3], dtype=torch.float64) / norm
    torch.testing.assert_close(y.detach(), expected)
    (slope,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(slope, torch.tensor([alpha, 1], dtype=torch.float64) / norm)


def test_the_layers_have_the_announced_variances():
    by_outputs = LeakyLSTM(-1.0, 0, head=4000, fan="out").head[0]
    assert by_outputs.weight.var().item() == pytest.approx(2 / 4000, rel=0.02)
    by_inputs = LeakyLSTM(-1.0, 0, head=4000).head[0]
    assert by_inputs.weight.var().item() == pytest.approx(2 / 256, rel=0.02)
    last = LeakyViT(-1.0, 0).head[2]
    assert last.weight.var().item() == pytest.approx(1 / 10, rel=0.02)
    with pytest.raises(ParameterError, match="fan"):
        LeakyLSTM(-1.0, 0, fan="up")


def test_the_transformer_cuts_images_into_patches():
    x = torch.arange(64, dtype=torch.float64).reshape(1, 1, 8, 8)
    net = LeakyViT(-1.0, 0, **SMALL_VIT)
    patches = []
    net.embedding.register_forward_hook(lambda module, inputs, outputs: patches.append(inputs[0]))
    assert net(x).shape == (1, 10)
    torch.testing.assert_close(patches[0][0, 1], x[0, 0, :4, 4:].flatten())


def test_attention_is_torchs():
    attention = LeakyViT(-1.0, 0, **SMALL_VIT).blocks[0].f
    x = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    parts = [p.reshape(2, 5, 2, 3).transpose(1, 2) for p in attention.qkv(x).chunk(3, -1)]
    mixed = torch.nn.functional.scaled_dot_product_attention(*parts)
    joined = mixed.transpose(1, 2).reshape(2, 5, 6)
    torch.testing.assert_close(attention(x), attention.out(joined))


def images(seed, n=9):
    data = load("photo-patches", n_train=n, n_test=4, seed=seed, transform="half", flat=False)
    cut = {name: getattr(data, name)[..., :8, :8] for name in ("x_train", "x_test")}
    return dataclasses.replace(data, **cut)


def build(alpha, seed):
    return LeakyCNN(alpha, seed, **SMALL_CNN)


RECIPE = Recipe(epochs=3, eta=0.01, batch=4)


def test_training_is_torchs_sgd():
    data, net = images(3), build(0.5, 3)
    course = train(build(0.5, 3), data.x_train, data.y_train, RECIPE, at=[3], seed=3)
    optimiser = torch.optim.SGD(net.parameters(), 0.01)
    for epoch in range(3):
        for index in epoch_order(9, 3, epoch).split(4):
            optimiser.zero_grad()
            cross_entropy(net(data.x_train[index]), data.y_train[index]).backward()
            optimiser.step()
    for name, expected in net.state_dict().items():
        torch.testing.assert_close(course.states[3][name], expected)


def test_a_look_without_dropout_changes_no_training_and_finished_runs_are_read_back(tmp_path):
    words = torch.randint(0, 20, (12, 5), generator=torch.Generator().manual_seed(0))
    labels = (torch.arange(12) % 2).double()
    loss = torch.nn.functional.binary_cross_entropy_with_logits

    def trained(at, checkpoint=None):
        net = LeakyLSTM(-1.0, 0, vocab=20, dim=3, hidden=4, head=8)

        def look():
            net.eval()
            twice = [loss(net(words), labels), loss(net(words), labels)]
            return {"errors": torch.stack(twice).detach()}

        more = {"loss": loss, "look": look, "checkpoint": checkpoint}
        course = train(net, words, labels, RECIPE, at=at, seed=0, **more)
        return course.states[3]["errors"]

    first = trained([3], Checkpoint(tmp_path / "c"))
    often = trained([0, 1, 2, 3])
    assert first[0] == first[1]  # no dropout where it is measured
    torch.testing.assert_close(first, often, rtol=0, atol=0)
    assert (trained([3], Checkpoint(tmp_path / "c")) == first).all()


def test_a_divergence_is_an_error():
    data, wild = images(0), dataclasses.replace(RECIPE, eta=1e9)
    with pytest.raises(TrainingDiverged, match="epoch"):
        train(build(-1.0, 0), data.x_train, data.y_train, wild, at=[3], seed=0)
