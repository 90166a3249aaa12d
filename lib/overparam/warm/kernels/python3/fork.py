"""Stand in for a process that the warm server forks: pass it signals, end as it ends.

    python -I -S fork.py -f CONNECTION_FILE ...

Where no server listens at OVERPARAM_WARM, or none answers, an ordinary kernel takes this process's place. Needs no
package, so that it starts in milliseconds.
"""

import contextlib
import json
import os
import signal
import socket
import sys

SECONDS = 1.0  # between two looks at whether whoever started this is still there


def ordinary(arguments):
    os.execv(sys.executable, [sys.executable, "-m", "ipykernel_launcher", *arguments])


def request(arguments):
    """(connection, pid): of the server, which has had our streams, and of the process that it forked for us."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["OVERPARAM_WARM"])
    task = {"argv": arguments, "env": dict(os.environ), "cwd": os.getcwd()}
    content = json.dumps(task).encode()
    socket.send_fds(connection, [len(content).to_bytes(8, "big")], [0, 1, 2])
    connection.sendall(content)
    line = connection.makefile("r").readline()
    if not line:
        raise ConnectionResetError
    return connection, int(line)


def follow(connection, pid, parent):
    """The exit code of the forked process, negative for a signal; 1 where the server, or the parent, was lost."""

    def pass_on(number, _frame):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, pass_on)
    connection.settimeout(SECONDS)
    while os.getppid() == parent:
        try:
            answer = connection.recv(64)
        except TimeoutError:
            continue
        return int(answer or 1)
    return 1  # the end of this process closes the connection, which ends the forked one


def main(arguments):
    parent = int(os.environ.get("JPY_PARENT_PID") or os.getppid())  # the latter may be gone already
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback of a wait that is cut short
    try:
        connection, pid = request(arguments)
    except (KeyError, OSError):
        ordinary(arguments)
    try:
        code = follow(connection, pid, parent)
    except ConnectionResetError:
        code = 1
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
