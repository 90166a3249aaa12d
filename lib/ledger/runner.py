"""Run a notebook safely, through papermill, in a process of its own.

Its outputs appear only if it ended well.
"""

import base64
import contextlib
import fcntl
import io
import json
import logging
import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path

from . import files, findings, fingerprints, paths, prepared, records, references, registry
from .errors import ClaimError, RunFailed
from .run import Run

NEEDED = (  # by any run; what its computations take comes on top
    (resource.RLIMIT_NOFILE, 256, "files may be open at once (ulimit -n)"),
    (resource.RLIMIT_AS, 2**31, "bytes may be addressed (ulimit -v)"),
)
STARTING = 300  # seconds that a kernel may take to start
PATIENCE = 30.0  # seconds that an interrupted kernel has to save its checkpoint
TOLD = (
    "parameters",
    "duration",
    "end_time",
    "version",
)  # what is kept of papermill's notes on a run


def run(claim_id, size, overrides=None, threads=None):
    """Execute a claim's notebook; return its record.

    The outputs appear only if the whole run ended well.

    overrides: {parameter: value}; threads: CPU threads of the kernel (default: the size's). Waits
    where the same notebook is being run already, and takes that run's record if it is of the same
    sources. Raises RunFailed where the notebook raised or its kernel died; its log then stays in
    `logs/`.
    """
    claim, _, folder = records.plan(claim_id, size, overrides)
    log = paths.LOGS / folder / f"{claim.page.id}.ipynb"
    within_limits()
    writable(paths.FIGURES / folder)
    for each in registry.served(claim.page.id):
        writable(paths.FIGURES / folder / each.id)
    writable(log.parent)
    with _turn(claim.page.id, paths.FIGURES / folder) as waited:
        registry.registry.cache_clear()  # the sources may have changed in the meantime
        fingerprints.refresh()
        sources = fingerprints.state(claim.page)
        if not (waited and folder == size and not records.stale(claim_id, size)):
            claim, parameters, _ = records.plan(claim_id, size, overrides)
            threads = threads or registry.size_of(claim_id, size).resources["threads"]
            told = {
                "fingerprint": records.fingerprint(claim_id, size, overrides),
                "sources": sources,
                "revision": fingerprints.git_revision(),
            }
            _run(claim.page, parameters, folder, log, threads, told)
    return records.load(claim_id, folder)


def _run(page, parameters, folder, log, threads, told):
    """Run a page into a staging folder, seal what it wrote, and move it to where it belongs."""
    served = registry.served(page.id)
    checkpoints = [paths.LOGS / "checkpoints" / folder / claim.id for claim in served]
    finished = (
        paths.FIGURES / folder / page.id / "runs"
    )  # a later sitting or another machine adds to them
    for place in [*checkpoints, finished]:
        for left in [
            *place.rglob("*.tmp"),
            *place.rglob(".tmp*"),
        ]:  # ours and those of safetensors, of a killed run
            left.unlink()
    with _attempt(log) as partial, _staged(paths.FIGURES / folder / f".{page.id}") as staged:
        this = Run(figures=str(staged), finished=str(finished), **told)
        executed = _executed(page.notebook, parameters, partial, log, threads, this)
        missing = [
            claim.id
            for claim in served
            if not (staged / folder / claim.id / "result.json").exists()
        ]
        if missing:
            what = f"it ended without a record of {', '.join(missing)}; is its last cell there?"
            raise RunFailed(f"{page.id}: {what}\nwhat it has done is in {paths.relative(log)}")
        _seal(executed, page, folder, staged)
        _install(staged / folder, paths.FIGURES / folder)
    for place in checkpoints:
        files.forget(place)
        for refused in place.rglob("*.refused*"):
            what = (
                f"a checkpoint did not fit and was not used: {paths.relative(refused)}; delete "
                "it when seen"
            )
            print(what, file=sys.stderr)


