"""The warm server: imports the libraries, then forks a process for every request that `fork.py` sends.

It listens before it imports: whoever asks early waits for less time than his own imports would take.
"""

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import threading

# Not the inline backend of matplotlib: on import it joins the kernel that it is in.
LIBRARIES = (
    "torch", "torch.func", "torch.utils.flop_counter", "numpy", "scipy.linalg", "scipy.optimize", "scipy.special",
    "scipy.stats", "scipy.sparse.linalg", "sklearn.decomposition", "matplotlib.pyplot", "seaborn", "PIL.Image",
    "safetensors.torch", "tqdm", "pooch", "ipykernel.kernelapp",
)  # fmt: skip


class Server:
    """Listens at a socket, forks, and tells each connection the pid and the end of its process."""

    def __init__(self, address):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(address)
        self.listener.listen(64)
        self.connections = {}  # pid -> connection

    def serve(self):
        """Until whoever started us closes our standard input."""
        wake, woken = socket.socketpair()
        for end in (wake, woken):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno())
        with selectors.DefaultSelector() as selector:
            for source in (self.listener, woken, sys.stdin):
                selector.register(source, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if sys.stdin in ready:
                    return
                if woken in ready:
                    woken.recv(4096)
                    self.reap()
                if self.listener in ready:
                    self.answer(self.listener.accept()[0])

    def reap(self):
        """Tell the connections of processes that have ended how they ended."""
        for pid in list(self.connections):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                connection = self.connections.pop(pid)
                try:
                    connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
                except OSError:  # nobody is left to hear it
                    continue
                finally:
                    connection.close()

    def answer(self, connection):
        """Fork the process that a connection asks for; none where the asker has gone before it could say so."""
        head, streams, _, _ = socket.recv_fds(connection, 8, 3)
        with connection.makefile("rb") as content:
            asked = content.read(size := int.from_bytes(head, "big"))
        pid = os.fork() if len(head) == 8 and len(asked) == size else None
        if pid == 0:
            self.listener.close()
            for other in self.connections.values():
                other.close()
            become(json.loads(asked), streams, connection)
        for stream in streams:
            os.close(stream)
        if pid is None:
            connection.close()
            return
        self.connections[pid] = connection
        with contextlib.suppress(OSError):  # the process itself notices that nobody is there
            connection.sendall(f"{pid}\n".encode())


def become(task, streams, connection):
    """Run a task in this process, which was just forked, with the streams, variables and folder of whoever asked."""
    code = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environ.clear()
        os.environ.update(task["env"])
        os.chdir(task["cwd"])
        threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
        for name in [name for name in sys.modules if name.partition(".")[0] == "overparam"]:
            del sys.modules[name]  # this server's own, which may have changed on disk since it started
        _set_threads(task["env"])
        code = _run(task["argv"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _end_with(connection):
    """Whoever asked for this process is gone: so is its use."""
    while connection.recv(1):
        continue
    os._exit(1)


def _set_threads(env):
    import threadpoolctl
    import torch

    threads = env.get("OMP_NUM_THREADS", "")  # read from the environment only while the libraries are imported
    count = min(int(threads) if threads.isdigit() else 0, os.cpu_count()) or os.cpu_count()
    torch.set_num_threads(count)
    threadpoolctl.threadpool_limits(count)  # of numpy's and scipy's libraries


def _run(argv):
    from ipykernel.kernelapp import IPKernelApp

    sys.argv = ["ipykernel_launcher", *argv]
    IPKernelApp.launch_instance(argv, parent_handle=os.getppid())
    return 0


if __name__ == "__main__":
    server = Server(sys.argv[1])
    for library in LIBRARIES:
        importlib.import_module(library)
    gc.freeze()  # so that collections do not touch, and so copy, the pages that all processes share
    server.serve()
