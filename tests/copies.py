"""A copy of the project in which the command line runs as for a user."""

import os
import shutil
import signal
import subprocess
import sys

import psutil

from ledger.paths import ROOT


class Copy:
    """The project's code under `root`, with figures and logs of its own.

    `run(*words)` is the command line.
    """

    def __init__(self, root, seconds=120, **environment):
        self.root, self.seconds = root, seconds
        self.figures = root / "figures"
        self.logs = root / "logs"
        self.notebooks = root / "notebooks"
        shutil.copytree(
            ROOT / "lib", root / "lib", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
        shutil.copy(ROOT / "Snakefile", root)
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("OVERPARAM")
        }
        own = {"PYTHONPATH": str(root / "lib"), "OMP_NUM_THREADS": "1", "COLUMNS": "400"}
        own["PYTHONDONTWRITEBYTECODE"] = ""  # as for most users: old bytecode lies beside sources
        self.environment = inherited | own | environment

    def start(self, *words, cwd=".", stdout=subprocess.PIPE, stderr=subprocess.PIPE, **environment):
        return subprocess.Popen(
            [sys.executable, "-m", "ledger.cli", *words],
            cwd=self.root / cwd,
            stdout=stdout,
            stderr=stderr,
            env=self.environment | environment,
            text=True,
            preexec_fn=_hears_of_hangups,
        )

    def run(self, *words, **environment):
        """(exit code, stdout, stderr) of a command."""
        with self.start(*words, **environment) as process:
            try:
                out, err = process.communicate(timeout=self.seconds)
            except subprocess.TimeoutExpired as error:
                alive = [
                    (other.pid, other.ppid(), other.status(), other.cmdline())
                    for other in self.processes()
                ]
                process.kill()
                raise AssertionError(f"it did not end, nor did {alive}") from error
        return process.returncode, out, err

    def processes(self):
        """All that live of what was started in this copy, whoever their parents are now."""
        return [process for process in psutil.process_iter() if self._owns(process)]

    def _owns(self, process):
        try:
            return process.environ().get("PYTHONPATH") == self.environment["PYTHONPATH"]
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    def left(self):
        """Files that only an attempt under way should have."""
        folders = [self.figures, self.logs, self.root / "data"]
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        under_way = (".tmp", ".part", ".safetensors")
        return [
            file
            for file in files
            if file.suffix != ".lock"
            and ".snakemake" not in file.parts  # its own records of what it made
            and (file.suffix in under_way or "/." in str(file))
        ]


def _hears_of_hangups():
    """As a command in a terminal does; under nohup the tests would hand on that it does not."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
