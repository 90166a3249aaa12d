"""The batched nets and optimizers against torch modules with autograd; the fraction and the intervals by definition."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from overparam.errors import ParameterError
from overparam.experiments import synthesis_alpha
from overparam.experiments.synthesis_alpha import Cell
from overparam.models.leaky import LeakyMLP
from overparam.models.modules import LeakyUnit

N, TEST, P, M, L = 12, 7, 5, 6, 3


def drawn(seed, classes=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(N + TEST, P, generator=generator, dtype=torch.float64)
    y = torch.randn(N + TEST, generator=generator, dtype=torch.float64)
    if classes:
        y = torch.randperm(N + TEST, generator=generator) % classes
    return SimpleNamespace(x_train=x[:N], x_test=x[N:], y_train=y[:N], y_test=y[N:])


def plain_net(seed, d, alpha, biases, batch_norm):
    """The same net as a torch module: A, then layers, then B."""
    draw = LeakyMLP(P, M, d, L, alphas=[0.0], seeds=[seed], dtype=torch.float64)
    layers = [nn.Linear(P, M, bias=False)]
    layers[0].weight = nn.Parameter(draw.A[0], requires_grad=False)
    for W in draw.W[0]:
        linear = nn.Linear(M, M, bias=biases and not batch_norm, dtype=torch.float64)
        linear.weight = nn.Parameter(W.clone())
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)
        layers.append(linear)
        if batch_norm:
            norm = nn.BatchNorm1d(M, eps=synthesis_alpha.FLOOR * 2 / M, momentum=None, dtype=torch.float64)
            nn.init.constant_(norm.weight, (2 / M) ** 0.5)
            norm.bias.requires_grad_(biases)
            layers.append(norm)
        layers.append(LeakyUnit(alpha))
    layers.append(nn.Linear(M, d, bias=False))
    layers[-1].weight = nn.Parameter(draw.B[0], requires_grad=False)
    return nn.Sequential(*layers).double()


def plain_loss(kind, d):
    if kind == "squared":
        return lambda u, y: ((u - y) ** 2).sum() / (2 * len(u))
    if d == 1:
        return lambda u, y: torch.log1p(torch.exp(-u * y)).mean()
    return lambda u, y: nn.functional.cross_entropy(u, y.argmax(-1))


def plain_training(cell, data, seed, alpha, eta, steps, batch, order_seed):
    """(training loss, test loss) by autograd and torch's own optimizers, one run."""
    y, y_test = (t[0] for t in synthesis_alpha.targets([data], cell.loss))
    d = y.shape[-1]
    net = plain_net(seed, d, alpha, cell.biases == "with", cell.batch_norm == "with")
    loss = plain_loss(cell.loss, d)
    free = [w for w in net.parameters() if w.requires_grad]
    optimizer = (torch.optim.Adam if cell.optimizer == "Adam" else torch.optim.SGD)(free, lr=eta)
    for index in synthesis_alpha.batches(N, batch, steps, order_seed, cell.optimizer):
        index = torch.arange(N) if index is None else index
        optimizer.zero_grad()
        loss(net(data.x_train[index]), y[index]).backward()
        optimizer.step()
    with torch.no_grad():
        for layer in net:
            if isinstance(layer, nn.BatchNorm1d):
                layer.reset_running_stats()
        train = loss(net(data.x_train), y).item()
        for i, layer in enumerate(net):  # torch keeps the unbiased variance; the net takes the biased one
            if isinstance(layer, nn.BatchNorm1d):
                layer.eval()
                layer.running_var = net[:i](data.x_train).var(0, unbiased=False)
        return train, loss(net(data.x_test), y_test).item()


@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("kind", synthesis_alpha.LOSSES)
@pytest.mark.parametrize("optimizer", synthesis_alpha.OPTIMIZERS)
@pytest.mark.parametrize(
    ("biases", "batch_norm"), [("without",) * 2, ("with", "without"), ("without", "with"), ("with",) * 2]
)
def test_a_cell_is_the_plain_training(classes, kind, optimizer, biases, batch_norm):
    cell = Cell("drawn", L, M, kind, optimizer, biases, batch_norm)
    seeds, alphas, multiples = [3, 8], [-1.0, 0.0, 0.5], [0.05, 0.2]
    data = [drawn(seed, classes) for seed in seeds]
    sizes = {"steps": 7, "batch": 4}
    options = {"alphas": alphas, "multiples": multiples, "refine": [], "dtype": torch.float64, **sizes}
    result = synthesis_alpha.train_cell(cell, data, seeds, **options)
    assert result["multiple"].tolist() == [multiples] * 3
    assert result["train"].shape == result["test"].shape == (3, 2, 2)
    for a, e, s in [(0, 0, 0), (1, 1, 1), (2, 1, 0)]:
        eta = synthesis_alpha.step_unit(cell, classes or 1) * multiples[e]
        plain = plain_training(cell, data[s], seeds[s], alphas[a], eta, order_seed=seeds[0], **sizes)
        assert (result["train"][a, e, s], result["test"][a, e, s]) == pytest.approx(plain, rel=1e-8)


