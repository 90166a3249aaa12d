"""Kernels that begin with the libraries imported: forked from one process that has done so once.

`server` starts that process. A kernel's command is this file as a program: it asks the server for
a fork, gives it its variables and streams, passes signals on, and stays as long as the fork does.
Only third-party libraries are imported beforehand, so that every notebook sees today's sources.
"""

import contextlib
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

KERNEL = Path(__file__).with_name("kernel.py")
# What most pages import. Not the inline backend of matplotlib: it joins the kernel it is in.
LIBRARIES = ("torch", "scipy.stats", "pandas", "seaborn", "ipykernel.kernelapp")
ADDRESS = "OVERPARAM_PREPARED"  # the variable that tells a batch's runs where to ask
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@contextlib.contextmanager
def server(folder):
    """Yields the address of a server of kernels with one thread, which runs as long as the block.

    folder: where its socket and matplotlib's settings go, which are empty.
    """
    settings = Path(folder, "matplotlibrc")
    settings.touch()
    read_by_imports = dict.fromkeys(THREADS, "1") | {
        "PYTHONHASHSEED": "0",
        "MATPLOTLIBRC": str(settings),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }
    address = str(Path(folder, "prepared"))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()  # who asks during the imports waits less long than for his own
    process = subprocess.Popen(
        [sys.executable, "-P", __file__, "serve", str(listener.fileno())],
        stdin=subprocess.PIPE,  # its end tells the server that we are gone
        pass_fds=[listener.fileno()],
        start_new_session=True,  # an interrupt of a terminal is not for it
        env=os.environ | read_by_imports,
    )
    listener.close()
    with process:
        try:
            yield address
        finally:
            process.kill()


def command(address):
    """The first words of a command that starts a kernel by the server at an address."""
    return [sys.executable, "-I", "-S", __file__, "ask", address]


def serve(listener):
    """Fork a kernel for everyone who asks, until whoever started this process is gone."""
    for library in LIBRARIES:
        importlib.import_module(library)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel of the machine buries the forks
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        connection, _ = listener.accept()
        asked, streams, _, _ = socket.recv_fds(connection, 2**20, 3)
        if os.fork() == 0:
            listener.close()
            become_kernel(asked, streams, connection)
        for stream in streams:
            os.close(stream)
        connection.close()  # the fork has it still, and closes it when it ends


def become_kernel(asked, streams, connection):
    """Be in this process, a fork, the kernel that was asked for; does not return."""
    code = 1
    try:
        asked = json.loads(asked)  # nothing, where who asked is gone already
        os.setsid()  # an interrupt of a terminal is for who asked, and is passed on
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update(asked["variables"])
        os.chdir(asked["folder"])
        connection.sendall(f"{os.getpid()}\n".encode())
        threading.Thread(target=_end_with, args=[connection], daemon=True).start()
        sys.argv = [str(KERNEL), *asked["arguments"]]
        runpy.run_path(str(KERNEL), run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # the server's own way out is not the fork's


def _end_with(connection):
    """Ends this process where whoever asked for it is gone."""
    while connection.recv(1):
        continue
    os._exit(1)


def ask(address, arguments):
    """Be a kernel by another process: start it, pass signals on to it, end when it ends."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
    except OSError:  # its server is gone: be an ordinary kernel
        os.execv(sys.executable, [sys.executable, "-P", str(KERNEL), *arguments])
    asked = {"arguments": arguments, "variables": dict(os.environ), "folder": os.getcwd()}
    socket.send_fds(connection, [json.dumps(asked).encode()], [0, 1, 2])
    told = connection.makefile()
    kernel = int(told.readline())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.kill(kernel, number))
    told.read()  # until the kernel's end of the connection is closed


if __name__ == "__main__":
    role, where, *arguments = sys.argv[1:]
    if role == "serve":
        serve(socket.socket(fileno=int(where)))
    else:
        ask(where, arguments)
