"""Checkpoints: resuming to the bit, interrupts, intervals, finished runs, files that do not fit."""

import logging
import os
import shutil
import signal
import sys
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from overparam import settings
from overparam.errors import ParameterError
from overparam.models.deep_relu import ReLURuns
from overparam.models.gated import GatedRuns
from overparam.models.leaky import LeakyMLP
from overparam.models.residual import ResidualRuns
from overparam.models.two_layer import TwoLayerReLU
from overparam.training import Checkpoint, Epochs, SquaredLoss, gradient_descent
from overparam.training import checkpoints as module

X = torch.nn.functional.normalize(
    torch.randn(20, 6, generator=torch.Generator().manual_seed(0)), dim=1
)
LOSS = SquaredLoss(torch.ones(20), "halfsum")


def train(checkpoint=None, eta=0.05, log=None, seeds=(0, 1), **options):
    log = log or {"moved": lambda s: s.weight_change().norm(dim=(-2, -1))}
    net = TwoLayerReLU(6, 30, 0.5, seeds=list(seeds))
    return gradient_descent(
        net, X, LOSS, eta, 40, log=log, at=[0, 10, 30, 40], checkpoint=checkpoint, **options
    )


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_saves_the_state_and_the_training_resumes_to_the_bit(
    tmp_path, monkeypatch, batched, number
):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # one run after the other
    whole, seen = train(batched=batched), []

    def interrupted(run):
        seen.append(run)
        if len(seen) == 2:
            os.kill(os.getpid(), number)
        return run.weight_change().norm(dim=(-2, -1))

    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    saved = Checkpoint(tmp_path / "c" / "net", every=3600)
    with pytest.raises(KeyboardInterrupt):
        train(saved, log={"moved": interrupted}, batched=batched)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    # of the first run, or of all, though its time had not come
    assert len(list((tmp_path / "c").iterdir())) == 1
    for _ in range(2):  # the second time it is only read
        saved = Checkpoint(tmp_path / "c" / "net", every=3600)
        resumed = train(saved, log={"moved": interrupted}, batched=batched)
        assert len(seen) == (4 if batched else 8)  # nothing is measured twice
        assert torch.equal(resumed.loss, whole.loss)
        assert torch.equal(resumed.logs["moved"], whole.logs["moved"])


def test_an_interrupt_reaches_runs_in_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)

    # one signal: a second does not wait, and could come after the handlers are back
    first = threading.Lock()

    def interrupted(run):
        if first.acquire(blocking=False):
            os.kill(os.getpid(), signal.SIGINT)
        return run.forward().sum()

    with pytest.raises(KeyboardInterrupt):
        train(Checkpoint(tmp_path / "net"), log={"moved": interrupted}, batched=False)
    assert torch.equal(
        train(Checkpoint(tmp_path / "net"), batched=False).loss, train(batched=False).loss
    )


def test_an_interrupt_within_an_epoch_loses_no_batch(tmp_path):
    class Net(TwoLayerReLU):
        steps = 0

        def descent(self, x, run=None):
            descent = super().descent(x, run)
            descend = type(descent).descend

            def counted(v):
                Net.steps += 1
                if Net.steps == 5:
                    os.kill(os.getpid(), signal.SIGINT)
                descend(descent, v)

            descent.descend = counted
            descent.load = lambda x: None  # each batch is taken for the first
            return descent

    def run(checkpoint):
        net = Net(6, 30, 0.5, seeds=[0])
        options = {"batches": Epochs(5, seed=0), "checkpoint": checkpoint, "batched": False}
        return gradient_descent(net, X, LOSS, 0.01, 2, **options)

    with pytest.raises(KeyboardInterrupt):
        run(Checkpoint(tmp_path / "net"))
    resumed, steps = run(Checkpoint(tmp_path / "net")).loss, Net.steps
    assert steps == 8  # 4 batches in each of 2 epochs
    assert torch.equal(resumed, run(None).loss)


