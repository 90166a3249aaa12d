"""Prepared kernels: forks that are like ordinary kernels, and that end with whoever asked."""

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

from ledger import prepared, runner

VARIABLES = ("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "MATPLOTLIBRC", "PYTHONHASHSEED")
MODULES = "import sys; print(sorted({'overparam', 'ledger', 'torch'} & {*sys.modules}))"


@pytest.fixture
def place(monkeypatch):
    """A folder in which a prepared kernel is registered, with its server."""
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
    folder = Path(tempfile.mkdtemp())  # a short path, for sockets
    runner.isolate(folder)
    with prepared.server(folder) as address:
        runner.start_kernels_by(prepared.command(address), folder)
        yield folder
    shutil.rmtree(folder)


def printed(client, code):
    """What a piece of code prints in a kernel, or the name of its error."""
    said = []

    def hear(message):
        content = message["content"]
        said.append(content.get("text") or content.get("ename") or "")

    client.execute_interactive(code, output_hook=hear, timeout=120)
    return "".join(said).strip()


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def ends(pid, seconds=20):
    """Whether a process ends within so many seconds."""
    until = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_running(pid)


def test_a_prepared_kernel_is_a_kernel_of_its_own(place, tmp_path, monkeypatch):
    monkeypatch.setenv("OVERPARAM_OF_THE_ASKER", "heard")
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    try:
        # The libraries are there, and nothing of ours is: it comes from today's sources.
        assert printed(client, MODULES) == "['torch']"
        assert printed(client, "import os; print(os.environ['OVERPARAM_OF_THE_ASKER'])") == "heard"
        assert printed(client, "print(os.getcwd())") == str(tmp_path)
        own = printed(client, "import ledger.paths as p; print(type(p.__loader__).__name__)")
        assert own == "Source"
        fork = int(printed(client, "print(os.getpid())"))
        assert fork != manager.provisioner.process.pid
        client.execute("import time; time.sleep(60)")
        time.sleep(1)
        manager.interrupt_kernel()  # reaches the fork
        assert client.get_shell_msg(timeout=20)["content"]["ename"] == "KeyboardInterrupt"
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
    assert ends(fork)


def test_the_fork_ends_with_who_asked_for_it(place):
    manager, client = start_new_kernel(kernel_name="python3")
    fork = int(printed(client, "import os; print(os.getpid())"))
    client.stop_channels()
    os.kill(manager.provisioner.process.pid, signal.SIGKILL)
    assert ends(fork)
    manager.shutdown_kernel(now=True)


def test_without_its_server_it_is_an_ordinary_kernel(place):
    runner.start_kernels_by(prepared.command(str(place / "nobody")), place)
    manager, client = start_new_kernel(kernel_name="python3")
    assert printed(client, MODULES) == "[]"
    client.stop_channels()
    manager.shutdown_kernel()
