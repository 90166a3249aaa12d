"""Time and memory of the hot paths against the number of examples, width, depth, runs and cores.

`python benchmarks/scaling.py [n m L runs cores]` measures the named axes (default: all), prints
fitted exponents beside the theoretical ones, and writes `results/<machine>-scaling.json` and one
figure per axis. One thread, but for `cores`.
"""

import ctypes
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from harness import RESULTS, machine
from matplotlib.ticker import NullLocator

from ledger import fingerprints
from ledger.files import write_atomically
from overparam import plots
from overparam.bounds.arora2019 import complexity
from overparam.models.leaky import LeakyMLP
from overparam.models.two_layer import TwoLayerReLU
from overparam.theory.finite_width_kernels import tangent_kernel
from overparam.theory.infinite_width_kernels import leaky_ntk, relu_gram
from overparam.training import SquaredLoss, gradient_descent
from overparam.training.precision import fast_products

P = 20  # input dimension
SECONDS, LEAST = 0.3, 3  # a point is measured for so long, and so often at least
AXES = {"n": "examples $n$", "m": "width $m$", "L": "depth $L$", "runs": "draws", "cores": "cores"}


@dataclass(frozen=True)
class Scan:
    """A hot path along one axis: `make(value)` prepares and gives what is timed.

    `exponent` is that of its operations.

    bytes: value -> what the arrays hold that must exist at once, by the formula of the
    documentation.
    """

    name: str
    axis: str
    at: tuple
    exponent: float
    make: Callable
    bytes: Callable


def inputs(n, dtype=torch.float32):
    x = torch.randn(n, P, generator=torch.Generator().manual_seed(0), dtype=dtype)
    return x / x.norm(dim=1, keepdim=True)


def two_layer(n=1000, m=4000):
    """A step of gradient descent on the first layer, weights in the span of the data."""
    descent = TwoLayerReLU(P, m, 1.0, seeds=[0]).descent(inputs(n), 0)
    return lambda: descent.descend(descent.forward().mul_(1e-9))


def two_layer_bytes(n=1000, m=4000):
    return (
        4 * (m * n + 4 * m * P) + m * n
    )  # pre-activations and weights in float32, initial patterns in one byte


def deep(n=500, m=256, L=5):
    """A step of gradient descent of one deep leaky-ReLU net."""
    descent = LeakyMLP(P, m, 1, L, alphas=[-1.0], seeds=[0]).descent(inputs(n), 0)
    return lambda: descent.descend(descent.forward().mul_(1e-9))


def deep_bytes(n=500, m=256, L=5):
    return 4 * ((3 * L + 2) * n * m + 2 * L * m * m) + 8 * L * m * m  # the draw is made in float64


def finite_kernel(n=200, m=512, L=5):
    """The tangent kernel of a finite net, contracted layer by layer."""
    descent = LeakyMLP(P, m, 1, L, alphas=[-1.0], seeds=[0]).descent(inputs(n), 0)
    return lambda: tangent_kernel(descent)


def finite_kernel_bytes(n=200, m=512, L=5):
    return deep_bytes(n, m, L) + 4 * ((L + 1) * n * m + (L + 4) * n * n)


def closed_form(n=1000, L=5):
    """The tangent kernel of infinite width."""
    x = inputs(n, torch.float64)
    return lambda: leaky_ntk(x, L, -1.0)


def closed_form_bytes(n=1000, L=5):
    return 8 * n * n + 8 * 10 * min(n, 256) * n  # the kernel, and ten arrays of a block of rows


def label_sweep(n=1000):
    """The complexity of 11 label vectors, by one Cholesky factor."""
    gram = relu_gram(inputs(n, torch.float64)).numpy()
    y = np.sign(np.random.default_rng(0).standard_normal((n, 11)))
    return lambda: complexity(y, gram)


def sweep(runs, n, m, threads=1, steps=10):
    """Ten steps of gradient descent for so many nets of five layers, in one call."""
    x = inputs(n)
    net = LeakyMLP(P, m, 1, 5, alphas=[-1.0] * runs, seeds=list(range(runs)))
    loss = SquaredLoss(x.new_zeros(n, 1), "mean")

    def work():
        torch.set_num_threads(threads)
        gradient_descent(net, x, loss, 1e-6, steps)
        torch.set_num_threads(1)

    return work


def sweep_bytes(runs, n, m, at_once):
    return 8 * runs * 5 * m * m + at_once * deep_bytes(n, m, 5)