def test_states_that_take_long_to_write_are_written_seldom(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(settings, "checkpoint_seconds", 10.0)
    saved, write = Checkpoint(tmp_path / "net"), module._write
    assert saved.load(0, "key") == (0, {})

    def slow(*args):
        now[0] += 2
        write(*args)

    monkeypatch.setattr(module, "_write", slow)
    now[0] = 10
    assert saved.due(0)
    saved.save(0, "key", 1, {"W": X})
    for later, due in ((12 + 59, False), (12 + 60, True)):
        now[0] = later
        assert saved.due(0) == due


def test_finished_runs_are_kept_by_what_they_were_computed_from(tmp_path, monkeypatch):
    """More seeds later, or elsewhere, find those that are there; other code or settings do not."""
    kept, calls = tmp_path / "runs", []
    log = {"moved": lambda run: calls.append(run) or run.weight_change().norm(dim=(-2, -1))}

    def once(seeds=(0, 1), place="here", **options):
        calls.clear()
        saved = Checkpoint(tmp_path / place / "net", finished=kept)
        return train(saved, log=log, seeds=seeds, batched=False, **options), len(calls) // 4

    first, computed = once()
    assert computed == 2
    assert sorted(path.suffix for path in kept.iterdir()) == [".safetensors"] * 2
    assert max(path.stat().st_size for path in kept.iterdir()) < 2000
    assert not list((tmp_path / "here").glob("*"))
    more, computed = once((1, 2, 0), "elsewhere")
    assert computed == 1
    assert torch.equal(more.loss[[2, 0]], first.loss)
    assert torch.equal(more.logs["moved"][[2, 0]], first.logs["moved"])
    assert once(eta=0.06)[1] == 2
    monkeypatch.setattr(settings, "checkpoint_code", "another")
    assert once()[1] == 2


NETS = {
    "two-layer, pre-activations": (TwoLayerReLU, (6, 30, 1.0), {}, {"seeds": [1]}),
    "leaky, slope": (LeakyMLP, (6, 30, 1, 2), {"alphas": [0.1]}, {"alphas": [0.5]}),
    "leaky, one layer": (LeakyMLP, (6, 30, 1, 1), {"alphas": [0.1]}, {"seeds": [1]}),
    "deep, one layer": (ReLURuns, (6, 30, 1, 1), {}, {"seeds": [1]}),
    "deep, residual": (ReLURuns, (6, 30, 1, 3), {"tau": 0.1}, {"tau": 0.2}),
    "deep, scale": (ReLURuns, (6, 30, 1, 3), {}, {"kappa": 2.0}),
    "residual": (ResidualRuns, (6, 30, 3), {"theta": 0.1}, {"theta": 0.2}),
    "gated": (GatedRuns, ("grelu", 6, 30, 2), {}, {"seeds": [1]}),
}


@pytest.mark.parametrize("name", NETS)
def test_what_a_net_is_drawn_as_belongs_to_the_run(tmp_path, name):
    """Its state alone begins alike: with zeros, or with the weights of the other layers."""
    made, sizes, options, other = NETS[name]
    x = X[:5].double()
    y = torch.ones(5, 1, dtype=torch.float64)
    if made in (TwoLayerReLU, ResidualRuns):  # their one output has no axis
        y = y[:, 0]
    place = {} if made is GatedRuns else {"dtype": torch.float64}

    def loss(options, saved):
        net = made(*sizes, **{"seeds": [0], **place, **options})
        how = {"checkpoint": saved, "batched": False}
        return gradient_descent(net, x, SquaredLoss(y, "sum"), 1e-4, 3, **how).loss

    loss(options, Checkpoint(tmp_path / "net"))
    expected = loss(options | other, None)
    assert not torch.equal(loss(options, None), expected)
    assert torch.equal(loss(options | other, Checkpoint(tmp_path / "net")), expected)


def test_the_code_that_a_notebook_has_run_belongs_to_the_run(monkeypatch):
    """Neither its parameters nor later code: a training goes on when the figure is mended."""
    shell = SimpleNamespace(user_ns={})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))

    def key(*cells):
        shell.user_ns["In"] = ["", *cells]
        return module.training_key([], [])

    given, function = "# Parameters\nn = 2", "def f(u):\n    return u"
    first = key("n = 1", given, function, "train()")
    commented = function + "  # why"
    assert key("n = 1", "# Parameters\nn = 3", commented, "train()", "train()") == first
    assert key("n = 1", given, "def f(u):\n    return -u", "train()") != first
    second = key("n = 1", "k = 2", function, "train()")
    assert second != key("n = 1", "k = 3", function, "train()")


def test_all_that_a_log_depends_on_is_seen():
    def helper(run, power):
        return run**power

    class Table:
        def look(self, run):
            return helper(run, 2)

    def made(k, power=1):
        powers = {"a": [power]}
        return [
            lambda run, k=k: run * k,
            partial(helper, power=k),
            lambda run: helper(run, powers["a"][0]),
            lambda run: np.full(2, k),
            Table().look,
        ]

    def keys(logs):
        return [module.training_key(*module.seen_by(log)) for log in logs]

    same = [a == b for a, b in zip(keys(made(1)), keys(made(1)), strict=True)]
    other = keys(made(2, power=2))
    assert all(same)
    assert [a == b for a, b in zip(keys(made(1)), other, strict=True)] == [False] * 4 + [True]


