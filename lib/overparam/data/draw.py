"""Which rows, and with which labels: seeded uniform draws without replacement."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from ..errors import ParameterError
from .synthetic import streams


@dataclass(frozen=True, eq=False)
class Rows:
    """Row numbers: of the whole training `split`, of those drawn of it (`train`) and for `test`."""

    split: np.ndarray
    train: np.ndarray
    test: np.ndarray

    def of(self, parts):
        """The drawn rows of (train, test) or (pool,) arrays, training rows first."""
        return np.concatenate([parts[0][self.train], parts[-1][self.test]])

    def name(self, place):
        """The name of the row at a place of what `of` returns, for messages."""
        n = len(self.train)
        return (
            f"{self.train[place]} of the training data"
            if place < n
            else f"{self.test[place - n]} of the test data"
        )


def count(what, value, least):
    """`value` as an int of at least `least`. Raises ParameterError naming `what`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ParameterError(f"{what} = {value!r} is not a whole number") from None
    if number < least:
        raise ParameterError(f"{what} = {number} is less than {least}")
    return number


def rows(name, labels, share, *, classes, n_train, n_test, seed):
    """The Rows of a seeded draw; with one seed, a draw of 200 rows begins with that of 100.

    `labels` is (train, test), or (pool,) where the data set has no split of its own: then the test
    rows are the last ones of the seeded order, as many as n_test says or else a share `share` of
    all, or what n_train leaves, and the others are the training split. Raises ParameterError if
    there are fewer rows than asked for.
    """
    orders = []
    for y, rng in zip(labels, streams(seed, 2), strict=False):
        kept = np.arange(len(y)) if classes is None else np.flatnonzero(np.isin(y, classes))
        orders.append(rng.permutation(kept))
    if len(orders) == 2:
        split, test = orders
    else:
        (order,) = orders
        size = n_test
        if size is None:
            size = max(0, min(round(share * len(order)), len(order) - (n_train or 0)))
        # the test rows are read from the end, so that they are nested in n_test as the training
        # rows are in n_train
        split, test = order[: max(0, len(order) - size)], order[::-1][:size]
    which = f"rows of classes {classes}" if classes else "rows"
    for kind, order, asked in (("test", test, n_test or 0), ("training", split, n_train or 1)):
        if len(order) < asked:
            raise ParameterError(f"{name} has {len(order)} {kind} {which}, not {asked}")
    return Rows(split, split[:n_train], test[:n_test])


def chosen(name, y, classes):
    """`classes` as a tuple. Raises ParameterError unless they are two or more classes of y."""
    there = np.unique(y).tolist()
    classes = tuple(classes) if isinstance(classes, Iterable) else (classes,)
    if len(set(classes)) != len(classes) or len(classes) < 2 or not set(classes) <= set(there):
        raise ParameterError(
            f"classes = {classes}: {name} has {there[0]} to {there[-1]}, name two or more of them"
        )
    return classes


def targets(y, classes):
    """Labels (n,): +1.0 for the first of two classes, -1.0 for the second; else places.

    Places in `classes`.
    """
    if classes is None:
        return torch.from_numpy(y.astype(np.int64))
    places = np.argmax(y[:, None] == np.array(classes), axis=1)
    return torch.from_numpy(1.0 - 2.0 * places if len(classes) == 2 else places)
