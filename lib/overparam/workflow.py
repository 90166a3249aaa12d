"""Run notebooks safely: one through papermill in its own process, or the batch through Snakemake."""

import base64
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from . import claims, memory, paths, provenance
from .errors import ClaimError, OverparamError, ParameterError, RunFailed
from .parameters import notebook_parameters, validated

FOLDERS = (*claims.PROFILES, "custom")


def plan(claim_id, profile, overrides=None):
    """(Spec, parameters, resources, folder name) of a run; the folder is `custom` where an override changes a value.

    Raises ClaimError and ParameterError before anything is started.
    """
    spec = claims.spec(claim_id)
    reference, ranges, resources = claims.profile_parameters(claim_id, profile)
    given = validated(overrides or {}, notebook_parameters(spec.path), ranges)
    if given.get("profile", profile) != profile:
        raise ParameterError("choose the profile with --profile, not as a parameter")
    changed = any(given[k] != reference[k] for k in given if k != "device")
    return spec, {**reference, **given}, resources, "custom" if changed else profile


def served(notebook):
    """Ids of the claims that a notebook serves, its own first."""
    ids = [spec.id for spec in claims.registry().values() if spec.notebook == notebook]
    return sorted(ids, key=lambda i: i != notebook)


def fingerprint(claim_id, profile):
    """The fingerprint that the record of a claim at a profile has if nothing that it depends on has changed."""
    spec, parameters, _, _ = plan(claim_id, profile)
    return _fingerprint(spec, parameters)


def _fingerprint(spec, parameters):
    checks = [asdict(check) for claim in served(spec.notebook) for check in claims.spec(claim).checks]
    settings = {k: v for k, v in parameters.items() if k != "device"}
    return provenance.fingerprint(spec.path, settings, checks)


def record(claim_id, folder):
    """The stored `result.json` of a claim, or None. Raises ClaimError where it is not readable."""
    path = paths.FIGURES / folder / claim_id / "result.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ClaimError(f"{path} is not a readable record ({error}); delete it and run the claim again") from error


def stale(claim_id, profile):
    """Whether a claim's record is absent, unreadable, without its notebook, or made from other sources."""
    folder = paths.FIGURES / profile
    spec = claims.spec(claim_id)
    try:
        records = [record(i, profile) for i in served(spec.notebook)]
    except ClaimError:
        return True
    wanted = fingerprint(claim_id, profile)
    fresh = all(r is not None and r.get("fingerprint") == wanted for r in records)
    return not (fresh and (folder / spec.notebook / "notebook.ipynb").exists())


def run(claim_id, profile, overrides=None, threads=None):
    """Execute a claim's notebook; return its record. The outputs appear only if the whole run ended well.

    overrides: {parameter: value}; threads: CPU threads of the kernel (default: all cores).
    Raises RunFailed where the notebook raised or its kernel died; its log then stays in `logs/`.
    """
    spec, parameters, _, folder = plan(claim_id, profile, overrides)
    if folder == "custom":
        _require_room(claim_id, profile, parameters, overrides)
    target = paths.FIGURES / folder / spec.notebook
    log = paths.LOGS / folder / f"{spec.notebook}.ipynb"
    _writable(target)
    _writable(log.parent)
    environment = {"OVERPARAM_FINGERPRINT": _fingerprint(spec, parameters), **_threads(threads)}
    with _attempt(log) as partial:
        _execute(spec, parameters, partial, log, environment)
        claims.write_atomically(target / "notebook.ipynb", _portable(partial).encode())
    return record(claim_id, folder)


def _require_room(claim_id, profile, parameters, overrides):
    """Raise MemoryExceeded where larger sizes than the profile's need more memory than may be used."""
    reference = claims.profile_parameters(claim_id, profile)[0]
    larger = [k for k, v in parameters.items() if isinstance(v, int | list) and v != reference[k] and k != "seed"]
    if larger:
        from . import estimate  # imports torch

        needed = estimate.of(claim_id, profile, overrides).peak_bytes
        memory.require(needed, f"{claim_id} with {', '.join(larger)} changed", parameters.get("device", "cpu"))


@contextlib.contextmanager
def _attempt(log):
    """A notebook for papermill to write to, of this process alone; it becomes the log where the attempt fails."""
    partial = log.with_name(f".{log.stem}-{os.getpid()}.ipynb")
    try:
        yield partial
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.replace(partial, log)
        raise
    partial.unlink()
    log.unlink(missing_ok=True)


def _writable(folder):
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise RunFailed(f"cannot write to {folder}: {error.strerror}") from error


def _threads(threads):
    """Thread counts for the kernel. Waiting threads sleep: on shared cores, spinning ones cost twenty times more."""
    counts = dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads or os.cpu_count())
    )
    return {**counts, "OMP_WAIT_POLICY": "PASSIVE"}


