"""Whom a kill hits: the kernel alone, or all processes of the command that was started at once."""

import contextlib
import time

import psutil


def tree(process):
    """All processes of a started command (a Popen), itself first."""
    try:
        command = psutil.Process(process.pid)
        return [command, *command.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill(processes, victim):
    """SIGKILL the "kernel", or "everything", in a `tree`; say how many it hit."""
    hit = [process for process in processes if victim == "everything" or _is_kernel(process)]
    for process in hit:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return len(hit)


def _is_kernel(process):
    with contextlib.suppress(psutil.NoSuchProcess):
        return "ipykernel_launcher" in process.cmdline()
    return False


def survivors(processes, seconds):
    """Those that have not ended after so many seconds; a zombie has."""
    deadline = time.monotonic() + seconds
    while alive := [process for process in processes if _alive(process)]:
        if time.monotonic() > deadline:
            return alive
        time.sleep(0.1)
    return []


def _alive(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