@contextlib.contextmanager
def _turn(name, folder):
    """Alone with a notebook's files in a folder; says whether another run had to end first.

    The lock lies beside what it protects, which several checkouts may share.
    """
    with open(folder / f".{name}.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            waited = False
        except BlockingIOError:
            print(
                f"{name} is being run already; waiting for the end of that run",
                file=sys.stderr,
                flush=True,
            )
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
        if partial.exists():
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


def _seal(executed, page, folder, figures):
    """Write an executed notebook beside its outputs, with findings.

    And with the digests of all of them.
    """

    def finding(claim, record, place):
        try:
            return findings.finding(claim, record, place)
        except ClaimError as error:  # one that quotes what the record does not have costs no run
            print(
                f"{error}; the executed notebook has a plain sentence in its place", file=sys.stderr
            )
            return findings.generated(record)

    wrote = sorted((figures / folder).glob("*/*"))
    outputs = {
        str(file.relative_to(figures / folder)): files.sha256(file.read_bytes()) for file in wrote
    }
    path = records.executed(page.id, folder, figures)
    files.write_atomically(path, _kept(executed, page, folder, figures, outputs, finding).encode())


def _kept(executed, page, folder, figures, outputs, finding):
    """The text of an executed notebook in today's words.

    Finding(claim, record, its folder): what was found.
    """
    today = json.loads(page.notebook.read_text(encoding="utf-8"))
    place = records.executed(page.id, folder, paths.FIGURES).parent
    today["cells"] = references.with_links_from(today["cells"], page.notebook.parent, place)
    claims = []
    for claim in registry.served(page.id):
        if record := records.load(
            claim.id, folder, figures
        ):  # none of a claim that was registered after the run
            claims.append((claim, record, finding(claim, record, figures / folder / claim.id)))
    return references.text(references.sealed(references.composed(executed, today, claims), outputs))


def _install(staged, target):
    """Move a run's outputs into place, records last: until then the listing sees the old ones."""
    new = sorted(staged.glob("*/*"), key=lambda file: file.name == "result.json")
    for file in new:
        place = target / file.relative_to(staged)
        place.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(place, file.read_bytes())  # it may lie on another disk
    for folder in {file.parent for file in new}:
        files.remove_others(
            target / folder.name, [file.name for file in new if file.parent == folder]
        )


def refresh(page_id, size, figures=None):
    """Renew findings, prose and the words of checks in a kept executed notebook.

    Returns whether anything changed.

    Raises ClaimError where the record is not what its run wrote: the new seal would hide it.
    """
    figures = figures or paths.FIGURES
    for wrong in records.damaged(page_id, size, figures):
        raise ClaimError(f"{wrong} is not what its run wrote; run the claim again")
    path = records.executed(page_id, size, figures)
    before = path.read_text(encoding="utf-8")
    executed = json.loads(before)
    outputs = executed["metadata"]["overparam"]["outputs"]
    after = _kept(executed, registry.claim(page_id).page, size, figures, outputs, findings.finding)
    if after != before:
        files.write_atomically(path, after.encode())
    return after != before


def renew_outputs(page_id):
    """Run a notebook as it stands, at smoke size, and store its outputs in `notebooks/`.

    Figures go nowhere.
    """
    notebook = registry.claim(page_id).page.notebook
    log = paths.LOGS / "outputs" / f"{page_id}.ipynb"
    writable(log.parent)
    turn = _turn(page_id, log.parent)
    with tempfile.TemporaryDirectory() as nowhere, turn, _attempt(log) as partial:
        before = notebook.read_bytes()
        executed = _executed(
            notebook, {}, partial, log, 1, Run(figures=nowhere, references=nowhere)
        )
        del executed["metadata"]["papermill"]
        if notebook.read_bytes() != before:
            raise RunFailed(
                f"{page_id}: the notebook was saved during its run, and is left as it is"
            )
        files.write_atomically(notebook, references.text(executed).encode())


def within_limits():
    """Raises RunFailed where the shell allows less than any run needs.

    What then goes wrong names no cause.
    """
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


def _executed(notebook, parameters, partial, log, threads, this):
    """A notebook as it was run.

    And written to `partial`, in a kernel that sees nothing of the user's own settings.
    """
    sys.modules.setdefault(
        "rfc3987_syntax", None
    )  # a format that jsonschema could check, but slow to import
    import papermill
    from traitlets.config import Config

    name = log.stem
    counts = dict.fromkeys(prepared.THREADS, str(threads))
    # Waiting threads look for work some microseconds long, and then sleep. Without the sleep a run
    # on shared cores takes up to a hundred times longer, and without the look one of small products
    # on free cores four times. Only GNU's library reads the number, and follows it.
    waiting = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"}
    os.environ.update(this.variables() | counts | waiting)
    # After an interrupt these say, late, that a cell was left behind and its kernel died: we have
    # told why it stops.
    logging.getLogger("asyncio").disabled = logging.getLogger("papermill").disabled = True
    own = files.sha256(f"{os.getuid()} {log}".encode())[:12]
    try:
        with _staged(Path(paths.for_sockets(), f"overparam-{own}")) as place:
            isolate(place)
            if threads == 1 and (address := os.environ.get(prepared.ADDRESS)):
                start_kernels_by(prepared.command(address), place)
            (place / "empty").mkdir()  # no module, style or data comes from the working folder
            papermill.execute_notebook(
                _literally(notebook),
                _literally(partial),
                parameters,
                kernel_name="python3",
                language="python",
                cwd=place / "empty",
                progress_bar=sys.stderr.isatty(),
                start_timeout=STARTING,
                config=Config({"KernelManager": _addresses(place)}),
                extra_arguments=[
                    "--log-level=50"
                ],  # a shutdown interrupts the kernel, which calls that an error
            )
    except papermill.PapermillExecutionError as error:
        message = _first_lines(error.evalue)
        raise RunFailed(
            f"{name}: {error.ename}: {message}\nfull traceback in {paths.relative(log)}"
        ) from error
    except RuntimeError as error:  # nbclient's
        told = _first_lines(str(error))
        reason = f"the kernel died ({told}), perhaps for lack of memory"
        if "respond" in told:
            reason = f"the kernel did not start within {STARTING} seconds"
        raise RunFailed(
            f"{name}: {reason}\nwhat it had done is in {paths.relative(log)}"
        ) from error
    except OSError as error:
        raise RunFailed(f"{name}: {error}; nothing was overwritten") from error
    return _portable(json.loads(partial.read_text(encoding="utf-8")))


def _portable(notebook):
    """An executed notebook without what papermill notes of the machine, and with small pictures."""
    from PIL import Image

    told = notebook["metadata"].pop("papermill", {})
    if not told.get("end_time") or told.get("exception"):
        raise RunFailed("papermill did not finish the notebook; run it again")
    notebook["metadata"]["papermill"] = {key: told[key] for key in TOLD}
    for cell in notebook["cells"]:
        for key in ("papermill", "execution"):
            cell["metadata"].pop(key, None)
        for output in cell.get("outputs", []):
            picture = output.get("data", {}).get("image/png")
            if picture and "width" not in output["metadata"].get(
                "image/png", {}
            ):  # not one of `claim.figure`
                shown = Image.open(io.BytesIO(base64.b64decode("".join(picture))))
                small = files.compact_png(shown)
                output["data"]["image/png"] = base64.b64encode(small).decode()
    return notebook


def isolate(place):
    """Let the kernels that this process starts be `ledger.kernel`, whatever others are called so.

    place: an empty folder for what kernels read and write. The default folders lie in the user's
    home, which may be read-only, or hold start-up files and styles.
    """
    start_kernels_by([sys.executable, "-P", str(Path(__file__).with_name("kernel.py"))], place)
    (place / "matplotlibrc").touch()
    folders = dict.fromkeys(("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"), str(place))
    os.environ.update(folders, MATPLOTLIBRC=str(place / "matplotlibrc"))
    os.environ["PYTHONHASHSEED"] = "0"  # the order of sets is that of every run


def start_kernels_by(command, place):
    """Register how kernels start, where `isolate` lets them be looked for."""
    kernels = place / "kernels" / "python3"
    kernels.mkdir(parents=True, exist_ok=True)
    kernel = {
        "argv": [*command, "-f", "{connection_file}"],
        "display_name": "",
        "language": "python",
    }
    (kernels / "kernel.json").write_text(json.dumps(kernel))


def _addresses(place):
    """Where a kernel is spoken to, in a folder of its own.

    Free TCP ports and the default socket names race between kernels that start together.
    """
    addresses = {
        "transport": "ipc",
        "ip": f"{place}/kernel",
        "connection_file": f"{place}/kernel.json",
    }
    # A kernel that is interrupted is told to end by force after half of the waiting time.
    return {**addresses, "shutdown_wait_time": 2 * PATIENCE}


def _literally(path):
    """A path that papermill, which fills in parameters between braces, takes as it is."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _first_lines(text):
    return "\n".join(text.strip().splitlines()[:2]) or "no message"
