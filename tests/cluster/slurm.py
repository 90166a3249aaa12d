"""A SLURM of one node on this machine, from the distribution's packages, without accounting.

Needs root, and the packages slurm-wlm and munge.
"""

import os
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

import psutil

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")
SYSTEM = Path("/etc/slurm/slurm.conf")  # which programs inside jobs read
CONFIGURATION = """
ClusterName=toy
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory={memory} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def lacking():
    """Why no SLURM can be started here, or an empty text."""
    absent = [name for name in PROGRAMS if not shutil.which(name, path=_path())]
    if absent:
        return f"no {', '.join(absent)} here: install Debian's slurm-wlm and munge"
    if os.getuid():
        return "only root can start a SLURM"
    if SYSTEM.exists() or SYSTEM.is_symlink():
        return f"this machine has a SLURM of its own: {SYSTEM}"
    return ""


class Slurm:
    """A controller and a node, until `stop`; all its files lie in `folder`."""

    def __init__(self, folder):
        self.folder = folder
        self._authenticate()
        for name in ("state", "spool"):
            (folder / name).mkdir()
        settings = {"folder": folder, "host": socket.gethostname().partition(".")[0]}
        settings |= {"ports": _free_ports(2)}
        settings |= {"memory": psutil.virtual_memory().total // 2**20}
        (folder / "slurm.conf").write_text(CONFIGURATION.format(**settings))
        SYSTEM.parent.mkdir(exist_ok=True)
        SYSTEM.symlink_to(folder / "slurm.conf")
        try:
            _run("slurmctld", "-f", folder / "slurm.conf")
            _run("slurmd", "-f", folder / "slurm.conf", "-N", settings["host"])
            self._wait_until_idle()
        except BaseException:
            self.stop()
            raise

    def _authenticate(self):
        """Start the service that signs messages, with a key and a socket of its own."""
        own = self.folder / "munge"
        own.mkdir()
        (own / "key").write_bytes(secrets.token_bytes(1024))
        (own / "key").chmod(0o400)
        for path in (own, own / "key"):
            shutil.chown(path, "munge")
        own.chmod(0o711)
        files = [f"--{name}-file={own}/{name}" for name in ("key", "pid", "log", "seed")]
        as_munge = ["runuser", "-u", "munge", "--", shutil.which("munged", path=_path())]
        _run(*as_munge, "--force", f"--socket={own}/socket", *files)

    def _wait_until_idle(self):
        deadline = time.monotonic() + 60
        while "idle" not in _run("sinfo", "--noheader", "-o", "%T"):
            assert time.monotonic() < deadline, (self.folder / "slurmd.log").read_text()
            time.sleep(0.2)

    def jobs(self):
        """{id: (comment, state)} of jobs that the controller remembers."""
        lines = _run("squeue", "--noheader", "--states=all", "-o", "%i|%k|%T").splitlines()
        rows = [line.split("|") for line in lines]
        return {number: (comment, state) for number, comment, state in rows}

    def about(self, number):
        """What the controller says of a job: {key: value}."""
        words = _run("scontrol", "show", "job", "--oneliner", number).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def clear(self):
        """Cancel what is left of an earlier test."""
        _run("scancel", "--user=root")

    def stop(self):
        subprocess.run(["scontrol", "shutdown"], capture_output=True)
        SYSTEM.unlink(missing_ok=True)
        for name in ("slurmctld.pid", "slurmd.pid", "munge/pid"):
            file = self.folder / name
            if file.exists() and psutil.pid_exists(number := int(file.read_text())):
                psutil.Process(number).terminate()


def _run(*words):
    """What a program says. Raises AssertionError with its own words where it fails."""
    environment = {**os.environ, "PATH": _path()}
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, f"{words[0]}: {done.stderr or done.stdout}"
    return done.stdout


def _path():
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
