"""What a profile would cost, from shapes alone: a notebook's experiment on the meta device, where tensors hold no data.

The cells before the first figure are executed with the profile's parameters. Trainings take one step, counted as many
times as they have steps; data sets have the size that is asked for, and no content; numbers that the code reads off a
tensor are 1. So the course of the computation is that of the real one wherever it does not depend on values.
"""

import contextlib
import dataclasses
import sys
import warnings
import weakref
from unittest import mock

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from .. import data
from ..errors import ClaimError
from ..record import claims, provenance
from ..training import checkpoints, descent
from . import runner

RATE = 40e12  # operations a second that one GPU sustains in float32 and in float64; the peak of an H200 is 67e12
PIXELS = {"mnist": 784, "fashion-mnist": 784, "cifar10": 3072, "cifar100": 3072}
COLUMNS = {"california-housing": 13, "sgemm": 14, "guo-synthetic": 5, "noy-ackley": 200}
SPLIT = {"n_train": 60_000, "n_test": 10_000}  # where all rows are asked for, those of the largest data set


@dataclasses.dataclass(frozen=True)
class Estimate:
    """peak_bytes: of all tensors alive at once; flops: of matrix products and factorizations, 2 per multiply-add."""

    peak_bytes: int
    flops: float

    @property
    def minutes(self):
        """At RATE; what is not a matrix product is not in it."""
        return self.flops / RATE / 60


class _Shapes(TorchFunctionMode):
    """Every tensor is made on the meta device and stays there.

    A number that is read off one is 1; masks hold everywhere, and factorizations succeed.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in ("manual_seed", "get_num_threads", "set_num_threads", "is_grad_enabled"):
            return func(*args, **kwargs)
        if name in ("item", "__float__", "__int__", "__index__", "__bool__"):
            number = getattr(args[0], "number", 1)
            return {"__bool__": bool, "__float__": float}.get(name, int)(number)
        if name in ("tolist", "numpy", "__array__"):
            ones = np.broadcast_to(np.ones((), dtype=_numpy_type(args[0].dtype)), tuple(args[0].shape))
            return ones.tolist() if name == "tolist" else ones
        if name == "__format__":
            return "1"
        if name in ("cpu", "cuda"):
            return args[0]
        if name == "nonzero":  # at most all of them
            return torch.empty(args[0].numel(), args[0].ndim, dtype=torch.int64)
        if name in ("__getitem__", "__setitem__"):
            args = (args[0], _all_of(args[1]), *args[2:])
        if name == "allclose":
            return True
        if name in ("as_tensor", "tensor", "asarray"):
            return func(*args, **{k: v for k, v in kwargs.items() if k != "device"}).to("meta")
        if name == "to":
            dtypes = [a for a in (*args[1:], *kwargs.values()) if isinstance(a, torch.dtype)]
            dtypes += [a.dtype for a in args[1:] if isinstance(a, torch.Tensor)]
            return func(args[0], dtypes[0]) if dtypes else args[0]
        if kwargs.get("generator") is not None or name in _FACTORIES:
            kwargs.pop("generator", None)
            kwargs["device"] = "meta"
        made = func(*args, **kwargs)
        if name.endswith("cholesky_ex"):
            made.info.number = 0  # it succeeded
        elif name == "sum" and isinstance(args[0], torch.Tensor) and args[0].dtype == torch.bool and not made.ndim:
            made.number = args[0].numel()  # a mask chooses everything
        return made


def _all_of(index):
    """An index in which masks are replaced by slices: at most everything is chosen."""
    if isinstance(index, tuple):
        return tuple(_all_of(part) for part in index)
    return slice(None) if isinstance(index, torch.Tensor) and index.dtype == torch.bool else index


_FACTORIES = {
    "arange", "empty", "eye", "full", "linspace", "logspace", "ones", "rand", "randint", "randn", "randperm", "zeros",
}  # fmt: skip


def _numpy_type(dtype):
    return torch.empty(0, dtype=dtype, device="cpu").numpy().dtype if dtype != torch.bfloat16 else np.float32


class _Meter(TorchDispatchMode):
    """Adds up the storages alive on the meta device, keeps the largest sum, and counts operations."""

    def __init__(self):
        super().__init__()
        self.now = self.peak = 0
        self.flops = 0.0
        self._seen = weakref.WeakSet()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if (count := _OPERATIONS.get(func._overloadpacket)) is not None:
            self.flops += count(*args, **(kwargs or {}), out_val=result)
        for tensor in result if isinstance(result, list | tuple) else [result]:
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage not in self._seen:
                    self._seen.add(storage)
                    self.now += storage.nbytes()
                    self.peak = max(self.peak, self.now)
                    weakref.finalize(storage, self._freed, storage.nbytes())
        return result

    def _freed(self, size):
        self.now -= size


def _cube(factor):
    """Operations of a dense factorization of matrices (..., p, q): factor p q min(p, q)."""

    def count(a, *args, out_val=None, **kwargs):
        return factor * a.numel() * min(a.shape[-2:])

    return count


_OPERATIONS = {
    **flop_registry,
    torch.ops.aten.addmm_: flop_registry[torch.ops.aten.addmm],
    torch.ops.aten.baddbmm_: flop_registry[torch.ops.aten.baddbmm],
    torch.ops.aten.mv: lambda a, v, **kwargs: 2 * a.numel(),
    torch.ops.aten._linalg_eigh: _cube(9),
    torch.ops.aten.linalg_cholesky_ex: _cube(1 / 3),
    torch.ops.aten._linalg_svd: _cube(20),
    torch.ops.aten.linalg_qr: _cube(4),
}


class _Recorder:
    """Stands for `Claim`: hands out the profile's parameters and takes no results."""

    def __init__(self, claim_id, namespace):
        self.id, self.profile, self.parameters = claim_id, namespace["profile"], dict(namespace)
        self.device = torch.device("meta")
        self.seeds = list(range(namespace["seed"], namespace["seed"] + namespace.get("n_seeds", 1)))
        self.checkpoints = claims.paths.LOGS / "estimate"

    def data(self, dataset):
        return dataset

    def check(self, *args, **kwargs):
        """Nothing is measured."""

    metric = series = figure = report = check


