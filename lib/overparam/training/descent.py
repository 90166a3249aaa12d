"""Gradient descent over a run axis, on all examples, shuffled batches or random subsets: one loop
for all of them.
"""

import sys
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial

import torch
from tqdm import tqdm

from .. import memory, settings
from ..errors import ParameterError, TrainingDiverged
from .checkpoints import deferred_interrupts, seen_by, stop_if_asked, training_key
from .precision import fast_products

CHUNK = 100  # steps between two looks at the losses, which stay on the device until then


@dataclass
class History:
    """What a training left behind.

    loss: (R, steps + 1) float64 on the CPU; loss[:, k] is that before step k, and NaN after a run
    has diverged.
    logs: {name: (R, len(at), ...) float64 on the CPU}, measured before the steps `at`.
    """

    loss: torch.Tensor
    logs: dict

    @property
    def diverged(self):
        """Which runs ended without a finite loss, shape (R,)."""
        return ~self.loss[:, -1].isfinite()


@dataclass
class _Training:
    """What `_descend` needs. looks: steps before which the loss of all examples is measured, range
    or list; at: {name of a log: steps}; batches: (kind, size, seed), or () for all examples; check:
    steps between looks at divergence.
    """

    net: object
    x: torch.Tensor
    loss: object
    eta: object
    steps: int
    looks: object
    checkpoint: object
    log: dict = field(default_factory=dict)
    at: dict = field(default_factory=dict)
    batches: tuple = ()
    check: int = CHUNK

    def __post_init__(self):
        if "loss" in self.log:
            raise ParameterError("the loss is always recorded; give the log another name")
        self.eta = torch.as_tensor(self.eta, dtype=torch.float64).expand(self.net.runs)

    def history(self, batched, complaint=None):
        """The History of all runs; with a complaint, TrainingDiverged where one ended without a
        finite loss.
        """
        size = self.batches[1] if self.batches[:1] == ("epochs",) else self.x.shape[-2]
        curves = in_threads(
            partial(_descend, self), *_division(self.net, self.x[..., :size, :], batched)
        )
        joined = {name: torch.stack([row[name] for row in curves]) for name in curves[0]}
        if joined["loss"].ndim == 3:  # all runs at once
            joined = {name: stacked[0] for name, stacked in joined.items()}
        history = History(joined.pop("loss"), joined)
        if history.diverged.any() and complaint:
            run = int(history.diverged.int().argmax())
            step = int(history.loss[run].isfinite().int().argmin())
            raise TrainingDiverged(
                f"run {run}: the loss is not finite {complaint.format(step, self.eta[run])}"
            )
        return history


def gradient_descent(
    net,
    x,
    loss,
    eta,
    steps,
    *,
    log=None,
    at=None,
    batched=None,
    allow_divergence=False,
    checkpoint=None,
):
    """Full-batch gradient descent W <- W - eta dLoss/dW for `steps` steps, for all runs of `net`: a
    `History`.

    net: has `runs` and `descent(x, run)`; x: inputs as the net takes them; loss: a `Loss`; eta: one
    step size, or a list of one per run.
    log: {name: callable of a run's descent, giving a tensor}, measured before each step in `at`:
    steps from 0 to `steps` (by default `steps` alone: after the last one), as one list for all
    names or as {name: list}.
    batched: all runs at once (tiny nets, a GPU), or one after another in as many threads as torch
    has been given and memory allows, one thread each, so that the numbers do not depend on how many
    there are. None decides by device and size.
    checkpoint: a `Checkpoint` to resume from and save to. Raises TrainingDiverged unless
    `allow_divergence`.

    >>> from overparam.models.two_layer import TwoLayerReLU
    >>> from overparam.training import SquaredLoss
    >>> net, x = TwoLayerReLU(4, 1000, 1.0, seeds=[0]), torch.eye(4)
    >>> gradient_descent(net, x, SquaredLoss(torch.ones(4), "halfsum"), 1.0, 30).loss[0, -1].item() < 1e-6
    True
    """
    if steps < 1:
        raise ParameterError(f"steps must be at least 1, not {steps}")
    log, looks = log or {}, range(steps + 1)
    training = _Training(net, x, loss, eta, steps, looks, checkpoint, log, _times(log, at, steps))
    return training.history(
        batched, None if allow_divergence else "at step {}; lower eta (now {:.3g})"
    )