NS = (250, 500, 1000, 2000, 4000)
MS = (128, 256, 512, 1024, 2048)
LS = (2, 4, 8, 16, 32)
RUNS = (1, 2, 4, 8, 16, 32)
CORES = tuple(range(1, (torch.get_num_threads() or 1) + 1))
TINY, WIDE = {"n": 100, "m": 64}, {"n": 500, "m": 256}
LOOKS = {  # the colour and the marker of a path, by number
    "two-layer step": 0,
    "deep step": 1,
    "finite-width NTK": 2,
    "closed-form NTK": 3,
    "11 label vectors": 4,
    "sweep, m = 64": 0,
    "sweep, m = 256": 1,
    "8 nets, m = 256": 1,
}
SCANS = (
    Scan("two-layer step", "n", NS, 1, lambda v: two_layer(n=v), lambda v: two_layer_bytes(n=v)),
    Scan("deep step", "n", NS, 1, lambda v: deep(n=v), lambda v: deep_bytes(n=v)),
    Scan(
        "finite-width NTK",
        "n",
        NS[:-1],
        2,
        lambda v: finite_kernel(n=v),
        lambda v: finite_kernel_bytes(n=v),
    ),
    Scan(
        "closed-form NTK", "n", NS, 2, lambda v: closed_form(n=v), lambda v: closed_form_bytes(n=v)
    ),
    Scan("11 label vectors", "n", NS, 3, lambda v: label_sweep(n=v), lambda v: 3 * 8 * v * v),
    Scan("two-layer step", "m", MS, 1, lambda v: two_layer(m=v), lambda v: two_layer_bytes(m=v)),
    Scan("deep step", "m", MS, 2, lambda v: deep(m=v), lambda v: deep_bytes(m=v)),
    Scan(
        "finite-width NTK",
        "m",
        MS,
        2,
        lambda v: finite_kernel(m=v),
        lambda v: finite_kernel_bytes(m=v),
    ),
    Scan("deep step", "L", LS, 1, lambda v: deep(L=v), lambda v: deep_bytes(L=v)),
    Scan(
        "finite-width NTK",
        "L",
        LS,
        1,
        lambda v: finite_kernel(L=v),
        lambda v: finite_kernel_bytes(L=v),
    ),
    Scan(
        "closed-form NTK", "L", LS, 1, lambda v: closed_form(L=v), lambda v: closed_form_bytes(L=v)
    ),
    Scan(
        "sweep, m = 64",
        "runs",
        RUNS,
        1,
        lambda v: sweep(v, **TINY),
        lambda v: sweep_bytes(v, **TINY, at_once=v),
    ),
    Scan(
        "sweep, m = 256",
        "runs",
        RUNS,
        1,
        lambda v: sweep(v, **WIDE),
        lambda v: sweep_bytes(v, **WIDE, at_once=1),
    ),
    Scan(
        "8 nets, m = 256",
        "cores",
        CORES,
        -1,
        lambda v: sweep(8, **WIDE, threads=v),
        lambda v: sweep_bytes(8, **WIDE, at_once=v),
    ),
)


def seconds(work):
    """Wall-clock seconds of single calls, after one that does not count."""
    work()
    times, end = [], time.perf_counter() + SECONDS
    while len(times) < LEAST or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def peak_bytes(make):
    """Growth of the process's resident memory, at its peak, while the path is prepared and runs
    once.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # memory that is kept for reuse would hide what is allocated
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from the present size
    before = _status("VmRSS")
    make()()
    return _status("VmHWM") - before


def _status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(key))


def measure(scan):
    row = {
        "path": scan.name,
        "axis": scan.axis,
        "at": scan.at,
        "theory": scan.exponent,
        "seconds": [],
        "quartiles": [],
    }
    row |= {"peak_bytes": [], "formula_bytes": [scan.bytes(value) for value in scan.at]}
    for value in scan.at:
        row["peak_bytes"].append(peak_bytes(lambda: scan.make(value)))  # noqa: B023  called at once
        low, median, high = statistics.quantiles(seconds(scan.make(value)), n=4)
        row["seconds"].append(median)
        row["quartiles"].append((low, high))
    if len(scan.at) > 1:
        upper = slice(-3, None)  # of large sizes, where the leading term rules
        row["exponent"] = np.polyfit(np.log(scan.at[upper]), np.log(row["seconds"][upper]), 1)[0]
    return row


def draw(rows, axis):
    """Seconds with fitted and counted exponents, and memory beside what the arrays take.

    A path has the same colour in all pictures.
    """
    fig, axes = plots.figure(1, 2, width=4.8, height=3.6)
    left, right = axes[0]
    for row in rows:
        i = LOOKS[row["path"]]
        at, times, (low, high) = row["at"], np.array(row["seconds"]), np.transpose(row["quartiles"])
        exponent = f": {row['exponent']:.2f} ({row['theory']})" if "exponent" in row else ""
        look = plots.style(i) | {"marker": plots.MARKERS[i]}
        left.errorbar(
            at, times, (times - low, high - times), label=row["path"] + exponent, capsize=2, **look
        )
        left.plot(
            at[-3:], times[-1] * (np.array(at[-3:]) / at[-1]) ** row["theory"], color="k", lw=0.7
        )
        right.plot(at, np.array(row["peak_bytes"]) / 2**20, label=row["path"], **look)
        right.plot(
            at,
            np.array(row["formula_bytes"]) / 2**20,
            color=look["color"],
            ls="",
            marker="_",
            ms=12,
        )
    for ax, label in ((left, "seconds"), (right, "peak memory in MiB")):
        ax.set(xscale="log", yscale="log", xlabel=AXES[axis], ylabel=label)
        ax.set_xticks(sorted({value for row in rows for value in row["at"]}))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter("{x:g}")
        ax.legend(fontsize=7.5)
    left.set_title("power of time: measured (counted)")
    right.set_title("short bars: what the arrays take")
    return fig


def main(axes):
    RESULTS.mkdir(exist_ok=True)
    stored = RESULTS / f"{machine()}-scaling.json"
    rows = json.loads(stored.read_text(encoding="utf-8"))["rows"] if stored.exists() else []
    fast_products()
    for axis in axes:
        torch.set_num_threads(1)
        found = []
        for scan in (each for each in SCANS if each.axis == axis):
            found.append(measure(scan))
            print(f"{axis:6}{scan.name:20}", *(f"{s:.2e}" for s in found[-1]["seconds"]), end="  ")
            print(
                f"exponent {found[-1].get('exponent', float('nan')):.2f}, in theory "
                f"{scan.exponent}",
                flush=True,
            )
        fig = draw(found, axis)
        fig.savefig(RESULTS / f"{machine()}-scaling-{axis}.png", dpi=120)
        rows = [row for row in rows if row["axis"] != axis] + found
    record = {"machine": machine(), "versions": fingerprints.versions(), "rows": rows}
    write_atomically(stored, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main(sys.argv[1:] or AXES)
