"""Run a notebook safely, through papermill in a process of its own, and say which records are up to date."""

import base64
import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import resource
import shutil
import sys
import tempfile
from pathlib import Path

from .. import paths
from ..errors import ClaimError, OverparamError, ParameterError, RunFailed
from ..record import checks, files, provenance
from ..record.checks import served
from ..record.claims import KEPT
from ..record.parameters import notebook_parameters, validated

LONG = ("desk", "paper")  # sizes whose runs take hours
NEEDED = (  # by any run; what its computations take comes on top
    (resource.RLIMIT_NOFILE, 256, "files may be open at once (ulimit -n)"),
    (resource.RLIMIT_AS, 2**31, "bytes may be addressed (ulimit -v)"),
)
PATIENCE = 30.0  # seconds that an interrupted kernel has to save its checkpoint
FIGURE = re.compile(r"(\.\./\w[\w-]*/)?[\w-]+\.png", re.ASCII)  # of this claim, or of another one at the same size


def plan(claim_id, profile, overrides=None):
    """(Spec, parameters, resources, folder) of a run; the folder is the profile, with other values one of `custom`."""
    spec = checks.spec(claim_id)
    reference, ranges, resources = checks.profile_parameters(claim_id, profile)
    given = validated(overrides or {}, notebook_parameters(spec.path), ranges)
    if given.get("profile", profile) != profile:
        raise ParameterError("choose the profile with --profile, not as a parameter")
    parameters = {**reference, **given}
    return spec, parameters, resources, checks.folder(profile, checks.changed(parameters, reference))