def test_the_final_losses_do_not_depend_on_which_runs_go_together(monkeypatch):
    cell, data = Cell("drawn", L, M, "squared", "SGD", "with", "with"), [drawn(0), drawn(1)]
    options = {"refine": [2.0], "steps": 4, "batch": 5, "dtype": torch.float64}
    both = synthesis_alpha.train_cell(cell, data, [0, 1], alphas=[-1.0, 0.3], multiples=[0.1, 1.0], **options)
    monkeypatch.setitem(synthesis_alpha.ENTRIES, "cpu", 1)
    one = synthesis_alpha.train_cell(cell, data, [0, 1], alphas=[0.3], multiples=[0.1, 1.0], **options)
    assert both["test"][1] == pytest.approx(one["test"][0], rel=1e-12)


def test_the_grid_is_refined_about_the_best_step_of_every_slope():
    cell, data = Cell("drawn", 1, M, "squared", "GD", "without", "without"), [drawn(0), drawn(1)]
    options = {"alphas": [-1.0, 0.5], "steps": 5, "batch": 4, "dtype": torch.float64}
    first = synthesis_alpha.train_cell(cell, data, [0, 1], multiples=[0.001, 0.02], refine=[], **options)
    assert synthesis_alpha.tuned(first["train"], first["start"]).tolist() == [1, 1]
    once = synthesis_alpha.train_cell(cell, data, [0, 1], multiples=[0.001, 0.02], refine=[2.0], **options)
    assert once["multiple"].tolist() == [[0.001, 0.01, 0.02, 0.04]] * 2
    assert once["train"][:, [0, 2]] == pytest.approx(first["train"], rel=1e-12)
    twice = synthesis_alpha.train_cell(cell, data, [0, 1], multiples=[0.001, 0.02], refine=[2.0, 3.0], **options)
    for before, after, index in zip(
        once["multiple"], twice["multiple"], synthesis_alpha.tuned(once["train"], once["start"]), strict=True
    ):
        assert sorted([*before, before[index] / 3, before[index] * 3]) == pytest.approx(after)


def test_without_biases_and_batch_norm_minus_one_is_an_even_function():
    net = LeakyMLP(P, M, 1, L, alphas=[0.0], seeds=[0], dtype=torch.float64)
    h = drawn(0).x_train @ net.A.mT
    for biases, even in ((False, True), (True, False)):
        runs = synthesis_alpha.LeakRuns(net, [-1.0], biases=biases)
        for row in runs.shift or []:
            row += 0.1
        assert torch.equal(runs.forward(h), runs.forward(-h)) == even


def test_targets_of_classes_and_of_numbers():
    y, y_test = synthesis_alpha.targets([drawn(0, 3), drawn(1, 3)], "logistic")
    assert y.shape == (2, N, 3)
    assert y_test.sum() == 2 * TEST
    data = drawn(2)
    y, _ = synthesis_alpha.targets([data], "logistic")
    assert torch.equal(y[0, :, 0] > 0, data.y_train > data.y_train.median())
    assert torch.equal(synthesis_alpha.targets([data], "squared")[1][0, :, 0], data.y_test)


def test_every_example_is_in_one_batch_of_a_pass():
    order = synthesis_alpha.batches(12, 4, 7, 0, "Adam")
    assert len(order) == 7
    assert sorted(torch.cat(order[:3]).tolist()) == list(range(12))
    assert sorted(torch.cat(order[3:6]).tolist()) == list(range(12))
    assert synthesis_alpha.batches(12, 5, 3, 0, "GD") == [None] * 3
    assert all(len(index) == 5 for index in synthesis_alpha.batches(12, 5, 6, 0, "SGD"))


