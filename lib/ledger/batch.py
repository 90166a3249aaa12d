"""Run the batch: many notebooks side by side through Snakemake, on this machine or as jobs of a
cluster.
"""

import argparse
import contextlib
import getpass
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from overparam import memory
from overparam.errors import ParameterError

from . import paths, prepared, registry
from .errors import RunFailed
from .runner import PATIENCE, within_limits, writable

KILLED = (
    "its job was killed (for lack of memory or time?) or could not begin; run again, and it "
    "goes on where it was"
)
# Snakemake and its jobs end with the process that holds the other end of this shell's standard
# input, however it ends.
TIED = 'exec 3<&0; (cat <&3; kill -s KILL 0) & exec "$@" 3<&- </dev/null'


def run(profile, stems, cores, extra, on_event):
    """Run notebooks side by side through Snakemake.

    Here, or as jobs of a cluster where `extra` names its executor.

    cores: CPU cores, or jobs at once on a cluster (None: all); extra: further arguments for
    Snakemake.
    `on_event` gets how each notebook ended, {claim, verdict or error, seconds}, and other lines as
    {text}.
    Returns the notebooks without a verdict. An interrupt stops all jobs; finished notebooks are
    kept.
    """
    logs = {stem: paths.LOGS / "ended" / profile / f"{stem}.json" for stem in stems}
    within_limits()
    writable(paths.FIGURES / profile)
    writable(paths.LOGS)
    for log in logs.values():
        log.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(paths.ROOT / "Snakefile"),
        "--directory",
        str(paths.LOGS),
        "--keep-going",
        "--nolock",
        "--rerun-incomplete",
        "--workflow-profile",
        "none",
        "--forcerun",
        "notebook",
        "--config",
        f"profile={profile}",
        f"claims={','.join(stems)}",
        *_where(extra, profile, stems, cores),
        *extra,
    ]
    # A profile of the user's for all workflows could change threads, or keep jobs from running.
    inherited = {name: value for name, value in os.environ.items() if name != "SNAKEMAKE_PROFILE"}
    with _prepared(profile, stems, extra) as variables:
        told, code = _watched(command, inherited | _home() | variables, logs, on_event)
    unmade = [stem for stem in stems if "verdict" not in told.get(stem, {})]
    if code == 0:
        if unmade and not {"--dry-run", "--dryrun", "-n"} & set(extra):
            raise RunFailed(
                f"Snakemake ended well and has not run {', '.join(unmade[:3])}"
                f"{' and others' if len(unmade) > 3 else ''}: was it told not to, after `--`?"
            )
        return []
    if not any(log.exists() for log in logs.values()):
        raise RunFailed(
            "Snakemake could start no notebook; `--quiet host` after `--` shows its messages"
        )
    for stem in logs.keys() - told.keys():
        killed = {"claim": stem, "error": f"{stem}: {KILLED}", "seconds": 0}
        on_event(killed if logs[stem].exists() else {"text": f"{stem} was not begun"})
    return unmade


@contextlib.contextmanager
def _prepared(profile, stems, extra):
    """Yields the variables by which a batch's runs on this machine find prepared kernels.

    There are none where fewer than two notebooks have one thread, or jobs go to a cluster.
    """
    threads = [registry.size_of(stem, profile).resources["threads"] for stem in stems]
    if threads.count(1) < 2 or _executor(extra) != "local":
        yield {}
        return
    with (
        tempfile.TemporaryDirectory(prefix="overparam-", dir=paths.for_sockets()) as folder,
        prepared.server(folder) as address,
    ):
        yield {prepared.ADDRESS: address}


