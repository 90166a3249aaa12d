"""The command line, `overparam`.

List, show, run, figures, lab, new, freeze, outputs, refresh, site, diff, data.
"""

import ast
import contextlib
import itertools
import json
import os
import shlex
import signal
import sys
import time
import traceback
from typing import Annotated

import typer
from rich.console import Console

from overparam import memory, settings
from overparam.errors import OverparamError, ParameterError

from . import (
    batch,
    entry,
    freezing,
    overviews,
    paths,
    records,
    registry,
    render,
    rule,
    runner,
    show,
)
from .errors import ClaimError, RunFailed
from .markup import plain
from .parameters import comments, notebook_parameters, unknown
from .run import Run, apply_environment

app = typer.Typer(
    help="An executable companion to five papers on overparameterized neural networks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(
    help="Data sets: what there is, and where it comes from.", no_args_is_help=True
)
app.add_typer(data_app, name="data")

Profile = Annotated[str, typer.Option(help=f"{', '.join(rule.SIZES[:-1])} or {rule.SIZES[-1]}.")]


def _say(text, file=None):
    """Print a text, wrapped between words where the terminal is narrower."""
    print(show.fitted(str(text)), file=file, flush=True)


@app.command("list")
def list_(
    words: Annotated[
        list[str] | None,
        typer.Argument(help="Only claims with all of these in id, title, source or finding."),
    ] = None,
    paper: Annotated[
        list[str] | None,
        typer.Option(help="Only this paper, say arora2019 or just arora; may be repeated."),
    ] = None,
    verdict: Annotated[
        str | None, typer.Option(help="Only this verdict, or those that begin like it.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Only what waits at this size, and what it declares.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="For machines: all claims and sizes, as JSON.")
    ] = False,
):
    """Show all claims with the verdict that counts: that of the largest size that was run."""
    if (words or paper or verdict) and (profile or as_json):
        raise ParameterError(
            "words, --paper and --verdict choose among the verdicts, not with --profile or --json"
        )
    if profile:
        _list_waiting(profile)
        return
    rows = records.overview()
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    console, lines = Console(), show.listing(rows, paper or (), verdict, words or ())
    for line in lines:
        console.print(line, soft_wrap=True)
    states = [state for row in rows for state in row["sizes"].values()]
    errors = [*registry.registry().faults.values()]
    errors += [state["error"] for state in states if "error" in state]
    for error in dict.fromkeys(map(str, errors)):
        _say(f"error: {error}", sys.stderr)
    if any("*" in line.plain for line in lines):
        _say(
            "* outdated: its code, checks or sizes have changed; `overparam figures` renews it",
            sys.stderr,
        )
    _say(
        "`overparam show CLAIM`: what was found, and what does not hold; `overparam list WORD ...`:"
        " claims with these words",
        sys.stderr,
    )


def _list_waiting(profile):
    """One line per notebook whose record at a profile is absent or stale, the shortest first."""
    pages = records.pages(profile)
    stale = [page for page in pages if records.stale(page, profile)]
    waiting = {page: registry.size_of(page, profile).resources for page in stale}
    for page, resources in sorted(waiting.items(), key=lambda item: item[1].get("minutes", 0)):
        begun = any((paths.LOGS / "checkpoints" / profile / page).glob("*.safetensors"))
        _say(f"{page:<46} {_costs(resources)}{'; begun' if begun else ''}")
    total = sum(resources.get("minutes", 0) for resources in waiting.values())
    _say(
        f"{len(waiting)} of {len(pages)} notebooks wait at {profile} size, {total:g} minutes as "
        "declared"
    )


@app.command("show")
def show_(
    claim: Annotated[str, typer.Argument(help="A claim id of `overparam list`.")],
    everything: Annotated[
        bool,
        typer.Option("--all", help="All checks, parameters and figures, instead of one screen."),
    ] = False,
):
    """Show one claim: what was found, the verdict, what does not hold, how to run it again."""
    print(show.shown(claim, everything))


@app.command()
def run(
    claim: Annotated[str, typer.Argument(help="A claim id of `overparam list`.")],
    profile: Profile = "smoke",
    p: Annotated[
        list[str] | None, typer.Option("-p", help="name=value: change one parameter.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads (default: the size's own number).")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option(help="Show parameters, memory and minutes, and run nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON instead of the table.")
    ] = False,
):
    """Run one claim's notebook and print its verdict."""
    overrides = dict(_assignment(text, claim) for text in p or [])
    spec, parameters, folder = records.plan(claim, profile, overrides)
    resources = registry.size_of(claim, profile).resources
    if dry_run:
        _say(f"{spec.id}: {plain(spec.title)}")
        _say(f"would write to {paths.FIGURES / folder / spec.page.id}")
        for name, value in parameters.items():
            _say(f"  {name} = {value!r}")
    elif not as_json:
        _say(f"running {claim} at {profile} size")
    if dry_run or not as_json:
        if changes := registry.changed(parameters, records.plan(claim, profile)[1]):
            _say(f"changed: {render.changes(changes)}")
        device = parameters.get("device")
        if threads:
            resources = {**resources, "threads": threads}
        where = " for a GPU" if resources.get("gpu") and device == "cpu" else ""
        _say(f"declared{where}: {_costs(resources, device)}")
        _say(f"measured: {_took(claim, profile, device)}")
    if dry_run:
        return
    started = time.monotonic()
    try:
        record = runner.run(claim, profile, overrides, threads)
        ended = {key: record[key] for key in ("verdict", "changed") if key in record}
    except (OverparamError, OSError) as error:
        if not as_json:
            raise
        ended = {"error": _in_words(error)}
    seconds = time.monotonic() - started
    if as_json:
        print(json.dumps({"claim": claim, **ended, "seconds": seconds}))
        sys.exit(1 if "error" in ended else 0)
    _say(render.plain(spec, record))
    _say(f"{seconds:.1f} s; record and figures in {paths.FIGURES / folder / claim}")


def _assignment(text, claim):
    """(name, value) of `name=value`, the value a Python literal, or a bare word where the parameter
    is a string.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise ParameterError(f"-p takes name=value, not {text!r}")
    notebook = registry.claim(claim).page.notebook
    literals = notebook_parameters(notebook)
    if name not in literals:
        raise unknown(name, comments(notebook))
    if isinstance(literals[name], str):
        return name, value
    try:
        return name, ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return name, value


def _costs(resources, device="cuda"):
    """What is registered of a run's costs, in words; its minutes are a GPU's where it needs one."""
    words = [f"{resources['minutes']:g} min"] if "minutes" in resources else []
    words.append(memory.size(resources["memory_mb"] * 2**20))
    if resources.get("gpu") and device != "cpu":
        words.append("a GPU")
    words.append(f"{resources['threads']} thread{'s' * (resources['threads'] > 1)}")
    return ", ".join(words)


def _took(claim, profile, device):
    """What the record of this size took.

    And on what, as far as it says something of this kind of device.
    """
    with contextlib.suppress(ClaimError):  # an unreadable one is what the run will replace
        record = records.load(claim, profile)
        if record and record["device"].startswith("CPU") == (device != "cuda"):
            return show.took(record)
    return f"nothing yet on a {'GPU' if device == 'cuda' else 'CPU'} at {profile} size"


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def figures(
    context: typer.Context,
    profile: Profile = "smoke",
    claim: Annotated[
        list[str] | None, typer.Option(help="Only this claim (may be repeated).")
    ] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Notebooks side by side (default: all cores).")
    ] = None,
):
    """Bring the figures of a profile up to date. Further arguments go to Snakemake (after `--`)."""
    pages = records.pages(profile, claim or [])
    todo, broken = _outdated(pages, profile)
    for page in todo:
        for path in records.damaged(page, profile):
            _say(f"{path} is not what its run wrote, and is made anew", sys.stderr)
    _say(
        f"{len(pages) - len(todo) - len(broken)} of {len(pages)} notebooks are up to date in "
        f"{paths.FIGURES / profile}"
    )
    broken += registry.registry().faults.values() if not claim else []
    for error in broken:
        _say(f"error: {error}", sys.stderr)
    failed = _made(todo, profile, cores, context.args) if todo else []
    if failed:
        raise RunFailed(f"{len(failed)} of {len(todo)} notebooks failed; the others are done")
    if broken:
        raise RunFailed(f"{len(broken)} sources are broken; the other notebooks are done")


def _outdated(pages, profile):
    """(the pages without a record of the present sources, errors of those that are broken)."""
    todo, broken = [], []
    for page in pages:
        try:
            todo += [page] if records.stale(page, profile) else []
        except ClaimError as error:
            broken.append(error)
    return todo, broken


def _made(todo, profile, cores, more):
    """Run notebooks, telling how each ends; return those that failed. More: for Snakemake."""
    if profile in records.LONG:
        for page in todo:
            _say(f"{page:<46} {_costs(registry.size_of(page, profile).resources)}")
    ended = set()

    def on_event(event):
        if "claim" in event:
            ended.add(event["claim"])
            word = event.get("verdict", "failed")
            _say(
                f"{word}  {event['claim']}  {event['seconds']:.0f} s  ({len(ended)} of {len(todo)})"
            )
        if text := event.get("text", event.get("error")):
            _say(text)

    return batch.run(profile, todo, cores, more, on_event)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(context: typer.Context):
    """Open JupyterLab on copies of the notebooks, in lab/; further arguments go to it."""
    from . import lab

    _say(f"preparing copies of the notebooks in {paths.LAB}")
    for path in lab.prepare():
        _say(
            f"{paths.relative(path)} was edited, and its original has changed since; delete it to "
            "get that one"
        )
    _say(lab.ELSEWHERE)
    os.environ |= Run(figures=str(paths.LAB / "figures"), references=str(paths.FIGURES)).variables()
    os.execv(sys.executable, lab.command(context.args))


@app.command()
def new(
    claim: Annotated[
        str, typer.Argument(metavar="PAPER-ID", help="The new claim, such as du2019-thm31.")
    ],
):
    """Begin a claim: a notebook and its registration, which run as they are.

    CONTRIBUTING.md says how to go on.
    """
    from . import new

    files = [str(paths.relative(path)) for path in new.create(claim)]
    _say("these are written, and the notebook runs once for the outputs that it stores:")
    for file in files:
        _say(f"  {file}")
    runner.renew_outputs(claim)
    _say("CONTRIBUTING.md says how to go on; this undoes it, and deletes what you wrote there:")
    _say(f"  git clean -f -- {shlex.join(files)}")


@app.command()
def outputs(
    claim: Annotated[list[str] | None, typer.Argument(help="Claim ids (default: all).")] = None,
):
    """Renew the smoke outputs that are stored in the notebooks themselves (for maintainers)."""
    for page in filter(registry.is_as_stored, records.pages("smoke", claim or [])):
        runner.renew_outputs(page)
        _say(page)


@app.command()
def refresh():
    """Bring what is written about the committed records up to date.

    Executed notebooks, each paper's README.
    """
    registry.require_whole()
    for size in records.COMMITTED:
        for page in records.pages(size):
            if records.executed(page, size).exists() and runner.refresh(page, size):
                _say(paths.relative(records.executed(page, size)))
    for path in overviews.write():
        _say(paths.relative(path))


@app.command()
def freeze(
    paper: Annotated[str, typer.Argument(help="A paper's key, say arora2019.")],
    claims: Annotated[
        list[str] | None, typer.Argument(help="Only these (default: all that are not frozen).")
    ] = None,
):
    """Freeze checks and seeds of a paper's claims today, before the runs that judge them."""
    registry.require_whole()
    path = freezing.freeze(paper, claims or [])
    _say(f"{paths.relative(path)}: commit it with the claims that it freezes")


@app.command()
def site(jobs: Annotated[int, typer.Option(min=1, help="Processes side by side.")] = 2):
    """Build the site of all notebooks and verdicts from the committed records, in
    site/_build/html.
    """
    registry.require_whole()
    _say(f"building the site in {paths.SITE / '_build'}, which takes minutes")
    from .site.build import build

    _say(f"open {build(jobs=jobs) / 'index.html'}")


@app.command()
def diff(revision: Annotated[str, typer.Argument(help="A git revision, such as HEAD or main~3.")]):
    """Compare the records with those of a git revision: verdicts, checks, numbers, figures."""
    from . import diff

    found = diff.changes(diff.at_revision(revision), diff.at_present())
    for record, group in itertools.groupby(found, key=lambda c: f"{c.claim} at {c.profile}"):
        _say(record)
        for c in group:
            _say(
                f"  {c.kind if c.kind == c.what else f'{c.kind} {c.what}'}: {c.before} -> {c.after}"
            )
    _say(diff.summary(found, revision))


@data_app.command("list")
def data_list():
    """Show the data sets: where each is found now, its size and its licence."""
    from overparam import data

    for row in data.describe():
        size = "size not known" if row["MiB"] is None else f"{row['MiB']} MiB"
        _say(
            f"{row['name']:<18}  {row['available']}, {size}\n  {row['licence']}\n  {row['origin']}"
        )


@data_app.command("fetch")
def data_fetch(names: Annotated[list[str], typer.Argument(help="Names of `overparam data list`.")]):
    """Download data sets from their original hosts into data/cache, checked by hash."""
    from overparam import data

    for name in names:
        data.fetch(name)
        _say(f"{name}: in {settings.data_cache}")


def _in_words(error):
    """An error in one or two lines for its reader."""
    if isinstance(error, OverparamError) or not error.strerror:
        return str(error)
    return error.strerror + (f": {error.filename}" if error.filename else "")


def _terminated(number, _):
    os.write(2, b"terminated; finished notebooks are kept, run again to go on\n")
    raise SystemExit(128 + number)


def main():
    """Entry point: errors of ours in one or two lines on stderr, exit code 1.

    An interrupt exits with 130.
    """
    signal.signal(signal.SIGTERM, _terminated)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # not under nohup
        signal.signal(signal.SIGHUP, _terminated)
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored where a shell has started us in the background
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # where it cannot show all letters
    try:
        apply_environment()
        code = app(standalone_mode=False)
        if code == 130:  # typer answers an interrupt with this code
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except (OverparamError, OSError) as error:
        _say(f"error: {_in_words(error)}", sys.stderr)
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted; finished notebooks are kept, run again to go on", sys.stderr)
        sys.exit(130)
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of the command line itself
            error.show()
            sys.exit(error.exit_code)
        trace = traceback.format_exc()
        with contextlib.suppress(OSError):
            paths.LOGS.mkdir(exist_ok=True)
            (paths.LOGS / "crash.txt").write_text(trace)
            trace = f"the traceback is in {paths.LOGS / 'crash.txt'}"
        _say(f"error: {type(error).__name__}: {error}\nthis should not happen; {trace}", sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    entry.require_checkout()
    main()
