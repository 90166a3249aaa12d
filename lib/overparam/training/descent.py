"""Gradient descent over a run axis: one loop for all nets, losses and batches."""

import sys
from dataclasses import dataclass

import torch
from tqdm import tqdm

from .. import arguments, settings
from ..errors import ParameterError, TrainingDiverged
from .batches import FullBatch, times_within
from .checkpoints import deferred_interrupts, seen_by, stop_if_asked, training_key
from .losses import Loss
from .parallel import all_at_once, bytes_of_a_run, in_threads

ALL_EXAMPLES = FullBatch()


@dataclass
class History:
    """What a training left behind.

    loss: (R, looks) float64 on the CPU, before every round and after the last one, or before the
    steps `at` of `Subsets`; NaN after a run has diverged.
    logs: {name: (R, len(at), ...) float64 on the CPU}, measured before the rounds `at`.
    """

    loss: torch.Tensor
    logs: dict

    @property
    def diverged(self):
        """Which runs ended without a finite loss, shape (R,)."""
        return ~self.loss[:, -1].isfinite()


def gradient_descent(
    net,
    x,
    loss,
    eta,
    steps,
    *,
    batches=ALL_EXAMPLES,
    log=None,
    at=None,
    batched=None,
    allow_divergence=False,
    checkpoint=None,
):
    """W <- W - eta dLoss/dW for `steps` steps, for all runs of `net`: a `History`.

    net: has `runs` and `descent(x, run)`, as `overparam.models` says; x: inputs as the net takes
    them, (n, ..); loss: a `Loss` over all examples; eta: one step size, or a list of one per run.
    batches: `FullBatch()`, `Epochs(batch, seed)` or `Subsets(batch, seed)`: what a step sees; all
    runs see the same. With `Epochs`, `steps` and `at` count epochs.
    log: {name: function of a run, giving a tensor}, measured before each step in `at`: steps from 0
    to `steps` (by default the last: at the end), as one list for all names or as {name: list}.
    batched: all runs at once as batched products (tiny nets, a GPU), or one after another in as
    many threads as torch has been given and memory allows, one thread each, so that the numbers do
    not depend on how many there are. None decides by device and size.
    checkpoint: a `Checkpoint` to resume from and save to.
    Raises TrainingDiverged where a run ends without a finite loss, unless `allow_divergence`.

    >>> from overparam.models.two_layer import TwoLayerReLU
    >>> from overparam.training import SquaredLoss
    >>> net, x = TwoLayerReLU(4, 1000, 1.0, seeds=[0]), torch.eye(4)
    >>> history = gradient_descent(net, x, SquaredLoss(torch.ones(4), "halfsum"), 1.0, 30)
    >>> history.loss[0, -1].item() < 1e-6
    True
    """
    _check(net, x, loss)
    batches.check(x.shape[-2], steps)
    training = _Training(net, x, loss, eta, steps, batches, log or {}, at, checkpoint)
    each = bytes_of_a_run(net, batches.first_inputs(x))
    if batched is None:
        batched = all_at_once(net, batches.first_inputs(x), each)
    if batched:
        history = History(*training.run(None))
    else:
        parts = in_threads(training.run, net.runs, x.device, each)
        curves = torch.stack([curve for curve, _ in parts])
        logs = {name: torch.stack([log[name] for _, log in parts]) for name in training.log}
        history = History(curves, logs)
    if history.diverged.any() and not allow_divergence:
        _complain(history, training)
    return history


def reaches(goal, net, x, loss, eta, steps, *, batched=None, checkpoint=None):
    """Which runs come to a loss of at most `goal` within `steps` steps, bool (R,) on the CPU.

    The training is that of `gradient_descent`, whose arguments these are, on all examples. It ends
    as soon as the answer is known: a run that has reached the goal is not trained further, nor are
    runs that go all at once when each of them has reached it or has no finite loss.

    >>> from overparam.models.two_layer import TwoLayerReLU
    >>> from overparam.training import SquaredLoss
    >>> net, x = TwoLayerReLU(4, 1000, 1.0, seeds=[0, 0]), torch.eye(4)
    >>> reaches(1e-6, net, x, SquaredLoss(torch.ones(4)), [1.0, 0.001], 30).tolist()
    [True, False]
    """
    _check(net, x, loss)
    training = _TrainingToGoal(goal, net, x, loss, eta, steps, checkpoint)
    each = bytes_of_a_run(net, x)
    if batched is None:
        batched = all_at_once(net, x, each)
    if batched:
        return training.run(None)
    return torch.stack(in_threads(training.run, net.runs, x.device, each))