def _watched(command, variables, logs, on_event):
    """Run Snakemake to its end and hand on what it and its jobs say.

    Returns ({claim: how it ended}, Snakemake's exit code).
    """
    process = subprocess.Popen(
        ["sh", "-c", TIED, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=variables,
    )
    told, stopped = {}, threading.Event()

    def pass_on():
        for line in process.stdout:
            if not stopped.is_set():
                on_event({"text": line.rstrip()})

    said = threading.Thread(target=pass_on, daemon=True)
    said.start()
    try:
        while process.poll() is None:
            time.sleep(0.2)
            _tell(logs, told, on_event)
    except BaseException:
        stopped.set()  # what processes say of an interrupt is nothing for a reader
        _stop(process)
        raise
    process.stdin.close()  # which ends its watcher
    said.join()
    _tell(logs, told, on_event)
    return told, process.returncode


def machine_memory(resources):
    """MB of the machine that a notebook takes, of the resources that are registered of it.

    What a notebook declares is its tensors. On a GPU these are not in the memory of the machine,
    but copies of them are: data on their way, checkpoints. The rest is for the processes
    themselves, of which CUDA makes large ones.
    """
    tensors = resources["memory_mb"]
    return 8000 + tensors // 2 if resources.get("gpu") else 2000 + tensors


def _where(extra, profile, stems, cores):
    """Snakemake's arguments for the place.

    This machine's cores, or a cluster that may write to a slow file system.
    """
    name = _executor(extra)
    if name == "local":
        usable = cores or len(os.sched_getaffinity(0))
        declared = [machine_memory(registry.size_of(stem, profile).resources) for stem in stems]
        # One notebook may always begin; it says itself where memory does not suffice.
        megabytes = max([memory.budget() // 2**20, *declared])
        resources = ["gpu=1", f"mem_mb={megabytes}"]
        return ["--cores", str(usable), "--resources", *resources, "--quiet", "all"]
    if not importlib.util.find_spec(f"snakemake_executor_plugin_{name.replace('-', '_')}"):
        raise ParameterError(
            f"no executor {name!r} here; for SLURM: pip install -e '.[slurm]' in this environment"
        )
    return [
        *(_status_command(extra) if name == "slurm" else []),
        "--jobs",
        str(cores or len(stems)),
        "--retries",
        "3",
        "--latency-wait",
        "60",
        "--quiet",
        "host",
        "reason",
    ]


def _executor(extra):
    """The name of Snakemake's executor that its further arguments ask for."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--executor", "-e", default="local")
    return parser.parse_known_args(list(extra))[0].executor


def _status_command(extra):
    """How the states of jobs are asked for: the plug-in's `sacct` needs accounting.

    Where the controller keeps none, or cannot be asked, `squeue` knows them.
    """
    if any(word.startswith("--slurm-status-command") for word in extra):
        return []
    try:
        asked = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True)
    except OSError:
        return []
    accounting = re.search(r"^AccountingStorageType\s*=\s*(\S+)", asked.stdout, re.MULTILINE)
    # without a database it is accounting_storage/none, or with a newer SLURM (null)
    if accounting and accounting[1].endswith(("/slurmdbd", "/mysql")):
        return []
    return ["--slurm-status-command", "squeue"]


def _home():
    """Another home and name for Snakemake.

    And another place for its cache, where there is none or it is read-only.
    """
    try:
        getpass.getuser()
        writable(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"))
    except (RunFailed, RuntimeError, KeyError, OSError):
        return {
            "XDG_CACHE_HOME": str(paths.LOGS / "cache"),
            "HOME": str(paths.LOGS),
            "LOGNAME": str(os.getuid()),
        }
    return {}


def _tell(logs, told, on_event):
    """Hand on what the jobs have said of their ends since the last look, and note it in `told`."""
    for stem, log in logs.items():
        try:
            event = json.loads(log.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # not begun, or not ended
            continue
        known = told.get(stem, {})
        if any(
            event.get(key) != known.get(key) for key in ("verdict", "error")
        ):  # not each trial that fails alike
            told[stem] = event
            on_event(event)


def _stop(process):
    """Interrupt Snakemake and its jobs, which cancels those of a cluster as well.

    After a while end them by force.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE + 10)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
