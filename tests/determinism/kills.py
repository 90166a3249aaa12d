"""Whom a kill hits: the kernel alone, the command that was started, or all processes of it at once."""

import contextlib
import time

import psutil

VICTIMS = ("kernel", "command", "everything")


def tree(process):
    """All processes of a started command (a Popen), itself first."""
    try:
        command = psutil.Process(process.pid)
        return [command, *command.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill(processes, victim):
    """SIGKILL a victim of VICTIMS in a `tree`, the command itself where there is no kernel yet; say whom it hit."""
    kernels = [process for process in processes if _is_kernel(process)][:1]
    if victim == "kernel" and not kernels:
        victim = "command"
    hit = {"kernel": kernels, "command": processes[:1], "everything": processes}[victim]
    for process in hit:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return victim


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