def _load(name, *, classes=None, n_train=None, n_test=None, seed=0, transform=None, dtype=torch.float64, **options):
    """A data set of the size asked for."""
    info = data.sources.entry(name)
    share = len(classes) / 10 if classes else 1
    sizes = [
        int(info.get(k, SPLIT[k] * share)) if n is None else n for k, n in (("n_train", n_train), ("n_test", n_test))
    ]
    columns = options.get("d") or options.get("length") or PIXELS.get(name) or COLUMNS.get(name) or 20
    kind, tensors = torch.int64 if info["kind"] == "text" else dtype, []
    for size in sizes:
        tensors += [torch.empty(size or 0, columns, dtype=kind), torch.empty(size or 0, dtype=dtype)]
    return data.DataSet(*tensors, name, "shapes", None, transform or "raw", {})


def _one_step(real, meter):
    """A training that takes one step, or one epoch, and counts it as many times as there are to be."""

    def train(net, x, loss, eta, steps, *, log=None, at=None, checkpoint=None, allow_divergence=False, **options):
        before = meter.flops
        history = real(net, x, loss, eta, 1, log=log, at=[1], allow_divergence=True, **options)
        meter.flops += (meter.flops - before) * (steps - 1)
        times = {name: _count(at[name] if isinstance(at, dict) else at) for name in history.logs}
        logs = {k: v.expand(v.shape[0], times[k], *v.shape[2:]) for k, v in history.logs.items()}
        return descent.History(history.loss[:, :1].expand(-1, steps + 1), logs)

    return train


def _count(at):
    return 1 if at is None else len(set(at))


