"""Which examples a step of gradient descent sees: all, the next batch of an epoch, a random subset.

A descent goes on in rounds: a round is a step, and with `Epochs` a pass through all examples. The
loss of all examples is looked at before rounds, and what a step sees is a function of the seed and
the step alone, so that a training can resume anywhere.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch

from ..errors import ParameterError

CHUNK = 100  # steps between two looks at a divergence: losses stay on the device until then


@dataclass(frozen=True)
class FullBatch:
    """Every step sees all n examples."""

    unit = "step"

    def check(self, n, rounds):
        """Raise ParameterError where such batches of n examples are not possible."""
        _at_least_one("steps", rounds)

    def steps_per_round(self, n):
        return 1

    def looks(self, rounds):
        """The rounds before which the loss of all examples is looked at."""
        return range(rounds + 1)

    def patience(self, n):
        """The steps between two looks at whether all runs have diverged."""
        return CHUNK

    def step_factor(self, n):
        """What the step size is multiplied by."""
        return 1.0

    def rows(self, k, n):
        """The numbers of the examples that step k sees, (batch,); None for all of them."""
        return None

    def first_inputs(self, x):
        """The inputs at which a run is opened."""
        return x

    def outputs_at_all(self, run, x):
        """The outputs of a run at all examples x."""
        return run.forward()

    def outputs_at_rows(self, run, x, rows):
        """The outputs of a run at some of the examples, of which `descend` then takes a step."""
        return run.forward(rows)


@dataclass(frozen=True)
class Subsets(FullBatch):
    """Step t sees a uniform subset S_t: W <- W - eta (n / batch) sum_{i in S_t} dF_i/dW.

    batch: how many examples are in S_t. at: the steps before which the loss of all examples is
    looked at; None: every step. The loss is a sum over the examples, and runs take `forward(rows)`.
    Source: Allen-Zhu et al. 2019, Theorem 2.
    """

    batch: int
    seed: int
    at: tuple | None = None

    def check(self, n, rounds):
        _at_least_one("steps", rounds)
        _at_most_all(self.batch, n)
        self.looks(rounds)

    def looks(self, rounds):
        return range(rounds + 1) if self.at is None else times_within(self.at, rounds)

    def step_factor(self, n):
        return n / self.batch

    def rows(self, k, n):
        return subset(n, self.batch, self.seed, k)


@dataclass(frozen=True)
class Epochs(FullBatch):
    """`batch` examples a step, in an order of its own in each epoch; its last batch may be smaller.

    A mean over the examples is then that over the batch, a sum is not rescaled. Runs take other
    inputs by `load(x)`, and give the outputs at all examples by `predict(x)`.
    """

    batch: int
    seed: int
    unit = "epoch"

    def check(self, n, rounds):
        _at_least_one("epochs", rounds)
        _at_most_all(self.batch, n)

    def steps_per_round(self, n):
        return -(-n // self.batch)

    def patience(self, n):
        return self.steps_per_round(n)

    def rows(self, k, n):
        epoch, part = divmod(k, self.steps_per_round(n))
        return _batches_of_epoch(n, self.batch, self.seed, epoch)[part]

    def first_inputs(self, x):
        return x[..., : self.batch, :]

    def outputs_at_all(self, run, x):
        return run.predict(x)

    def outputs_at_rows(self, run, x, rows):
        run.load(x[..., rows, :])
        return run.forward()


def epoch_order(n, seed, epoch):
    """The order of n examples in an epoch, (n,): a function of the seed and the epoch alone."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    return torch.randperm(n, generator=generator)


def subset(n, batch, seed, step):
    """`batch` different numbers below n, (batch,), in random order: of the seed and the step."""
    return epoch_order(n, seed, step)[:batch]


def times_within(times, last):
    """The sorted times. Raises ParameterError where they are none or do not lie in 0..last."""
    times = [int(time) for time in times]
    if not times or min(times) < 0 or max(times) > last:
        raise ParameterError(f"at must lie in 0..{last}, not {times}")
    return sorted(set(times))


@lru_cache(maxsize=8)
def _batches_of_epoch(n, batch, seed, epoch):
    return epoch_order(n, seed, epoch).split(batch)


def _at_least_one(name, count):
    if count < 1:
        raise ParameterError(f"{name} must be at least 1, not {count}")


def _at_most_all(batch, n):
    if not 1 <= batch <= n:
        raise ParameterError(f"batch must lie in 1..{n}, not {batch}")