NOTEBOOK = """
from overparam.training import SquaredLoss

class Scaled(SquaredLoss):
    '''A notebook's own loss, which reads a parameter by its global name.'''
    power = 2

    def __call__(self, u):
        value, derivative = super().__call__(u)
        return value * factor, derivative * self.strength()

    def strength(self):
        return factor ** self.power

    @staticmethod
    def doubled(x):
        return 2 * x

class Meter:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, run):
        return run.forward().sum() * self.scale
"""


@pytest.fixture
def notebook(monkeypatch):
    """Names that a notebook has defined, in the module that its kernel runs as a program."""
    names = vars(sys.modules["__main__"])
    before = dict(names)
    names["factor"] = 1.0
    exec(NOTEBOOK, names)
    yield names
    names.clear()
    names.update(before)


def test_what_the_methods_of_a_notebooks_class_read_belongs_to_the_run(tmp_path, notebook):
    def trained():
        loss = notebook["Scaled"](torch.ones(20), "halfsum")
        net = TwoLayerReLU(6, 30, 0.5, seeds=[0])
        saved = Checkpoint(tmp_path / "net", finished=tmp_path / "runs")
        return gradient_descent(net, X, loss, 0.05, 10, checkpoint=saved).loss

    first = trained()
    assert torch.equal(trained(), first)
    notebook["factor"] = 3.0
    assert not torch.equal(trained(), first)
    notebook["factor"] = 1.0
    assert torch.equal(trained(), first)
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_what_an_object_of_a_notebooks_class_holds_is_seen(notebook):
    seen = module.seen_by(notebook["Meter"](2.0))
    assert module.seen_by(notebook["Meter"](2.0)) == seen
    assert module.seen_by(notebook["Meter"](3.0)) != seen
    loss = notebook["Scaled"](torch.ones(2), "sum")
    before = module.seen_by(loss)[0]
    notebook["Scaled"].power = 3
    assert module.seen_by(loss)[0] != before
    notebook["Scaled"].power = 2
    assert module.seen_by(loss)[0] == before
    notebook["Scaled"].doubled = staticmethod(lambda x: 3 * x)
    assert module.seen_by(loss)[0] != before


def test_another_number_of_threads_is_another_training(monkeypatch):
    one = module.training_key([], [])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    assert module.training_key([], []) != one


@pytest.mark.parametrize("seconds", [float("nan"), -1])
def test_an_interval_that_is_no_time_is_refused(seconds):
    with pytest.raises(ParameterError, match="is not a number of seconds"):
        Checkpoint("net", every=seconds)


def test_a_folder_that_is_removed_on_the_way_loses_nothing(tmp_path):
    def removing(run):
        shutil.rmtree(tmp_path / "c", ignore_errors=True)
        return run.weight_change().norm(dim=(-2, -1))

    made = train(Checkpoint(tmp_path / "c" / "net", every=0), log={"moved": removing})
    assert torch.equal(made.loss, train().loss)
    assert any((tmp_path / "c").iterdir())


def test_what_a_log_looks_at_belongs_to_the_run(tmp_path):
    def looked(new):
        log = {"f": lambda run: run.predict(new)}
        return train(Checkpoint(tmp_path / "net", finished=tmp_path), log=log).logs["f"]

    assert not torch.equal(looked(X[:3]), looked(X[3:6]))
    assert torch.equal(looked(X[:3]), looked(X[:3]))


def test_what_a_log_does_belongs_to_the_run(tmp_path):
    def logged(log):
        return train(Checkpoint(tmp_path / "net", finished=tmp_path), log={"f": log}).logs["f"]

    twice = 2 * logged(lambda run: run.predict(X))
    assert torch.equal(twice, logged(lambda run: 2 * run.predict(X)))


@pytest.mark.parametrize("damage", ["truncated", "flipped", "other training"])
@pytest.mark.parametrize("finished", [False, True])
def test_a_file_that_does_not_fit_is_set_aside(tmp_path, damage, finished, caplog):
    options = {"finished": tmp_path} if finished else {}
    clean = train(Checkpoint(tmp_path / "net", **options)).loss
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[-20] ^= 1
    else:
        train(Checkpoint(tmp_path / "other"), eta=0.06)
        content = (tmp_path / "other-all.safetensors").read_bytes()
    file.write_bytes(content)
    with caplog.at_level(logging.WARNING, logger="overparam"):
        assert torch.equal(train(Checkpoint(tmp_path / "net", **options)).loss, clean)
    told = {"flipped": "content is damaged", "other training": "another training"}
    assert "refused" in caplog.text
    assert told.get(damage, "") in caplog.text
    assert file.with_suffix(".safetensors.refused").exists()
