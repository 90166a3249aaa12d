"""A GPU of its own for each job of a machine without a scheduler.

    python -m overparam.run.gpu -m MODULE ...

takes a GPU that no other such process has, waiting where there is none, and becomes `python -m MODULE ...` on it. The
GPU is free again when that process ends, however it ends. SLURM assigns GPUs itself, and is left to it.
"""

import fcntl
import os
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 1.0  # between two looks for a free one


def visible():
    """Names of the GPUs that may be used: what CUDA_VISIBLE_DEVICES says, or all by their numbers."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


def taken(name):
    """A descriptor that holds the GPU until it is closed, or None where another process holds it."""
    path = Path(tempfile.gettempdir()) / f"overparam-{os.getuid()}-gpu-{name}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def take(names):
    """(name, descriptor) of the first GPU that is free, as soon as one is."""
    while True:
        for name in names:
            if (descriptor := taken(name)) is not None:
                return name, descriptor
        time.sleep(SECONDS)


def main(arguments):
    """Take a GPU and become `python *arguments`, which holds it by an open file. Without any GPU it says so itself."""
    if "SLURM_JOB_ID" not in os.environ and (names := visible()):
        os.environ["CUDA_VISIBLE_DEVICES"], descriptor = take(names)
        os.set_inheritable(descriptor, True)  # kept over exec; the process's own children do not get it
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
