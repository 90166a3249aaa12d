"""Run the batch: many notebooks side by side through Snakemake, on this machine or as jobs of a cluster."""

import argparse
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .. import paths
from ..errors import ParameterError, RunFailed
from ..record import checks
from .runner import writable

PATIENCE = 15.0  # seconds that an interrupted batch has to end its jobs
MUTE = "its job was killed (for lack of memory or time?) or could not begin; run again, and it goes on where it was"


def run(profile, stems, cores=None, extra=(), on_event=print):
    """Run notebooks side by side through Snakemake: here, or as jobs of a cluster where `extra` names its executor.

    stems: the notebooks; cores: how many at once (default: all cores; on a cluster all notebooks); extra: further
    arguments for Snakemake. Each notebook ends with one event {claim, verdict, seconds} or {claim, error, seconds},
    handed to `on_event`; other lines come as {text}. Jobs of a cluster that die are tried again.
    Returns Snakemake's exit code. An interrupt stops all jobs; finished notebooks are kept. Raises ParameterError for
    an executor that is not installed, and RunFailed where no job was begun.
    """
    writable(paths.FIGURES / profile)
    writable(paths.LOGS)
    cluster = _executor(extra) != "local"
    waiting = {stem: paths.LOGS / "ended" / profile / f"{stem}.json" for stem in stems}
    for path in (logs := list(waiting.values())):
        path.unlink(missing_ok=True)
    command = [
        sys.executable, "-m", "overparam.run.tied", "snakemake",
        "--snakefile", str(paths.ROOT / "Snakefile"), "--directory", str(paths.ROOT), "--keep-going",
        "--nolock", "--rerun-incomplete", "--forcerun", "notebook",
        "--config", f"profile={profile}", f"claims={','.join(stems)}", *_placed(len(stems), cores, cluster), *extra,
    ]  # fmt: skip
    started, told = time.monotonic(), {}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True, env=os.environ | _cache(),
    )  # fmt: skip
    try:
        for line in process.stdout:
            event = {"text": line.rstrip()} if cluster else _event(line)
            waiting.pop(event.get("claim"), None)
            on_event(event)
            for event in _news(waiting, told) if cluster else ():
                on_event(event)
        code = process.wait()
    except BaseException:
        _stop(process)
        raise
    if code and not any(path.exists() for path in logs):
        raise RunFailed("Snakemake could start no notebook; `--quiet host` after `--` shows its messages")
    for event in _lost(waiting, time.monotonic() - started) if code else ():
        on_event(event)
    return code


def _cache():
    """Variables that give Snakemake, which keeps a cache in the home, another place where the home is read-only."""
    try:
        writable(Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")))
    except RunFailed:
        return {"XDG_CACHE_HOME": str(paths.LOGS / "cache")}
    return {}


def _stop(process):
    """Interrupt Snakemake and its jobs, which cancels those of a cluster as well; after a while end them by force."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _executor(extra):
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--executor", "-e", default="local")
    name = parser.parse_known_args(list(extra))[0].executor
    if name != "local" and not importlib.util.find_spec(f"snakemake_executor_plugin_{name.replace('-', '_')}"):
        raise ParameterError(f"no executor {name!r} here; for SLURM: pip install -e '.[slurm]' in this environment")
    return name


def _placed(count, cores, cluster):
    """Arguments for a batch of `count` notebooks: on this machine they share its cores and only they speak.

    A cluster's jobs get four cores each, are tried three times more, and may write to a slow shared file system.
    """
    if cluster:
        return [
            "threads=4", "--jobs", str(cores or count), "--retries", "3", "--latency-wait", "60",
            "--quiet", "host", "reason",
        ]  # fmt: skip
    cores = cores or os.cpu_count()
    return [f"threads={max(1, cores // count)}", "--cores", str(cores), "--quiet", "all"]


def _news(waiting, told):
    """Events of the jobs that have ended since the last look. Who has ended well is taken out of waiting, {stem: log}.

    A failure comes as {text} and is noted in told, {stem: event}: the job may be tried again.
    """
    for stem, path in list(waiting.items()):
        event = _ended(path)
        if not event or event == told.get(stem):
            continue
        if "verdict" in event:
            del waiting[stem]
            yield event
        else:
            told[stem] = event
            yield {"text": event["error"]}


def _lost(waiting, seconds):
    """Events of the notebooks of a failed batch that have not been heard of: failed, killed, or never begun."""
    for stem, path in waiting.items():
        event = _ended(path)
        if event is None:
            yield {"text": f"{stem} was not begun"}
        else:
            yield event or {"claim": stem, "error": f"{stem}: {MUTE}", "seconds": seconds}


def _ended(log):
    """The event in which a job said how it ended; empty where it has not; None where none was begun."""
    try:
        return json.loads(log.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        return {}


def _event(line):
    """What a job says of its end; any other line is text."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    ends = isinstance(event, dict) and isinstance(event.get("claim"), str) and "seconds" in event
    return event if ends and ("error" in event or event.get("verdict") in checks.VERDICTS) else {"text": line.rstrip()}