def _check(net, x, loss):
    """Raise ParameterError where net, inputs and labels are not finite or do not fit together."""
    if not hasattr(net, "descent"):
        raise ParameterError(
            f"net must be one of overparam.models with runs, not {type(net).__name__}"
        )
    if not isinstance(x, torch.Tensor):
        raise ParameterError(f"x must be a tensor of inputs, not {type(x).__name__}")
    if x.ndim < 2:
        raise ParameterError(f"x must have one row per input, (n, ..), not {arguments.shape(x)}")
    if isinstance(loss, torch.Tensor | type) or not hasattr(loss, "select"):
        told = "loss must be one of overparam.training, such as SquaredLoss(y)"
        raise ParameterError(f"{told}, not {getattr(loss, '__name__', type(loss).__name__)}")
    arguments.finite(x, "x")
    precision = getattr(net, "dtype", x.dtype)  # some nets take that of their inputs
    if x.dtype != precision:
        raise ParameterError(f"x is {x.dtype} and the net is {precision}: make them equal")
    if isinstance(loss, Loss):
        arguments.finite(loss.y, "y")
        numbers = x.is_floating_point() and loss.y.is_floating_point()  # not rows, nor classes
        if numbers and loss.y.dtype != precision:
            raise ParameterError(f"y is {loss.y.dtype} and the net is {precision}: make them equal")
        labels = loss.y.shape[1 if loss.runs_axis else 0]
        if labels != x.shape[-2]:
            told = f"y has {labels} labels, of shape {arguments.shape(loss.y)}"
            raise ParameterError(
                f"{told}, for {x.shape[-2]} inputs, x of shape {arguments.shape(x)}"
            )


def _complain(history, training):
    run = int(history.diverged.int().argmax())
    look = int(history.loss[run].isfinite().int().argmin())
    unit, when = training.batches.unit, training.batches.looks(training.rounds)[look]
    eta = float(training.eta[run])
    raise TrainingDiverged(
        f"run {run}: the loss is not finite at {unit} {when}; lower eta (now {eta:.3g})"
    )


class _Training:
    """What all runs of a training share."""

    def __init__(self, net, x, loss, eta, rounds, batches, log, at, checkpoint):
        self.net, self.x, self.loss, self.batches = net, x, loss, batches
        self.log, self.checkpoint = log, checkpoint
        self.eta = arguments.step_sizes(eta, net.runs)
        self.n, self.rounds = x.shape[-2], rounds
        per_round = batches.steps_per_round(self.n)
        self.steps = rounds * per_round
        self.looks = [k * per_round for k in batches.looks(rounds)]
        self.at = _times(log, at, rounds)  # name of a log -> rounds before which it is measured
        self.due = {name: {k * per_round for k in times} for name, times in self.at.items()}

    def run(self, number):
        """(losses, logs) of one run; with a leading run axis of all, for None."""
        return _Run(self, number).to_the_end()


