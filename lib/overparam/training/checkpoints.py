"""Checkpoints of long trainings: a safetensors file per run, written atomically, never loaded where it does not fit."""

import contextlib
import hashlib
import inspect
import json
import logging
import os
import signal
import threading
import time
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch.utils._pytree import tree_leaves

from ..errors import ParameterError

SHARE = 30  # a save waits until at least so many times what the last one took has passed
LARGEST = 2**20  # bytes of a finished run that is kept among others; networks are not
log = logging.getLogger("overparam")
_stop = threading.Event()


class Checkpoint:
    """Checkpoints of the runs of one training: open states as `<stem>-<run>.safetensors`.

    stem: path without suffix; every: seconds between two saves of a run (default: OVERPARAM_CHECKPOINT_SECONDS, or 30),
    and longer where a save takes long; 0: after every step. finished: the folder (`claim.runs`) where finished runs,
    their curves and logs alone, are kept as `<stem>-<key>.safetensors` by what they were computed from, for later
    sittings and other machines; without one they lie where the open states do.
    A file that is damaged, or belongs to another training, is set aside as `<name>.refused` with a warning.
    """

    def __init__(self, stem, every=None, finished=None):
        self.stem, self._saved, self._took = Path(stem), {}, 0.0
        given = os.environ.get("OVERPARAM_CHECKPOINT_SECONDS", "30") if every is None else every
        try:
            self.every = float(given)
        except ValueError as error:
            what = f"OVERPARAM_CHECKPOINT_SECONDS must be a number of seconds, not {given!r}"
            raise ParameterError(what) from error
        self.finished = finished

    def path(self, run):
        return self.stem.with_name(f"{self.stem.name}-{'all' if run is None else run}.safetensors")

    def load(self, run, key):
        """(step, {name: tensor}) of a run, or (0, {}) where there is none that fits; step -1 for a finished run."""
        self._saved[run] = time.monotonic()
        for path in [self._kept(key), self.path(run)] if self.finished else [self.path(run)]:
            if path.exists():
                try:
                    return _read(path, key)
                except (SafetensorError, OSError, ValueError, KeyError) as error:
                    refused = path.replace(path.with_suffix(".safetensors.refused")).name
                    log.warning("checkpoint %s refused (%s), set aside as %s; starting anew", path.name, error, refused)
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


def training_key(settings, tensors):
    """A digest of everything that a run's course depends on: settings (JSON), tensors (shape, dtype, bytes), and code.

    The code is known by OVERPARAM_FINGERPRINT_CODE, where that is set, and by torch's version.
    """
    code = os.environ.get("OVERPARAM_FINGERPRINT_CODE", "")
    digest = hashlib.sha256(json.dumps([settings, torch.__version__, code], sort_keys=True).encode())
    for t in tensors:
        digest.update(f"{tuple(t.shape)}{t.dtype}".encode())
        digest.update(t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def seen_by(functions):
    """(code, numbers and words, tensors) of functions and what they refer to, for a `training_key`."""
    settings, tensors = [], []
    for function in filter(inspect.isfunction, functions):
        settings += _bytecode(function.__code__)
        found = inspect.getclosurevars(function)
        values = [value for _, value in sorted({**found.nonlocals, **found.globals}.items())]
        settings += [value for value in values if isinstance(value, int | float | str)]
        tensors += [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]
    return settings, tensors


def _bytecode(code):
    inner = [part for const in code.co_consts if inspect.iscode(const) for part in _bytecode(const)]
    plain = [const for const in code.co_consts if not inspect.iscode(const)]
    constants = [repr(sorted(const, key=repr) if isinstance(const, frozenset) else const) for const in plain]
    return [code.co_code.hex(), *code.co_names, *constants, *inner]


@contextlib.contextmanager
def deferred_interrupts():
    """Let SIGINT and SIGTERM wait until the trainings inside have ended their step and saved: see `stop_if_asked`.

    A second signal does not wait. In another thread than the main one nothing changes: signals go to the main one.
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
    """Raise KeyboardInterrupt where an interrupt waits. To be called between two steps, after the state is saved."""
    if _stop.is_set():
        raise KeyboardInterrupt
