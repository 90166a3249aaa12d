"""Forked kernels: as fresh as ordinary ones, and gone with whoever started them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager
from toys import SECONDS, wait_for

from overparam import warm

FORK = warm.KERNELS / "kernels" / "python3" / "fork.py"


@pytest.fixture(scope="module")
def variables():
    """Of a server that listens."""
    with warm.server() as found:
        wait_for(lambda: os.path.exists(found["OVERPARAM_WARM"]), "the server")
        yield found


@contextmanager
def kernel(folder, monkeypatch, variables):
    """A kernel started in a folder, as `ask(code)` that gives what the code prints."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("IPYTHONDIR", str(folder))
    manager = KernelManager(kernel_name="python3", transport="ipc", ip=str(folder / "kernel"))
    manager.start_kernel(cwd=str(folder), extra_arguments=["--log-level=50"])
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=SECONDS)

    def ask(code):
        printed = []

        def hook(message):
            content = message["content"]
            printed.append(content.get("text") or content.get("data", {}).get("text/plain", ""))

        reply = client.execute_interactive(code, output_hook=hook, timeout=SECONDS)["content"]
        return "".join(printed) if reply["status"] == "ok" else reply["ename"]

    try:
        yield manager, ask
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def gone(pid):
    deadline = time.monotonic() + SECONDS
    while Path(f"/proc/{pid}").exists() and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.05)


THREADS = (
    "import numpy, scipy.linalg, threadpoolctl, torch\n"
    "print(torch.get_num_threads(), {pool['num_threads'] for pool in threadpoolctl.threadpool_info()})"
)
PARENT = "import os; print(open(f'/proc/{os.getppid()}/cmdline').read().replace(chr(0), ' '))"


def test_a_kernel_is_forked_in_its_own_folder_with_its_own_variables(tmp_path, monkeypatch, variables):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("OF_THIS_TEST", "7")
    with kernel(tmp_path, monkeypatch, variables) as (_, ask):
        assert "overparam.warm.server" in ask(PARENT)
        assert ask("print(os.getcwd(), os.environ['OF_THIS_TEST'])").split() == [str(tmp_path), "7"]
        assert ask("import sys; print('torch' in sys.modules, 'overparam.nets' in sys.modules)") == "True False\n"
        assert ask(THREADS) == "2 {2}\n"


@pytest.mark.parametrize("threads", ["0", "1", "64"])
def test_a_thread_count_that_makes_no_sense_is_taken_as_in_an_ordinary_process(
    tmp_path, monkeypatch, variables, threads
):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    ordinary = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True)
    with kernel(tmp_path, monkeypatch, variables) as (_, ask):
        assert ask(THREADS) == ordinary.stdout


def test_each_kernel_is_fresh(tmp_path, monkeypatch, variables):
    for _ in range(2):
        with kernel(tmp_path, monkeypatch, variables) as (_, ask):
            assert ask("import torch; print('marked' in dir(torch)); torch.marked = 1") == "False\n"


def test_figures_are_shown(tmp_path, monkeypatch, variables):
    with kernel(tmp_path, monkeypatch, variables) as (_, ask):
        ask("import matplotlib.pyplot as plt")
        assert "Figure" in ask("figure = plt.figure()")  # at the end of a cell, as in an ordinary kernel
        assert "Figure" in ask("plt.plot([1, 2]); plt.show()")


def test_an_interrupt_reaches_the_kernel(tmp_path, monkeypatch, variables):
    with kernel(tmp_path, monkeypatch, variables) as (manager, ask):
        code = "import threading, time; threading.Timer(0.2, lambda: open('asleep', 'w')).start(); time.sleep(60)"
        with subprocess.Popen([sys.executable, "-c", WAIT, tmp_path / "asleep", str(manager.provisioner.pid)]):
            assert ask(code) == "KeyboardInterrupt"
        assert ask("print(2)") == "2\n"


WAIT = (
    "import os, signal, sys, time\n"
    "while not os.path.exists(sys.argv[1]): time.sleep(0.05)\n"
    "os.kill(int(sys.argv[2]), signal.SIGINT)"
)


def test_a_kernel_that_dies_is_seen_to_have_died(tmp_path, monkeypatch, variables):
    with kernel(tmp_path, monkeypatch, variables) as (manager, ask):
        os.kill(int(ask("import os; print(os.getpid())")), signal.SIGKILL)
        assert manager.provisioner.process.wait(SECONDS) == -signal.SIGKILL


def test_a_kernel_ends_with_its_stand_in(tmp_path, monkeypatch, variables):
    with kernel(tmp_path, monkeypatch, variables) as (manager, ask):
        pid = int(ask("import os; print(os.getpid())"))
        os.kill(manager.provisioner.pid, signal.SIGKILL)
        gone(pid)


def test_a_stand_in_ends_with_who_started_it(tmp_path, monkeypatch, variables):
    starter = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(60)"
    command = [sys.executable, "-I", "-S", FORK, "-f", "unused"]
    environment = {**os.environ, **variables, "OVERPARAM_WARM": str(tmp_path / "deaf")}
    listening = (
        "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n"
        "c, _ = s.accept(); c.sendall(b'1\\n'); print('asked', flush=True)\n"
        "while c.recv(4096): pass\nprint('closed', flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", listening, tmp_path / "deaf"], stdout=subprocess.PIPE, text=True
    ) as server:
        while not (tmp_path / "deaf").exists():
            time.sleep(0.05)
        with subprocess.Popen([sys.executable, "-c", starter, *map(str, command)], env=environment) as parent:
            assert server.stdout.readline() == "asked\n"
            parent.kill()
        assert server.stdout.readline() == "closed\n"


