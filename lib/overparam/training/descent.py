"""Full-batch gradient descent over a run axis."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch

from .. import memory
from ..errors import ParameterError, TrainingDiverged
from .checkpoints import training_key
from .precision import fast_products

CHUNK = 100  # steps between two looks at the losses, which stay on the device until then


@dataclass
class History:
    """What a training left behind.

    loss: (R, steps + 1) float64 on the CPU; loss[:, k] is that before step k, and NaN after a run has diverged.
    logs: {name: (R, len(at), ...) float64 on the CPU}, measured before the steps `at`.
    """

    loss: torch.Tensor
    logs: dict

    @property
    def diverged(self):
        """Which runs ended without a finite loss, shape (R,)."""
        return ~self.loss[:, -1].isfinite()


def gradient_descent(
    net, x, loss, eta, steps, *, log=None, at=None, batched=None, allow_divergence=False, checkpoint=None
):
    """Full-batch gradient descent W <- W - eta dLoss/dW for `steps` steps, for all runs of `net`.

    net: has `runs` and `descent(x, run)`; x: inputs as the net takes them; loss: gives (value, derivative) at the
    outputs, and `select(run)`; eta: one step size, or a list of one per run.
    log: {name: callable of a run's descent, giving a tensor}, measured before each step in `at`: steps from 0 to
    `steps` (by default `steps` alone: after the last one), as one list for all names or as {name: list}.
    batched: all runs at once (tiny nets, a GPU), or one after another in as many threads as torch has been given and
    memory allows, one thread each, so that the numbers do not depend on how many there are. None decides by device and
    size.
    checkpoint: a `Checkpoint` to resume from and save to. Raises TrainingDiverged unless `allow_divergence`.
    """
    if steps < 1:
        raise ParameterError(f"steps must be at least 1, not {steps}")
    etas = torch.as_tensor(eta, dtype=torch.float64).expand(net.runs)
    if x.dtype == torch.float32 and x.device.type == "cpu" and x.shape[-2] * net.m > 10_000:  # below, MKL is faster
        fast_products()
    log = log or {}
    if "loss" in log:
        raise ParameterError("the loss is always recorded; give the log another name")
    if isinstance(at, dict) and set(at) != set(log):
        raise ParameterError(f"at names {', '.join(at)}, but what is logged is {', '.join(log)}")
    at = [steps] if at is None else at
    for times in at.values() if isinstance(at, dict) else [at]:
        if len(times) == 0 or min(times) < 0 or max(times) > steps:
            raise ParameterError(f"at must lie in 0..{steps}, not {list(times)}")
    at = {name: sorted(set(at[name] if isinstance(at, dict) else at)) for name in log}

    def work(run):
        return _descend(net, x, loss, etas if run is None else etas[run], run, steps, log, at, checkpoint)

    together, curves = over_runs(work, net, x, batched)
    joined = {name: torch.stack([row[name] for row in curves]) for name in curves[0]}
    if together:
        joined = {name: stacked[0] for name, stacked in joined.items()}
    history = History(joined.pop("loss"), joined)
    if history.diverged.any() and not allow_divergence:
        run = int(history.diverged.int().argmax())
        step = int(history.loss[run].isfinite().int().argmin())
        raise TrainingDiverged(f"run {run}: the loss is not finite at step {step}; lower eta (now {etas[run]:.3g})")
    return history


def better_batched(net, x):
    """A GPU is filled by one wide net, and a CPU's cache by one small net: below that, runs go together."""
    n = x.shape[-2]
    return n * net.m <= 2_000_000 if x.device.type == "cuda" else n <= 100 and net.m <= 64


def over_runs(work, net, x, batched=None):
    """(True, [work(None)]), all runs of a net at once, or (False, [work(0), ..]), as `gradient_descent` chooses."""
    each = _bytes_of_a_run(net, x)
    if batched is None:
        batched = better_batched(net, x) and net.runs * each <= memory.budget(x.device)
    return batched, [work(None)] if batched else in_threads(work, net.runs, x.device, each)


def _bytes_of_a_run(net, x):
    """What an open run holds beside the net itself; 0 where that is little, or where only shapes count."""
    if x.shape[-2] * net.m < 100_000 or x.device.type == "meta":
        return 0
    return memory.held(net.descent(x, 0), but=[net])


def in_threads(work, runs, device, each=0):
    """[work(0), .., work(runs - 1)], in as many threads as torch has been given, one thread each.

    each: bytes that a run holds: no more runs go at a time than fit into memory. Raises MemoryExceeded where none does.
    """
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    threads = memory.fitting(threads, each, "a run", device)
    if threads == 1 or runs == 1:
        return [work(run) for run in range(runs)]

    def alone(run):
        torch.set_num_threads(1)
        return work(run)

    try:
        with ThreadPoolExecutor(min(threads, runs)) as pool:
            return list(pool.map(alone, range(runs)))
    finally:
        torch.set_num_threads(threads)


def _descend(net, x, loss, eta, run, steps, log, at, checkpoint):
    """{"loss": (steps + 1,), and the logs (len(at), ...)} of one run; all with a leading run axis for run=None."""
    descent, loss = net.descent(x, run), loss.select(run)
    lead = () if run is not None else (net.runs,)
    curve = torch.full((steps + 1, *lead), float("nan"), dtype=x.dtype, device=x.device)
    tensors = {"loss": curve, **descent.state}
    settings = [type(descent).__name__, eta.tolist(), steps, loss.scale, sorted(log), at]
    key = checkpoint and training_key(settings, [x, loss.y, *tensors.values()])
    first, saved = checkpoint.load(run, key) if checkpoint else (0, {})
    if first < 0:
        return saved
    logged = {name: t for name, t in saved.items() if "@" in name}
    for name, t in tensors.items():
        t.copy_(saved.get(name, t))

    times = {name: set(at[name]) for name in log}

    def measure(k):
        due = {name: value for name, value in log.items() if k in times[name]}
        logged.update({f"{name}@{k}": value(descent).double().cpu() for name, value in due.items()})

    for k in range(first, steps + 1):
        measure(k)
        curve[k], derivative = loss(descent.forward())
        if k == steps or (k % CHUNK == 0 and not bool(curve[k].isfinite().any())):
            break
        descent.descend(derivative.mul_(eta.to(x).reshape(*lead, *[1] * (derivative.ndim - len(lead)))))
        if checkpoint and checkpoint.due(run):
            checkpoint.save(run, key, k + 1, {**tensors, **logged})
    for later in range(k + 1, steps + 1):  # after a divergence: whatever is left
        measure(later)
    result = {name: torch.stack([logged[f"{name}@{j}"] for j in at[name]], len(lead)) for name in log}
    result["loss"] = curve.double().cpu().movedim(0, -1).contiguous()
    if checkpoint:
        checkpoint.save(run, key, -1, result)
    return result