def stochastic_gradient_descent(
    net,
    x,
    loss,
    eta,
    epochs,
    *,
    batch,
    seed,
    log=None,
    at=None,
    batched=None,
    allow_divergence=False,
    checkpoint=None,
):
    """Gradient descent on batches of `batch` examples, `epochs` times through the data in an order
    of its own each.

    net: has `runs` and `descent(x, run)`, whose descents take other inputs by `load(x)`; x: (n, p);
    loss: over all examples, with `rows(index)` for some of them: a mean is then that over the
    batch, a sum is not rescaled. eta: one step size, or a list of one per run. All runs see the
    same batches, drawn from `seed`; the last batch of an epoch may be smaller.
    log: {name: callable of a run's descent}, measured before each epoch in `at` (from 0 to
    `epochs`; default: the end). Returns a History whose `loss` (R, epochs + 1) is that of all
    examples before each epoch. Otherwise as `gradient_descent`.
    """
    n = x.shape[-2]
    _check_batches(n, batch, epochs=epochs)
    count = -(-n // batch)  # batches of an epoch
    steps, log = epochs * count, log or {}
    at = {name: [k * count for k in times] for name, times in _times(log, at, epochs).items()}
    looks = range(0, steps + 1, count)
    batches = ("epochs", batch, seed)
    training = _Training(net, x, loss, eta, steps, looks, checkpoint, log, at, batches, check=count)
    return training.history(
        batched, None if allow_divergence else f"after {epochs} epochs; lower eta ({{1:.3g}})"
    )


def subset_descent(net, x, loss, eta, steps, *, batch, seed, at=None, checkpoint=None):
    """W <- W - eta (n / batch) sum_{i in S_t} dF_i/dW with S_t a uniform subset of `batch`
    examples, for all runs.

    net: has `runs` and `descent(x, run)`, whose `forward(rows)` takes the numbers of some examples;
    loss: a sum over the examples, with `rows`; eta: one step size, or a list of one per run. S_t is
    a function of `seed` and t, and the same for all runs. checkpoint: a `Checkpoint` to resume from
    and save to.
    Returns the loss of all examples before the steps `at` (by default 0..steps), (R, len(at))
    float64 on the CPU, not finite where a run has diverged. Source: Allen-Zhu et al. 2019, Theorem
    2.
    """
    n = x.shape[-2]
    _check_batches(n, batch, steps=steps)
    looks = range(steps + 1) if at is None else _times(["loss"], at, steps)["loss"]
    eta = torch.as_tensor(eta, dtype=torch.float64) * n / batch
    training = _Training(
        net, x, loss, eta, steps, looks, checkpoint, batches=("subsets", batch, seed)
    )
    return training.history(batched=None).loss


def _descend(training, run):
    """{"loss": (len(looks),), and the logs (len(at), ...)} of one run; all with a leading run axis
    for run=None.
    """
    net = training.net
    x = training.x
    log = training.log
    at = training.at
    checkpoint = training.checkpoint
    kind, size, _ = training.batches or ("all", x.shape[-2], None)
    draws = _draws(training.batches, x)
    descent = net.descent(x[..., :size, :] if kind == "epochs" else x, run)
    loss = training.loss.select(run)
    lead = () if run is not None else (net.runs,)
    eta = (training.eta if run is None else training.eta[run]).to(x)
    curve = torch.full((len(training.looks), *lead), float("nan"), dtype=x.dtype, device=x.device)
    tensors = {"loss": curve, **descent.state}
    key = checkpoint and _key(training, run, descent, loss, tensors)
    first, saved = checkpoint.load(run, key) if checkpoint else (0, {})
    if first < 0:
        return saved
    logged = {name: t for name, t in saved.items() if "@" in name}
    for name, t in tensors.items():
        t.copy_(saved.get(name, t))
    times = {name: set(at[name]) for name in log}
    place = bisect_left(training.looks, first)

    def measure(k):
        due = {name: value for name, value in log.items() if k in times[name]}
        logged.update({f"{name}@{k}": value(descent).double().cpu() for name, value in due.items()})

    shown = sys.stderr.isatty() or settings.progress  # while a long loop runs
    line = {
        "initial": first,
        "total": training.steps + 1,
        "delay": 5,
        "leave": False,
        "disable": not shown,
    }
    with deferred_interrupts():
        for k in tqdm(range(first, training.steps + 1), **line):
            measure(k)
            if place < len(training.looks) and training.looks[place] == k:
                outputs = descent.predict(x) if kind == "epochs" else descent.forward()
                curve[place], derivative = loss(outputs)
                if k == training.steps or (
                    k % training.check == 0 and not bool(curve[place].isfinite().any())
                ):
                    break
                place += 1
            if k == training.steps:
                break
            if kind != "all":
                rows = draws(k)
                if kind == "epochs":
                    descent.load(x[..., rows, :])
                _, derivative = loss.rows(rows)(
                    descent.forward() if kind == "epochs" else descent.forward(rows)
                )
            descent.descend(
                derivative.mul_(eta.reshape(*lead, *[1] * (derivative.ndim - len(lead))))
            )
            if checkpoint and checkpoint.due(run):
                checkpoint.save(run, key, k + 1, {**tensors, **logged})
            stop_if_asked()
    for later in range(k + 1, training.steps + 1):  # after a divergence: whatever is left
        measure(later)
    result = {
        name: torch.stack([logged[f"{name}@{j}"] for j in at[name]], len(lead)) for name in log
    }
    result["loss"] = curve.double().cpu().movedim(0, -1).contiguous()
    if checkpoint:
        checkpoint.save(run, key, -1, result)
    return result


def _draws(batches, x):
    """k -> numbers of the examples of step k, a function of the seed and k alone, so that a run can
    resume.
    """
    if not batches:
        return None
    kind, batch, seed = batches
    n = x.shape[-2]
    if kind == "subsets":
        return lambda k: subset(n, batch, seed, k).to(x.device)
    count = -(-n // batch)
    parts = lru_cache(1)(lambda epoch: epoch_order(n, seed, epoch).to(x.device).split(batch))
    return lambda k: parts(k // count)[k % count]


def epoch_order(n, seed, epoch):
    """The order of n examples in an epoch, (n,): a function of the seed and the epoch alone."""
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch))


def subset(n, batch, seed, step):
    """`batch` different numbers below n, (batch,), in random order: a function of the seed and the
    step alone.
    """
    return epoch_order(n, seed, step)[:batch]


def _key(training, run, descent, loss, tensors):
    """What a run's course depends on: what its net was drawn as, its loss, its steps, and what its
    logs look at.
    """
    eta = training.eta if run is None else training.eta[run]
    kinds = [type(descent).__name__, type(loss).__name__]
    asked = [
        *kinds,
        eta.tolist(),
        training.steps,
        str(training.looks),
        training.batches,
        training.at,
    ]
    logs = [training.log[name] for name in sorted(training.log)]
    numbers, seen = seen_by(*logs, vars(loss), descent.fixed)
    return training_key([asked, numbers], [training.x, *tensors.values(), *seen])


def _times(names, at, last):
    """{name: sorted steps, or epochs}. Raises ParameterError where they are not within 0..last."""
    if isinstance(at, dict) and set(at) != set(names):
        raise ParameterError(f"at names {', '.join(at)}, but what is logged is {', '.join(names)}")
    at = [last] if at is None else at
    for times in at.values() if isinstance(at, dict) else [at]:
        if len(times) == 0 or min(times) < 0 or max(times) > last:
            raise ParameterError(f"at must lie in 0..{last}, not {list(times)}")
    return {name: sorted(set(at[name] if isinstance(at, dict) else at)) for name in names}


def _check_batches(n, batch, **count):
    ((name, value),) = count.items()
    if value < 1 or not 1 <= batch <= n:
        raise ParameterError(
            f"{name} = {value} and batch = {batch} must be at least 1, and batch at most {n}"
        )


def _division(net, x, batched=None):
    """Arguments of `in_threads`: (runs, device, bytes of a run), as `gradient_descent` chooses;
    runs None: together.
    """
    n, cuda = x.shape[-2], x.device.type == "cuda"
    size = n * net.m
    if (
        x.dtype == torch.float32 and x.device.type == "cpu" and size > 10_000
    ):  # below, MKL is faster
        fast_products()
    measured = (
        size >= 100_000 and x.device.type != "meta"
    )  # the rest is little, or only shapes count
    each = memory.held(net.descent(x, 0), but=[net]) if measured else 0
    if batched is None:  # a GPU is filled by one wide net, and a CPU's cache by one small net
        small = size <= 2_000_000 if cuda else n <= 100 and net.m <= 64
        batched = small and net.runs * each <= memory.budget(x.device)
    return None if batched else net.runs, x.device, each


def in_threads(work, runs, device, each=0):
    """[work(0), .., work(runs - 1)], in as many threads as torch has been given, one thread each;
    None: [work(None)].

    each: bytes that a run holds: no more runs go at a time than fit into memory. Raises
    MemoryExceeded where none does.
    """
    if runs is None:
        return [work(None)]
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    together = min(runs, memory.fitting(threads, each, "a run", device))
    if threads == 1 or runs == 1:
        return [work(run) for run in range(runs)]

    def alone(run):
        torch.set_num_threads(1)
        return work(run)

    try:
        with deferred_interrupts(), ThreadPoolExecutor(together) as pool:
            return list(pool.map(alone, range(runs)))
    finally:
        torch.set_num_threads(threads)
