"""Checkpoints of long trainings: a safetensors file per run, written atomically.

None is loaded where it does not fit.
"""

import ast
import contextlib
import functools
import hashlib
import inspect
import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from .. import settings
from ..errors import ParameterError

SHARE = 30  # a save waits until at least so many times what the last one took has passed
LARGEST = 2**20  # bytes of a finished run that is kept among others; networks are not
log = logging.getLogger("overparam")
_stop = threading.Event()


class Checkpoint:
    """Checkpoints of the runs of one training: open states as `<stem>-<run>.safetensors`.

    stem: path without suffix; every: seconds between two saves of a run (default:
    `settings.checkpoint_seconds`), and longer where a save takes long; 0: after every step.
    finished: the folder (`claim.runs`) where finished runs, their curves and logs alone, are kept
    as `<stem>-<key>.safetensors` by what they were computed from, for later sittings and other
    machines; without one they lie where the open states do.
    A file that is damaged, or belongs to another training, is set aside as `<name>.refused` with a
    warning.
    """

    def __init__(self, stem, every=None, finished=None):
        self.stem, self._saved, self._took = Path(stem), {}, 0.0
        self.every = settings.checkpoint_seconds if every is None else float(every)
        if not self.every >= 0:
            raise ParameterError(f"every = {every!r} is not a number of seconds")
        self.finished = finished

    def path(self, run):
        return self.stem.with_name(f"{self.stem.name}-{'all' if run is None else run}.safetensors")

    def load(self, run, key):
        """(step, {name: tensor}) of a run, (0, {}) where none fits; step -1 for a finished run."""
        self._saved[run] = time.monotonic()
        for path in [self._kept(key), self.path(run)] if self.finished else [self.path(run)]:
            if path.exists():
                try:
                    return _read(path, key)
                except (SafetensorError, OSError, ValueError, KeyError) as error:
                    refused = path.replace(path.with_suffix(".safetensors.refused")).name
                    log.warning(
                        "checkpoint %s refused (%s), set aside as %s; starting anew",
                        path.name,
                        error,
                        refused,
                    )
        return 0, {}

    def _kept(self, key):
        return Path(self.finished) / f"{self.stem.name}-{key[:16]}.safetensors"

    def due(self, run):
        """Whether a run should be saved now: its time has come, or an interrupt waits for it."""
        wait = max(self.every, SHARE * self._took) if self.every else 0
        return _stop.is_set() or time.monotonic() - self._saved[run] >= wait

    def save(self, run, key, step, tensors):
        """Write a run's state at a step, or what a finished one has left (step -1)."""
        began = time.monotonic()
        tensors = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
        small = sum(t.numel() * t.element_size() for t in tensors.values()) <= LARGEST
        if step < 0 and self.finished and small:
            _write(self._kept(key), key, step, tensors)
            self.path(run).unlink(missing_ok=True)
        else:
            _write(self.path(run), key, step, tensors)
        self._saved[run] = time.monotonic()
        self._took = self._saved[run] - began


def _read(path, key):
    with safe_open(path, framework="pt") as file:
        meta = file.metadata() or {}
        if meta.get("key") != key:
            raise ValueError("it belongs to another training")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if meta["digest"] != _digest(key, int(meta["step"]), tensors):
        raise ValueError("its content is damaged")
    return int(meta["step"]), tensors


def _write(path, key, step, tensors):
    """Write under a temporary name, flush to disk, and rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    meta = {"key": key, "step": str(step), "digest": _digest(key, step, tensors)}
    try:
        safetensors.torch.save_file(tensors, temporary, metadata=meta)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _digest(key, step, tensors):
    return training_key([key, step, sorted(tensors)], [tensors[name] for name in sorted(tensors)])


def training_key(values, tensors):
    """A digest of all that a run's course depends on: values, tensors and code.

    values: JSON; tensors count with shape, dtype and bytes.
    The code is the library's, by `settings.checkpoint_code`, torch's, by its version, and all that
    the notebook has run so far but its parameters. The number of threads decides how sums round.
    """
    code = [settings.checkpoint_code, torch.__version__, torch.get_num_threads(), *_ran()]
    digest = hashlib.sha256(json.dumps([values, code], sort_keys=True).encode())
    for t in tensors:
        digest.update(f"{tuple(t.shape)}{t.dtype}".encode())
        digest.update(t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _ran():
    """The code of the cells that this kernel has run, without comments and parameters.

    Repetitions count once.
    """
    if "IPython" not in sys.modules or (shell := sys.modules["IPython"].get_ipython()) is None:
        return []
    cells = list(dict.fromkeys(shell.user_ns["In"]))
    for i in [i for i, cell in enumerate(cells) if cell.startswith("# Parameters\n")][:1]:
        del cells[i - 1 : i + 1]  # the literals, and what papermill gives in their place
    return list(map(_without_comments, cells))


@functools.cache
def _without_comments(cell):
    try:
        return ast.unparse(ast.parse(cell))
    except SyntaxError:
        return cell


def seen_by(*things):
    """(code, numbers and words; tensors) of functions and values, for a `training_key`.

    With what they refer to.
    """
    values, tensors, todo, done = [], [], list(things), set()
    spaces = [thing.__globals__ for thing in things if inspect.isfunction(thing)]
    for thing in todo:  # which grows
        if isinstance(thing, torch.Tensor):
            tensors.append(thing)
        elif isinstance(thing, np.ndarray) and thing.dtype.kind in "biuf":
            tensors.append(torch.tensor(thing))
        elif thing is None or isinstance(thing, bool | int | float | complex | str | np.generic):
            values.append(repr(thing))
        elif id(thing) in done:
            continue
        elif isinstance(thing, dict):
            todo += [*thing, *thing.values()]
        elif isinstance(thing, list | tuple | range):
            todo += thing
        elif isinstance(thing, functools.partial):
            todo += [thing.func, thing.args, thing.keywords]
        elif inspect.ismethod(thing):
            todo.append(thing.__func__)
        elif inspect.isbuiltin(thing) or inspect.isclass(thing):
            values.append(thing.__qualname__)
        elif inspect.isfunction(thing):
            values.append(thing.__qualname__)
            found = inspect.getclosurevars(thing)
            todo += [thing.__defaults__, thing.__kwdefaults__, found.nonlocals]
            if any(
                thing.__globals__ is space for space in spaces
            ):  # the library's code is known as a whole
                values += _bytecode(thing.__code__)
                todo.append(found.globals)
        done.add(id(thing))
    return values, tensors


def _bytecode(code):
    inner = [part for const in code.co_consts if inspect.iscode(const) for part in _bytecode(const)]
    plain = [const for const in code.co_consts if not inspect.iscode(const)]
    constants = [
        repr(sorted(const, key=repr) if isinstance(const, frozenset) else const) for const in plain
    ]
    return [code.co_code.hex(), *code.co_names, *constants, *inner]


@contextlib.contextmanager
def deferred_interrupts():
    """Let SIGINT and SIGTERM wait until trainings inside have ended their step and saved.

    See `stop_if_asked`.
    A second signal does not wait. In another thread than the main one nothing changes: signals go
    to the main one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def note(number, frame):
        if _stop.is_set():
            raise KeyboardInterrupt
        _stop.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
        stop_if_asked()
    finally:
        _stop.clear()
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def stop_if_asked():
    """Raise KeyboardInterrupt where an interrupt waits.

    To be called between two steps, after the state is saved.
    """
    if _stop.is_set():
        raise KeyboardInterrupt
