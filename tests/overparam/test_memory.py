"""Memory: what may be used, what is held, and how many runs go at a time.

Sizes are asked for, not taken.
"""

import threading

import psutil
import pytest
import torch

from overparam import memory, settings
from overparam.errors import MemoryExceeded
from overparam.models.two_layer import TwoLayerReLU
from overparam.theory.infinite_width_kernels import leaky_ntk, relu_cross_gram, relu_gram
from overparam.training import SquaredLoss, descent, gradient_descent, parallel


def test_without_a_limit_three_quarters_of_the_free_memory_may_be_used(monkeypatch):
    monkeypatch.setattr(settings, "memory_limit", None)
    assert 0 < memory.budget() <= 0.75 * psutil.virtual_memory().total
    monkeypatch.setattr(memory, "_free", lambda device: 1000)
    assert memory.budget() == 750


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """groups(line of the process, {folder: (limit, use, files)}): control groups that it is in."""

    def make(line, limits, limit="memory.max", use="memory.current", files="inactive_file"):
        (tmp_path / "self").write_text(f"{line}\n")
        for folder, (most, used, cached) in limits.items():
            place = tmp_path / "groups" / folder
            place.mkdir(parents=True, exist_ok=True)
            (place / limit).write_text(f"{most}\n")
            (place / use).write_text(f"{used}\n")
            (place / "memory.stat").write_text(f"anon 5\n{files} {cached}\n")
        monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
        monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "self")
        monkeypatch.setattr(settings, "memory_limit", None)
        monkeypatch.setattr(memory, "SHARE", 1.0)

    return make


def test_the_group_of_a_job_limits_its_memory(groups):
    """The smallest limit counts, be it the job's own or one around it."""
    groups("0::/slurm/job7", {".": ("max", 0, 0), "slurm": (5000, 900, 0)})
    assert memory.budget() == 4100  # the job's own group is not visible
    groups("0::/slurm/job7", {"slurm/job7": (3000, 1000, 400)})
    assert memory.budget() == 2400


def test_the_group_of_an_older_system_limits_its_memory(groups):
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    groups("4:cpu,cpuacct:/x", {}, *names)
    assert memory.budget() > 10**8
    groups("9:memory:/job", {"memory/job": (1500, 700, 100), "memory": (10**15, 0, 0)}, *names)
    assert memory.budget() == 900


def test_what_an_object_holds_is_counted_once():
    class Holder:
        pass

    net, one = Holder(), Holder()
    net.W = torch.zeros(10, 10, dtype=torch.float64)
    one.W, one.view, one.parts = net.W, net.W[:2], [torch.zeros(5), {"a": torch.zeros(3)}, "word"]
    one.again = one.parts[0]
    assert memory.held(one) == 800 + 20 + 12
    assert memory.held(one, but=[net]) == 20 + 12


@pytest.mark.parametrize(
    "make", [relu_gram, lambda x: leaky_ntk(x, 3, 0.5), lambda x: relu_cross_gram(x, x)]
)
def test_a_kernel_matrix_that_does_not_fit_says_so_before_it_starts(monkeypatch, make):
    x = torch.eye(300, 4, dtype=torch.float64) + 1
    x = x / x.norm(dim=1, keepdim=True)
    monkeypatch.setattr(settings, "memory_limit", 4 * 2**20)
    with pytest.raises(
        MemoryExceeded, match=r"300 x 300 kernel matrix needs 7 MB, and 4 MB may be used.*_MEMORY"
    ):
        make(x)
    monkeypatch.setattr(settings, "memory_limit", 10 * 2**20)
    assert make(x).shape == (300, 300)


def training(runs=4, n=60, m=2000):
    x = torch.nn.functional.normalize(
        torch.randn(n, 30, generator=torch.Generator().manual_seed(0)), dim=1
    )
    net = TwoLayerReLU(30, m, 1.0, seeds=list(range(runs)))
    return net, x, SquaredLoss(torch.ones(n), "halfsum")


def test_no_more_runs_go_at_a_time_than_fit(monkeypatch):
    net, x, loss = training()
    each = memory.held(net.descent(x, 0), but=[net])
    assert each > 4 * 60 * 2000  # the pre-activations at least
    expected = gradient_descent(net, x, loss, 0.1, 5).loss
    going, most, lock = set(), [], threading.Lock()
    original = descent._Training.run

    def watched(*args):
        with lock:
            going.add(args[1])
            most.append(len(going))
        result = original(*args)
        with lock:
            going.discard(args[1])
        return result

    monkeypatch.setattr(descent._Training, "run", watched)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    counts = []
    monkeypatch.setattr(torch, "set_num_threads", counts.append)
    monkeypatch.setattr(memory, "budget", lambda device="cpu": int(2.5 * each))
    assert torch.equal(gradient_descent(net, x, loss, 0.1, 5).loss, expected)
    assert max(most) <= 2
    monkeypatch.setattr(memory, "budget", lambda device="cpu": int(1.5 * each))
    most.clear(), counts.clear()
    assert torch.equal(gradient_descent(net, x, loss, 0.1, 5).loss, expected)
    assert max(most) == 1
    assert counts == [1] * 4 + [
        4
    ]  # alone as well each has one thread, and afterwards all are there again
    monkeypatch.setattr(memory, "budget", lambda device="cpu": each - 1)
    with pytest.raises(MemoryExceeded, match="a run needs"):
        gradient_descent(net, x, loss, 0.1, 5)


def test_small_runs_are_not_measured_and_shapes_have_no_size(monkeypatch):
    monkeypatch.setattr(memory, "budget", lambda device="cpu": 0)
    net, x, _ = training(n=10, m=100)
    assert parallel.bytes_of_a_run(net, x) == 0
    memory.require(10**12, "a tensor without content", "meta")