def fingerprint(claim_id, profile, overrides=None):
    """The fingerprint that the record of a claim at a profile has if nothing that it depends on has changed."""
    spec, parameters, _, _ = plan(claim_id, profile, overrides)
    settings = {k: v for k, v in parameters.items() if k != "device"}
    try:
        return provenance.fingerprint(spec.path, settings, checks.deciding(spec.notebook))
    except (SyntaxError, ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        raise ClaimError(f"{spec.path}, or what it imports of the package, is not readable code: {error}") from error


def record(claim_id, folder):
    """The stored `result.json` of a claim, or None. Raises ClaimError where it is not readable."""
    path = paths.FIGURES / folder / claim_id / "result.json"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["verdict"] not in checks.VERDICTS:
            raise ValueError(f"its verdict is {stored['verdict']!r}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ClaimError(f"{path} is not a readable record ({error}); delete it and run the claim again") from error
    return stored


def stale(claim_id, profile):
    """Whether a claim's record is absent, unreadable, damaged, without its notebook, or made from other sources."""
    return _outdated(claim_id, profile) or bool(damaged(claim_id, profile))


def _outdated(claim_id, profile):
    spec, wanted = checks.spec(claim_id), fingerprint(claim_id, profile)
    notebook = paths.FIGURES / profile / spec.notebook / "notebook.ipynb"
    try:
        made_from = {(record(i, profile) or {}).get("fingerprint") for i in served(spec.notebook)}
    except ClaimError:
        return True
    return made_from != {wanted} or not notebook.exists()


def run(claim_id, profile, overrides=None, threads=None):
    """Execute a claim's notebook; return its record. The outputs appear only if the whole run ended well.

    overrides: {parameter: value}; threads: CPU threads of the kernel (default: the profile's). Waits where the same
    notebook is being run already, and takes that run's record if it is of the same sources. Raises RunFailed where
    the notebook raised or its kernel died; its log then stays in `logs/`.
    """
    spec, _, _, folder = plan(claim_id, profile, overrides)
    log = paths.LOGS / folder / f"{spec.notebook}.ipynb"
    within_limits()
    writable(paths.FIGURES / folder)
    writable(log.parent)
    with _turn(log) as waited:
        checks.registry.cache_clear()  # the sources may have changed in the meantime
        provenance.refresh()
        environment = {"OVERPARAM_STATE": provenance.state(spec.path)}
        spec, parameters, resources, _ = plan(claim_id, profile, overrides)
        environment["OVERPARAM_FINGERPRINT"] = fingerprint(claim_id, profile, overrides)
        if not (waited and folder == profile and not stale(claim_id, profile)):
            _run(spec, parameters, folder, log, threads or resources["threads"], environment)
    return record(claim_id, folder)


def _run(spec, parameters, folder, log, threads, environment):
    checkpoints = [paths.LOGS / "checkpoints" / folder / claim for claim in served(spec.notebook)]
    written = [*checkpoints, paths.FIGURES / folder / spec.notebook / "runs"]
    for left in [file for place in written for name in ("*.tmp", ".tmp*") for file in place.rglob(name)]:
        left.unlink()  # ours and those of safetensors, from a run that was killed
    with _attempt(log) as partial, _staged(paths.FIGURES / folder / f".{spec.notebook}") as staged:
        places = {"OVERPARAM_FIGURES": str(staged), "OVERPARAM_REFERENCES": str(paths.FIGURES)}
        if folder in LONG:  # finished trainings stay beside the record: a later sitting or another machine adds to them
            places["OVERPARAM_RUNS"] = str(paths.FIGURES / folder / spec.notebook / "runs")
        _execute(spec, parameters, partial, log, threads, environment | places)
        missing = [i for i in served(spec.notebook) if not (staged / folder / i / "result.json").exists()]
        if missing:
            what = f"it ended without a record of {', '.join(missing)}; is its last cell there?"
            raise RunFailed(f"{spec.notebook}: {what}\nwhat it has done is in {relative(log)}")
        _seal(partial, staged / folder, spec.notebook)
        _install(staged / folder, paths.FIGURES / folder)
    for place in checkpoints:
        files.forget(place)
        for refused in place.rglob("*.refused*"):
            what = f"a checkpoint did not fit and was not used: {relative(refused)}; delete it when seen"
            print(what, file=sys.stderr)


@contextlib.contextmanager
def _turn(log):
    """Alone with a notebook's files; says whether another run of it had to end first."""
    with open(log.with_suffix(".lock"), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            waited = False
        except BlockingIOError:
            print(f"{log.stem} is being run already; waiting for the end of that run", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
            waited = True
        yield waited


@contextlib.contextmanager
def _attempt(log):
    """A notebook for papermill to write to; it becomes the log where the attempt fails."""
    partial = log.with_name(f".{log.name}")
    try:
        yield partial
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.replace(partial, log)
        raise
    partial.unlink()
    log.unlink(missing_ok=True)


@contextlib.contextmanager
def _staged(folder):
    """An empty folder of one run's own, as its lock is held: for its outputs, or for its kernel."""
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _seal(partial, staged, notebook):
    """Add the executed notebook to a run's outputs, with the digests of all of them, and of itself."""
    figures = {file.read_bytes(): os.path.relpath(file, staged / notebook) for file in staged.glob("*/*.png")}
    content = _portable(partial, figures)
    outputs = {str(file.relative_to(staged)): _sha256(file.read_bytes()) for file in sorted(staged.glob("*/*"))}
    content["metadata"]["overparam"] = {"outputs": outputs}
    content["metadata"]["overparam"]["itself"] = _sha256(_text(content).encode())
    files.write_atomically(staged / notebook / "notebook.ipynb", _text(content).encode())


def with_pictures(notebook, folder):
    """An executed notebook, changed in place: what refers to pictures of records at its size holds them again."""
    for output in _outputs(notebook):
        place = (output.get("metadata") or {}).get("overparam")
        name = place.get("figure") if isinstance(place, dict) else None
        if isinstance(name, str) and FIGURE.fullmatch(name) and (folder / name).is_file():
            output["data"]["image/png"] = base64.b64encode((folder / name).read_bytes()).decode()
    return notebook


def _outputs(notebook):
    return [output for cell in notebook["cells"] for output in cell.get("outputs", []) if "data" in output]


def _install(staged, target):
    """Move a run's outputs into place, records last: until then `stale` sees the old ones."""
    new = sorted(staged.glob("*/*"), key=lambda file: file.name == "result.json")
    names = {file.relative_to(staged) for file in new}
    for file in new:
        place = target / file.relative_to(staged)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, place)
    for old in [file for claim in staged.iterdir() for file in (target / claim.name).glob("*.*")]:
        if old.suffix in KEPT and old.relative_to(target) not in names:
            old.unlink()


def damaged(claim_id, profile, figures=None):
    """Those of a claim's outputs that are not what its run wrote: paths; figures: default where runs write to."""
    folder = (figures or paths.FIGURES) / profile
    path = folder / checks.spec(claim_id).notebook / "notebook.ipynb"
    if not path.exists():
        return []
    try:
        text = path.read_text(encoding="utf-8")
        wrote = json.loads(text)["metadata"]["overparam"]
        if wrote["itself"] != _sha256(text.replace(f',\n   "itself": "{wrote["itself"]}"', "", 1).encode()):
            return [path]
        outputs = [(folder / name, digest) for name, digest in wrote["outputs"].items()]
        return [file for file, digest in outputs if not file.is_file() or _sha256(file.read_bytes()) != digest]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return [path]


def _sha256(content):
    return hashlib.sha256(content).hexdigest()


def within_limits():
    """Raises RunFailed where the shell allows less than any run needs: what then goes wrong names no cause."""
    for kind, least, what in NEEDED:
        allowed = resource.getrlimit(kind)[0]
        if allowed != resource.RLIM_INFINITY and allowed < least:
            raise RunFailed(f"only {allowed} {what}, and a run needs {least}")


def writable(folder):
    """Make a folder if need be. Raises RunFailed where no file can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise RunFailed(f"cannot write to {folder}: {error.strerror}") from error


def _execute(spec, parameters, partial, log, threads, environment):
    sys.modules.setdefault("rfc3987_syntax", None)  # a format that jsonschema could check, but slow to import
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import DeadKernelError
    from traitlets.config import Config

    counts = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    # Waiting threads sleep: on shared cores, spinning ones cost twenty times more.
    os.environ.update(environment | counts, OMP_WAIT_POLICY="PASSIVE")
    # After an interrupt these say, late, that a cell was left behind and its kernel died: we have told why it stops.
    logging.getLogger("asyncio").disabled = logging.getLogger("papermill").disabled = True
    try:
        own = _sha256(f"{os.getuid()} {log}".encode())[:12]
        with _staged(Path(paths.for_sockets(), f"overparam-{own}")) as sockets:
            # Free TCP ports and the default socket names race between kernels that start together.
            # A kernel that is interrupted is told to end by force after half of the waiting time.
            manager = {"transport": "ipc", "ip": f"{sockets}/kernel", "connection_file": f"{sockets}/kernel.json"}
            manager["shutdown_wait_time"] = 2 * PATIENCE
            # The kernel is this interpreter, whatever others are called like it, and imports nothing from its folder.
            # The defaults lie in the home, which may be read-only, or hold startup files and styles.
            (sockets / "kernels" / "python3").mkdir(parents=True)
            start = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            start.append("--InteractiveShellApp.ignore_cwd=True")
            kernel = json.dumps({"argv": start, "display_name": "", "language": "python"})
            (sockets / "kernels" / "python3" / "kernel.json").write_text(kernel)
            (sockets / "matplotlibrc").touch()
            folders = dict.fromkeys(("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"), str(sockets))
            os.environ.update(folders, MATPLOTLIBRC=str(sockets / "matplotlibrc"))
            papermill.execute_notebook(
                _literally(spec.path), _literally(partial), parameters,
                kernel_name="python3", language="python", cwd=paths.NOTEBOOKS,
                progress_bar=sys.stderr.isatty(), config=Config({"KernelManager": manager}),
                extra_arguments=["--log-level=50"],  # a shutdown interrupts the kernel, which calls that an error
            )  # fmt: skip
    except papermill.PapermillExecutionError as error:
        message = _first_lines(error.evalue, 2)
        raise RunFailed(f"{spec.notebook}: {error.ename}: {message}\nfull traceback in {relative(log)}") from error
    except (DeadKernelError, NoSuchKernel, RuntimeError) as error:
        reason = f"the kernel died ({_first_lines(str(error))}), perhaps for lack of memory"
        raise RunFailed(f"{spec.notebook}: {reason}\nwhat it had done is in {relative(log)}") from error
    except OSError as error:
        raise RunFailed(f"{spec.notebook}: {error}; nothing was overwritten") from error


def _literally(path):
    """A path that papermill, which fills in parameters between braces, takes as it is."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _first_lines(text, count=1):
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).strip().splitlines()
    return "\n".join(lines[:count]) or "no message"


def relative(path):
    """A path as a reader in the present folder writes it."""
    return os.path.relpath(path) if Path.cwd() in path.parents else path


def renew_outputs(claim_id):
    """Run a notebook as it stands, at smoke size, and store its outputs in `notebooks/`; figures go nowhere."""
    spec = checks.spec(claim_id)
    log = paths.LOGS / "outputs" / f"{claim_id}.ipynb"
    writable(log.parent)
    with tempfile.TemporaryDirectory() as nowhere, _turn(log), _attempt(log) as partial:
        _execute(spec, {}, partial, log, 1, {"OVERPARAM_FIGURES": nowhere})
        files.write_atomically(spec.path, _text(_portable(partial, {}, keep=())).encode())


def _portable(path, figures, keep=("parameters", "duration", "end_time", "version")):
    """The executed notebook without this machine's paths; figures, {bytes: path of a file}, become references."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    meta = notebook["metadata"].pop("papermill", {})
    if not meta.get("end_time") or meta.get("exception"):
        raise RunFailed("papermill did not finish the notebook; run it again")
    if keep:
        notebook["metadata"]["papermill"] = {key: meta[key] for key in keep}
    for cell in notebook["cells"]:
        for key in ("papermill", "execution"):
            cell["metadata"].pop(key, None)
    for output in _outputs(notebook):
        picture = base64.b64decode("".join(output["data"].get("image/png", "")))
        if name := figures.get(picture):
            output["data"] = {"text/plain": f"<figure {name}>"}
            output["metadata"]["overparam"] = {"figure": name}
        elif picture:
            output["data"]["image/png"] = base64.b64encode(files.compact_png(picture)).decode()
    return notebook


def _text(notebook):
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def notebooks(profile, claim_ids=()):
    """Stems of the notebooks that serve the given claims (default: all) and define the profile."""
    if profile not in checks.PROFILES:
        raise ParameterError(f"unknown profile {profile!r}; there are {', '.join(checks.PROFILES)}")
    stems = dict.fromkeys(checks.spec(i).notebook for i in (claim_ids or checks.registry()))
    existing = [stem for stem in stems if checks.spec(stem).path.exists()]
    return existing if claim_ids else [stem for stem in existing if defines(stem, profile)]


def defines(stem, profile):
    try:
        checks.profile_parameters(stem, profile)
    except ParameterError:
        return False
    return True


def counting(stale):
    """The size whose verdict counts, of {profile that was run: whether its record is stale} in the order of the sizes.

    The largest of the present sources, else the largest; smoke where nothing larger was run. None where nothing was.
    """
    run = [profile for profile in stale if profile != "smoke"] or list(stale)
    return next(reversed([profile for profile in run if not stale[profile]] or run), None)


def overview(claim_ids=()):
    """One row per claim (default: all registered): id, paper, title, source, and per profile verdict and staleness."""
    rows = []
    for spec in map(checks.spec, claim_ids or checks.registry()):
        profiles = checks.PROFILES if spec.path.exists() else ()
        row = {"claim": spec.id, "paper": spec.paper, "title": spec.title, "source": spec.source}
        states = {profile: _state(spec.id, profile) for profile in profiles}
        rows.append(row | {"notebook": spec.notebook if profiles else None, "profiles": states})
    return rows


def _state(claim_id, profile):
    try:
        if not defines(claim_id, profile):
            return {"verdict": None, "stale": None}
        stored, wrong = record(claim_id, profile), damaged(claim_id, profile)
        stale = stored is None or bool(wrong) or _outdated(claim_id, profile)
        state = {"verdict": stored and stored["verdict"], "stale": stale}
    except OverparamError as error:
        return {"verdict": None, "stale": True, "error": str(error)}
    return state | ({"error": f"{wrong[0]} is not what its run wrote; run the claim again"} if wrong else {})