def test_a_stand_in_that_starts_after_its_starter_has_ended_ends(tmp_path, variables):
    with subprocess.Popen([sys.executable, "-c", ""]) as starter:
        starter.wait()
    environment = {**os.environ, **variables, "JPY_PARENT_PID": str(starter.pid)}
    command = [sys.executable, "-I", "-S", FORK, "-f", tmp_path / "unused"]
    assert subprocess.run(command, env=environment, timeout=SECONDS).returncode == 1


def test_a_stand_in_whose_process_has_ended_ends_quietly(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    address = str(tmp_path / "warm")
    environment = {**os.environ, "OVERPARAM_WARM": address}
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        command = [sys.executable, "-I", "-S", FORK, "-f", "unused"]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as stand_in:
            with server.accept()[0] as connection:
                head, streams, _, _ = socket.recv_fds(connection, 8, 3)
                connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
                for stream in streams:
                    os.close(stream)
                connection.sendall(f"{ended.pid}\n".encode())
                wait_for(lambda: catches(stand_in.pid, signal.SIGUSR1), "its handlers")
                stand_in.send_signal(signal.SIGUSR1)
            _, err = stand_in.communicate(timeout=SECONDS)
    assert (stand_in.returncode, err) == (1, "")


def catches(pid, number):
    (mask,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return int(mask, 16) >> (number - 1) & 1


def test_a_server_outlives_those_who_die_while_they_ask(tmp_path, monkeypatch, variables):
    task = json.dumps({"argv": ["-f", str(tmp_path / "unused")], "env": {}, "cwd": str(tmp_path)}).encode()
    size = len(task).to_bytes(8, "big")
    for said in (b"", size[:7], size, size + task[:-1], size + task):
        with socket.socket(socket.AF_UNIX) as asker:
            asker.connect(variables["OVERPARAM_WARM"])
            if said:
                socket.send_fds(asker, [said], [0, 1, 2])
    with kernel(tmp_path, monkeypatch, variables) as (_, ask):
        assert "overparam.warm.server" in ask(PARENT)


@pytest.mark.parametrize("address", [None, "/nobody/listens/here"])
def test_without_a_server_a_kernel_starts_in_the_ordinary_way(tmp_path, monkeypatch, variables, address):
    monkeypatch.delenv("OVERPARAM_WARM", raising=False)
    given = {"JUPYTER_PATH": variables["JUPYTER_PATH"], **({"OVERPARAM_WARM": address} if address else {})}
    with kernel(tmp_path, monkeypatch, given) as (_, ask):
        assert "overparam.warm.server" not in ask(PARENT)
        assert ask("import sys; print('torch' in sys.modules)") == "False\n"


SLOW = """
import os, sys, time
while not os.path.exists({go!r}):
    time.sleep(0.05)
sys.path.remove({here!r})
del sys.modules["torch"]
import torch
"""


def test_a_kernel_that_is_asked_for_while_the_server_imports_is_forked(tmp_path, monkeypatch):
    slow, go = tmp_path / "slow", tmp_path / "go"
    slow.mkdir()
    (slow / "torch.py").write_text(SLOW.format(go=str(go), here=str(slow)))
    monkeypatch.setenv("PYTHONPATH", str(slow))
    with warm.server() as found:
        wait_for(lambda: os.path.exists(found["OVERPARAM_WARM"]), "the server")
        threading.Timer(1, go.touch).start()
        with kernel(tmp_path, monkeypatch, found) as (_, ask):
            assert "overparam.warm.server" in ask(PARENT)


def test_where_the_server_dies_before_it_answers_a_kernel_starts_in_the_ordinary_way(tmp_path, monkeypatch, variables):
    address = str(tmp_path / "warm")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        with kernel(tmp_path, monkeypatch, variables | {"OVERPARAM_WARM": address}) as (_, ask):
            assert "overparam.warm.server" not in ask(PARENT)
            assert ask("import sys; print('torch' in sys.modules)") == "False\n"


def test_a_stand_in_that_is_interrupted_while_it_waits_ends_quietly(tmp_path):
    address = str(tmp_path / "warm")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        command = [sys.executable, "-I", "-S", FORK, "-f", "unused"]
        environment = {**os.environ, "OVERPARAM_WARM": address}
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as stand_in:
            connection, _ = server.accept()
            stand_in.send_signal(signal.SIGINT)
            stand_in.wait(SECONDS)
            connection.close()  # which holds the other's streams until they are received
            _, err = stand_in.communicate(timeout=SECONDS)
    assert (stand_in.returncode, err) == (-signal.SIGINT, "")


def test_a_server_ends_with_its_command():
    code = "import os; print(os.environ['OVERPARAM_WARM'], os.environ['JUPYTER_PATH'])"
    ran = subprocess.run(
        [sys.executable, "-m", "overparam.warm", sys.executable, "-c", f"{code}; raise SystemExit(3)"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 3
    assert not os.path.exists(ran.stdout.split()[0])