def of(claim_id, profile, overrides=None):
    """The Estimate of a claim's profile. Raises ClaimError where the notebook's code cannot run on shapes alone.

    Where the profile's resources name a `sample`, that many `times` the operations of the parameters given there count.
    """
    sample = dict(runner.plan(claim_id, profile)[2].get("sample", {}))
    times = sample.pop("times", 1)
    spec, parameters, _, _ = runner.plan(claim_id, profile, {**sample, **(overrides or {})})
    namespace = {**parameters, "__name__": "__main__"}
    cells = _experiment(spec)
    imports = "\n".join(line for line in cells[0].splitlines() if line.startswith(("import", "from")))
    exec(imports, {})  # what is replaced below must be loaded
    meter = _Meter()
    with contextlib.ExitStack() as stack:
        for patch in _patches(meter):
            stack.enter_context(patch)
        for mode in (meter, _Shapes()):
            stack.enter_context(mode)
        stack.enter_context(np.errstate(all="ignore"))
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        for source in cells:
            try:
                exec(compile(source, spec.notebook, "exec"), namespace)
            except Exception as error:
                raise ClaimError(f"{spec.notebook} cannot be estimated from shapes: {error!r}") from error
    return Estimate(meter.peak, times * meter.flops)


def _experiment(spec):
    """Code cells after the parameters, up to the first that draws a figure."""
    cells = [source for kind, source in provenance.notebook_source(spec.path) if kind == "code"][1:]
    first = next((i for i, source in enumerate(cells) if "plots.figure(" in source), len(cells))
    return cells[:first]


def _patches(meter):
    """Replacements of what reads values, wherever a module of the package holds a name for it."""
    replaced = {
        claims.Claim: _Recorder,
        data.load: _load,
        descent.gradient_descent: _one_step(descent.gradient_descent, meter),
        descent.stochastic_gradient_descent: _one_step(descent.stochastic_gradient_descent, meter),
        checkpoints.Checkpoint: lambda *args, **kwargs: None,  # nothing to save
        scipy.linalg.cho_factor: lambda a, *args, **kwargs: (_solved(meter, a, 1 / 3), True),
        scipy.linalg.cholesky: lambda a, *args, **kwargs: _solved(meter, a, 1 / 3),
        scipy.linalg.lu_factor: lambda a, *args, **kwargs: (_solved(meter, a, 2 / 3), None),
        scipy.linalg.eigh: lambda a, *args, **kwargs: (a[0], _solved(meter, a, 9)),
        np.linalg.eigh: lambda a, *args, **kwargs: (np.ones(a.shape[:-1]), _solved(meter, a, 9)),
        np.linalg.eigvalsh: lambda a, *args, **kwargs: np.ones(_solved(meter, a, 4).shape[:-1]),
        np.linalg.pinv: lambda a, *args, **kwargs: _solved(meter, a, 20).swapaxes(-1, -2),
        scipy.linalg.solve_triangular: lambda a, b, **kwargs: b,
        scipy.linalg.lu_solve: lambda a, b, **kwargs: b,
        scipy.linalg.cho_solve: lambda a, b, **kwargs: b,
        scipy.sparse.linalg.eigsh: lambda a, k=6, **kwargs: np.ones(k),
    }
    modules = [m for name, m in sys.modules.items() if name.partition(".")[0] == "overparam" and m is not None]
    from_numpy = torch.from_numpy  # not seen by the mode, since no tensor enters it
    yield mock.patch.object(torch, "from_numpy", lambda array: torch.empty_like(from_numpy(array), device="meta"))
    for module in [*modules, np.linalg, scipy.linalg, scipy.sparse.linalg]:
        for name, value in list(vars(module).items()):
            if callable(value) and not isinstance(value, torch.dtype) and any(value is real for real in replaced):
                yield mock.patch.object(module, name, replaced[value])


def _solved(meter, a, factor):
    meter.flops += factor * len(a) ** 3
    return a