def _execute(spec, parameters, partial, log, environment):
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import DeadKernelError
    from traitlets.config import Config

    os.environ.update(environment)
    try:
        with tempfile.TemporaryDirectory(prefix="overparam-") as sockets:
            # Sockets in a folder of their own: free TCP ports race between kernels that start together, and so do the
            # default socket names, which are relative to the working directory.
            config = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}})
            # The defaults lie in the home, which may be read-only, or hold startup files that change results.
            os.environ.update(JUPYTER_RUNTIME_DIR=sockets, IPYTHONDIR=sockets)
            papermill.execute_notebook(
                spec.path, partial, parameters, kernel_name="python3", language="python", cwd=paths.NOTEBOOKS,
                progress_bar=sys.stderr.isatty(), config=config,
                extra_arguments=["--log-level=50"],  # a shutdown interrupts the kernel, which calls that an error
            )  # fmt: skip
    except papermill.PapermillExecutionError as error:
        message = _first_lines(error.evalue, 2)
        raise RunFailed(f"{spec.notebook}: {error.ename}: {message}\nfull traceback in {_shown(log)}") from error
    except (DeadKernelError, NoSuchKernel, RuntimeError) as error:
        reason = f"the kernel died ({_first_lines(str(error))}), perhaps for lack of memory"
        raise RunFailed(f"{spec.notebook}: {reason}\nwhat it had done is in {_shown(log)}") from error
    except OSError as error:
        raise RunFailed(f"{spec.notebook}: {error}; nothing was overwritten") from error


def _first_lines(text, count=1):
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).strip().splitlines()
    return "\n".join(lines[:count]) or "no message"


def _shown(path):
    return os.path.relpath(path) if Path.cwd() in path.parents else path


def renew_outputs(claim_id, threads=1):
    """Run a notebook as it stands, at smoke size, and store its outputs in `notebooks/`; figures go nowhere."""
    spec = claims.spec(claim_id)
    log = paths.LOGS / "outputs" / f"{claim_id}.ipynb"
    _writable(log.parent)
    with tempfile.TemporaryDirectory() as nowhere, _attempt(log) as partial:
        _execute(spec, {}, partial, log, {"OVERPARAM_FIGURES": nowhere, **_threads(threads)})
        claims.write_atomically(spec.path, _portable(partial, keep=()).encode())


def _portable(path, keep=("parameters", "duration", "end_time", "version")):
    """The executed notebook, small and without this machine's paths and times; refused where it was not finished."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    meta = notebook["metadata"].pop("papermill", {})
    if not meta.get("end_time") or meta.get("exception"):
        raise RunFailed("papermill did not finish the notebook; run it again")
    if keep:
        notebook["metadata"]["papermill"] = {key: meta[key] for key in keep}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if "image/png" in (pictures := output.get("data", {})):
                small = claims.compact_png(base64.b64decode(pictures["image/png"]))
                pictures["image/png"] = base64.b64encode(small).decode()
        for key in ("papermill", "execution"):
            cell["metadata"].pop(key, None)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def batch(profile, stems, cores=None, extra=(), on_event=print):
    """Run notebooks side by side through Snakemake, a thread each or more where there are more cores than notebooks.

    stems: the notebooks; extra: further arguments for Snakemake (an executor, say). Each job ends with one event
    {claim, verdict, seconds} or {claim, error, seconds}, handed to `on_event`; other lines come as {text}.
    Returns Snakemake's exit code. An interrupt stops all jobs; finished notebooks are kept.
    """
    cores = cores or os.cpu_count()
    command = [
        sys.executable, "-m", "snakemake", "--snakefile", str(paths.ROOT / "Snakefile"), "--directory", str(paths.ROOT),
        "--cores", str(cores), "--keep-going", "--nolock", "--forcerun", "notebook", "--quiet", "all",
        "--config", f"profile={profile}", f"claims={','.join(stems)}", *extra,
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        for line in process.stdout:
            on_event(_event(line))
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        raise


def _event(line):
    try:
        event = json.loads(line)
        return event if isinstance(event, dict) else {"text": line.rstrip()}
    except ValueError:
        return {"text": line.rstrip()}


def notebooks(profile, claim_ids=()):
    """Stems of the notebooks that serve the given claims (default: all) and define the profile."""
    stems = dict.fromkeys(claims.spec(i).notebook for i in (claim_ids or claims.registry()))
    existing = [stem for stem in stems if claims.spec(stem).path.exists()]
    if claim_ids:
        return existing
    return [stem for stem in existing if _defines(stem, profile)]


def _defines(stem, profile):
    try:
        claims.profile_parameters(stem, profile)
    except ParameterError:
        return False
    return True


def overview():
    """One row per registered claim: id, paper, title, source, and per profile the verdict and whether it is stale."""
    rows = []
    for spec in claims.registry().values():
        row = {"claim": spec.id, "paper": spec.paper, "title": spec.title, "source": spec.source, "profiles": {}}
        row["notebook"] = spec.notebook if spec.path.exists() else None
        for profile in claims.PROFILES if row["notebook"] else ():
            row["profiles"][profile] = _state(spec.id, profile)
        rows.append(row)
    return rows


def _state(claim_id, profile):
    if not _defines(claim_id, profile):
        return {"verdict": None, "stale": None}
    try:
        stored = record(claim_id, profile)
    except OverparamError as error:
        return {"verdict": None, "stale": True, "error": str(error)}
    return {"verdict": stored and stored["verdict"], "stale": stale(claim_id, profile)}
