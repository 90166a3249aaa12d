"""Checkpoints of long trainings: a file per run, written atomically, loaded only where it fits."""

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
        self.stem = Path(stem)
        self.every = settings.checkpoint_seconds if every is None else float(every)
        if not self.every >= 0:
            raise ParameterError(f"every = {every!r} is not a number of seconds")
        self.finished = finished
        self._saved = {}  # run -> when it was loaded or saved last
        self._took = 0.0  # seconds of the last save

    def path(self, run):
        """Where the open state of a run lies; of all runs at once for None."""
        name = "all" if run is None else run
        return self.stem.with_name(f"{self.stem.name}-{name}.safetensors")

    def load(self, run, key):
        """(step, {name: tensor}) of a run, (0, {}) where none fits; step -1 for a finished run."""
        self._saved[run] = time.monotonic()
        paths = [self.path(run)]
        if self.finished:
            paths.insert(0, self._kept(key))
        for path in paths:
            if not path.exists():
                continue
            try:
                return _read(path, key)
            except (SafetensorError, OSError, ValueError, KeyError) as error:
                aside = path.replace(path.with_suffix(".safetensors.refused"))
                told = "checkpoint %s refused (%s), set aside as %s; starting anew"
                log.warning(told, path.name, error, aside.name)
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
        small = sum(t.nbytes for t in tensors.values()) <= LARGEST
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
    names = sorted(tensors)
    return training_key([key, step, names], [tensors[name] for name in names])


def training_key(values, tensors):
    """A digest of all that a run's course depends on: values, tensors and code.

    values: JSON; tensors count with shape, dtype and bytes. The code is the library's, by
    `settings.checkpoint_code`, torch's, by its version, and all that the notebook has run so far
    but its parameters. The number of threads counts as well: it decides how sums round.
    """
    code = [settings.checkpoint_code, torch.__version__, torch.get_num_threads(), *_ran()]
    digest = hashlib.sha256(json.dumps([values, code], sort_keys=True).encode())
    for tensor in tensors:
        digest.update(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _ran():
    """Code of the cells that this kernel has run, each once, without comments and parameters."""
    if "IPython" not in sys.modules:
        return []
    shell = sys.modules["IPython"].get_ipython()
    if shell is None:
        return []
    cells = list(dict.fromkeys(shell.user_ns["In"]))
    for i, cell in enumerate(cells):
        if cell.startswith("# Parameters\n"):  # by papermill, in place of the literals before it
            del cells[i - 1 : i + 1]
            break
    return [_without_comments(cell) for cell in cells]


@functools.cache
def _without_comments(cell):
    try:
        return ast.unparse(ast.parse(cell))
    except SyntaxError:
        return cell


def seen_by(*things):
    """What functions and values are and refer to: ([code, numbers and words], [tensors]).

    Both are for a `training_key`. Classes of a notebook and what their objects hold count with
    their methods. The code of functions that stand in other modules than the given ones is left
    out: the library's is known as a whole.
    """
    namespaces = [thing.__globals__ for thing in things if inspect.isfunction(thing)]
    namespaces.append(vars(sys.modules["__main__"]))
    values, tensors = [], []
    todo = list(things)
    done = set()
    for thing in todo:  # which grows
        if isinstance(thing, torch.Tensor):
            tensors.append(thing)
        elif isinstance(thing, np.ndarray) and thing.dtype.kind in "biuf":
            tensors.append(torch.tensor(thing))
        elif thing is None or isinstance(thing, bool | int | float | complex | str | np.generic):
            values.append(repr(thing))
        elif id(thing) not in done:
            done.add(id(thing))
            told, parts = _opened(thing, namespaces)
            values += told
            todo += parts
    return values, tensors


def _opened(thing, namespaces):
    """(name and code of a function or class, what it or a container refers to)."""
    if isinstance(thing, dict):
        return [], [*thing, *thing.values()]
    if isinstance(thing, list | tuple | range):
        return [], thing
    if isinstance(thing, functools.partial):
        return [], [thing.func, thing.args, thing.keywords]
    if inspect.ismethod(thing) or isinstance(thing, staticmethod | classmethod):
        return [], [thing.__func__]
    if isinstance(thing, property):
        return [], [thing.fget]
    if inspect.isclass(thing):
        return [thing.__qualname__], _parts(thing) if _of_notebook(thing) else []
    if inspect.isbuiltin(thing):
        return [thing.__qualname__], []
    if not inspect.isfunction(thing):
        return [], [type(thing), vars(thing)] if _of_notebook(type(thing)) else []
    found = inspect.getclosurevars(thing)
    told = [thing.__qualname__]
    parts = [thing.__defaults__, thing.__kwdefaults__, found.nonlocals]
    if any(thing.__globals__ is namespace for namespace in namespaces):
        told += _bytecode(thing.__code__)
        parts.append(found.globals)
    return told, parts


def _of_notebook(kind):
    """Whether a class is defined in the notebook, or in what else is run as a program."""
    return kind.__module__ == "__main__" and hasattr(kind, "__dict__")


def _parts(kind):
    """What a class is made of: classes before it, methods, and values of its own."""
    own = [
        value for name, value in vars(kind).items() if callable(value) or not name.startswith("__")
    ]
    return [*kind.__bases__, *own]


def _bytecode(code):
    """What a function does: instructions, names and constants, its own and inner functions'."""
    told = [code.co_code.hex(), *code.co_names]
    inner = []
    for constant in code.co_consts:
        if inspect.iscode(constant):
            inner += _bytecode(constant)
        elif isinstance(constant, frozenset):  # which has no order
            told.append(repr(sorted(constant, key=repr)))
        else:
            told.append(repr(constant))
    return told + inner


@contextlib.contextmanager
def deferred_interrupts():
    """Let SIGINT and SIGTERM wait until trainings inside have ended their step and saved.

    They stop by `stop_if_asked`. A second signal does not wait. In another thread than the main one
    nothing changes: signals go to the main one.
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
    """Raise KeyboardInterrupt where one waits; for between two steps, after the state is saved."""
    if _stop.is_set():
        raise KeyboardInterrupt