class _Run:
    """One run in training, or all of them at once (number None)."""

    def __init__(self, training, number):
        self.training, self.number = training, number
        net, x = training.net, training.x
        self.descent = net.descent(training.batches.first_inputs(x), number)
        self.loss = training.loss.select(number)
        self.lead = () if number is not None else (net.runs,)
        state = self.descent.state
        weights = next(iter(state.values()))  # whose dtype and device all else has
        eta = training.eta if number is None else training.eta[number]
        self.eta = eta.to(weights) * training.batches.step_factor(training.n)
        curve = weights.new_full((len(training.looks), *self.lead), torch.nan)
        self.tensors = {"loss": curve, **state}
        self.logged = {name: [] for name in training.log}
        self.place = 0  # of the next look

    def to_the_end(self):
        """Train from the beginning, or from where a checkpoint has it."""
        checkpoint, first = self.training.checkpoint, 0
        if checkpoint:
            self.key = self._key()
            first, saved = checkpoint.load(self.number, self.key)
            if first < 0:  # it has ended
                return saved.pop("loss"), saved
            self._resume(first, saved)
        with deferred_interrupts():
            self._steps(first)
        curve = self.tensors["loss"].double().cpu().movedim(0, -1).contiguous()
        logs = {name: torch.stack(rows, len(self.lead)) for name, rows in self.logged.items()}
        if checkpoint:
            checkpoint.save(self.number, self.key, -1, {"loss": curve, **logs})
        return curve, logs

    def _steps(self, first):
        last = self.training.steps
        shown = sys.stderr.isatty() or settings.progress  # while a long loop runs
        bar = {"initial": first, "total": last + 1, "delay": 5, "leave": False}
        for k in tqdm(range(first, last + 1), disable=not shown, **bar):
            self._measure(k)
            derivative, alive = self._look(k)
            if k == last or not alive:
                break
            rows = self.training.batches.rows(k, self.training.n)
            if rows is not None:
                derivative = self._derivative_at(rows)
            size = self.eta.reshape(*self.lead, *[1] * (derivative.ndim - len(self.lead)))
            self.descent.descend(derivative.mul_(size))
            self._save_if_due(k + 1)
            stop_if_asked()
        for later in range(k + 1, last + 1):  # after a divergence: whatever is left
            self._measure(later)

    def _measure(self, k):
        for name, measured in self.training.log.items():
            if k in self.training.due[name]:
                self.logged[name].append(measured(self.descent).double().cpu())

    def _look(self, k):
        """(derivative of the loss by all outputs or None, whether some run is still finite)."""
        training = self.training
        if self.place == len(training.looks) or training.looks[self.place] != k:
            return None, True
        outputs = training.batches.outputs_at_all(self.descent, training.x)
        if self.place == 0 and isinstance(self.loss, Loss):
            self.loss.check_fit(outputs.shape[len(self.lead) :])
        value, derivative = self.loss(outputs)
        self.tensors["loss"][self.place] = value
        self.place += 1
        due = k % training.batches.patience(training.n) == 0
        return derivative, not due or bool(value.isfinite().any())

    def _derivative_at(self, rows):
        training = self.training
        rows = rows.to(training.x.device)
        outputs = training.batches.outputs_at_rows(self.descent, training.x, rows)
        return self.loss.rows(rows)(outputs)[1]

    def _key(self):
        """What the run's course depends on: its net, loss, steps, and what its logs look at."""
        training, number = self.training, self.number
        eta = training.eta if number is None else training.eta[number]
        names = [type(self.descent).__name__, type(self.loss).__name__]
        counts = [eta.tolist(), training.rounds, training.at]
        logs = [training.log[name] for name in sorted(training.log)]
        numbers, seen = seen_by(*logs, self.loss, vars(self.loss), self.descent.fixed)
        tensors = [training.x, *self.tensors.values(), *seen]
        return training_key([names, counts, repr(training.batches), numbers], tensors)

    def _save_if_due(self, k):
        checkpoint = self.training.checkpoint
        if checkpoint and checkpoint.due(self.number):
            logs = {f"log {name}": torch.stack(t) for name, t in self.logged.items() if t}
            checkpoint.save(self.number, self.key, k, {**self.tensors, **logs})

    def _resume(self, first, saved):
        for name, tensor in self.tensors.items():
            tensor.copy_(saved.get(name, tensor))
        for name in self.logged:
            self.logged[name] = list(saved.get(f"log {name}", ()))
        self.place = sum(look < first for look in self.training.looks)


class _TrainingToGoal(_Training):
    """What all runs share that only need to reach a loss."""

    def __init__(self, goal, net, x, loss, eta, steps, checkpoint):
        if not abs(goal) < float("inf"):
            raise ParameterError(f"goal must be a finite loss, not {goal!r}")
        ALL_EXAMPLES.check(x.shape[-2], steps)
        super().__init__(net, x, loss, eta, steps, ALL_EXAMPLES, {}, None, checkpoint)
        self.goal = float(goal)

    def run(self, number):
        """Whether one run reaches the goal, bool (); with a leading run axis of all, for None."""
        losses, _ = _RunToGoal(self, number).to_the_end()
        return (losses <= self.goal).any(-1)


class _RunToGoal(_Run):
    """One run, or all of them at once, until the goal is reached."""

    def _look(self, k):
        derivative, alive = super()._look(k)
        losses = self.tensors["loss"][: self.place].double()  # as the answer compares them
        ended = (losses <= self.training.goal).any(0) | ~losses[-1].isfinite()
        return derivative, alive and not bool(ended.all())

    def _key(self):
        return training_key([super()._key(), self.training.goal], [])


def _times(names, at, last):
    """{name: sorted rounds}. Raises ParameterError where they are not within 0..last."""
    if "loss" in names:
        raise ParameterError("the loss is always recorded; give the log another name")
    if not isinstance(at, dict):
        at = dict.fromkeys(names, times_within([last] if at is None else at, last))
    if set(at) != set(names):
        logged = ", ".join(names)
        raise ParameterError(f"at names {', '.join(at)}, but what is logged is {logged}")
    return {name: times_within(at[name], last) for name in names}
