"""Checkpoints of long trainings: a safetensors file per run, written atomically, never loaded where it does not fit."""

import hashlib
import json
import logging
import os
import time
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

log = logging.getLogger("overparam")


class Checkpoint:
    """Checkpoints of the runs of one training, as `<stem>-<run>.safetensors`.

    stem: path without suffix; every: seconds between two saves of a run (default: OVERPARAM_CHECKPOINT_SECONDS, or 30).
    A finished run keeps its curve and final logs alone. A file that is truncated, or belongs to another training, is
    set aside as `<name>.refused` with a warning.
    """

    def __init__(self, stem, every=None):
        self.stem, self._saved = Path(stem), {}
        self.every = float(os.environ.get("OVERPARAM_CHECKPOINT_SECONDS", 30)) if every is None else every

    def path(self, run):
        return self.stem.with_name(f"{self.stem.name}-{'all' if run is None else run}.safetensors")

    def load(self, run, key):
        """(step, {name: tensor}) of a run, or (0, {}) where there is none that fits; step -1 for a finished run."""
        path = self.path(run)
        self._saved[run] = time.monotonic()
        if not path.exists():
            return 0, {}
        try:
            with safe_open(path, framework="pt") as file:
                meta = file.metadata() or {}
                if meta.get("key") == key:
                    return int(meta["step"]), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                reason = "it belongs to another training"
        except (SafetensorError, OSError, ValueError, KeyError) as error:
            reason = str(error)
        refused = path.with_suffix(".safetensors.refused")
        os.replace(path, refused)
        log.warning("checkpoint %s refused (%s), set aside as %s; starting anew", path.name, reason, refused.name)
        return 0, {}

    def due(self, run):
        return time.monotonic() - self._saved[run] >= self.every

    def save(self, run, key, step, tensors):
        """Write a run's checkpoint under a temporary name, flush it to disk, and rename it."""
        path = self.path(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        tensors = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
        try:
            safetensors.torch.save_file(tensors, temporary, metadata={"key": key, "step": str(step)})
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        self._saved[run] = time.monotonic()


def training_key(settings, tensors):
    """A digest of everything that a run's course depends on: settings (JSON) and tensors (shape, dtype, bytes)."""
    digest = hashlib.sha256(json.dumps([settings, torch.__version__], sort_keys=True).encode())
    for t in tensors:
        digest.update(f"{tuple(t.shape)}{t.dtype}".encode())
        digest.update(t.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()