def factors():
    return {"a": "xyz", "b": "xyz", "c": "xyz", "d": [1, 2], "e": [1, 2], "f": [1, 2], "g": [1, 2]}


def test_the_fraction_is_balanced_over_every_pair_of_factors():
    cells = synthesis_alpha.fraction(factors())
    assert len(synthesis_alpha.full(factors())) == 432
    assert len(cells) == 72
    assert len({tuple(cell.values()) for cell in cells}) == 72
    for one in factors():
        for other in factors():
            if one < other:
                counts = [
                    sum(cell[one] == i and cell[other] == j for cell in cells)
                    for i in factors()[one]
                    for j in factors()[other]
                ]
                assert len(set(counts)) == 1


def test_tuning_takes_the_lowest_median_where_no_seed_diverges():
    train = np.array([[[5.0, 6, 7], [1, 2, np.nan], [3, 4, 9]], [[1, 2, 3], [2, 3, 4], [np.inf] * 3]])
    start = np.full((2, 3), 10.0)
    index = synthesis_alpha.tuned(train, start)
    assert index.tolist() == [2, 0]
    assert synthesis_alpha.at_tuned(train, index).tolist() == [[3, 4, 9], [1, 2, 3]]
    start[0, 2] = 4  # so that the last seed of the third step size ends above twice its start
    assert synthesis_alpha.tuned(train, start).tolist() == [0, 0]
    with pytest.raises(ParameterError, match="every step size"):
        synthesis_alpha.tuned(train, np.zeros((2, 3)))


def test_the_interval_is_that_of_the_paired_t_test():
    a, b = np.random.default_rng(0).normal(size=(2, 4, 6))
    mean, half = synthesis_alpha.paired(a, b)
    for i in range(4):
        low, high = stats.ttest_rel(a[i], b[i]).confidence_interval(0.95)
        assert (mean[i] - half[i], mean[i] + half[i]) == pytest.approx((low, high))


def test_best_or_tied():
    logs = np.array([[0.0, 0.1, 0.2], [0.05, 0.1, 0.19], [1.0, 1.11, 1.2], [3.0, -3.0, 0.9]])
    assert synthesis_alpha.best_or_tied(logs).tolist() == [True, True, False, True]
    assert synthesis_alpha.best_or_tied(np.stack([logs, logs[::-1]]))[1].tolist() == [True, False, True, True]


def test_finished_cells_are_read_from_their_record(tmp_path):
    cells = [Cell("drawn", 1, M, "squared", "GD", "without", b) for b in ("with", "without")]
    options = {"alphas": [0.0], "multiples": [1.0], "refine": [], "steps": 2, "batch": 4, "dtype": torch.float64}
    data = {"drawn": [drawn(0), drawn(1)]}
    first = synthesis_alpha.train_cells(cells, data, [0, 1], checkpoint=tmp_path / "cells", **options)
    assert first["train"].shape == (2, 1, 1, 2)
    assert len(list(tmp_path.iterdir())) == 2
    again = synthesis_alpha.train_cells(cells, data, [0, 1], checkpoint=tmp_path / "cells", **options)
    assert np.array_equal(first["test"], again["test"])


@pytest.mark.parametrize(("loss", "optimizer"), [("squared", "LBFGS"), ("l1", "GD")])
def test_unknown_optimizers_and_losses_are_refused(loss, optimizer):
    cell = Cell("drawn", 1, M, loss, optimizer, "with", "with")
    options = {"alphas": [0.0], "multiples": [1.0], "refine": [], "steps": 1, "batch": 2, "dtype": torch.float64}
    with pytest.raises(ParameterError, match="there is no optimizer"):
        synthesis_alpha.train_cell(cell, [drawn(0)], [0], **options)


def test_the_common_step_serves_all_slopes():
    one = [[[9.0, 9], [4, 4], [1, 1], [1, 1]], [[8.0, 8], [7, 7], [2, 2], [99, 2]]]
    steps, start = [[1.0, 2, 4, 16], [1.0, 3, 4, 16]], [[10.0, 10], [10, 10]]
    common = synthesis_alpha.at_common(*map(np.array, (one, steps, [1.0, 4.0, 16.0], start)))
    assert common.tolist() == [[1, 1], [2, 2]]
    both = synthesis_alpha.at_common(*map(np.array, ([one, one], [steps, steps], [1.0, 16.0], [start, start])))
    assert both.tolist() == [[[9, 9], [8, 8]]] * 2
