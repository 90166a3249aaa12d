"""Stored records: reading them, whether they are what the present sources give.

And whether anybody touched them.
"""

import json
import re

from overparam.errors import OverparamError, ParameterError

from . import files, fingerprints, paths, references, registry, render, rule
from .errors import ClaimError
from .parameters import notebook_parameters, require, validated

COMMITTED = rule.SIZES[1:]  # whose records are kept in the repository
LONG = ("desk", "paper")  # sizes whose runs take hours
_FILE = re.compile(
    r"[\w-]+(\.json|\.npz|\.png|\.csv|\.csv\.xz)", re.ASCII
)  # names are parts of addresses
_MALFORMED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
_ALL_VERDICTS = {rule.NOT_TESTED}.union(*rule.VERDICTS.values())


def plan(claim_id, size, overrides=None):
    """(Claim, parameters, folder) of a run.

    The folder is the size, with other values one of `custom`.

    Raises ParameterError for a parameter that is unknown, of the wrong type or out of its range,
    and for parameters that do not go together.
    """
    claim = registry.claim(claim_id)
    reference = registry.parameters_at(claim_id, size)
    given = validated(overrides or {}, notebook_parameters(claim.page.notebook), claim.page.ranges)
    if given.get("profile", size) != size:
        raise ParameterError("choose the profile with --profile, not as a parameter")
    parameters = {**reference, **given}
    require(parameters, claim.page.needs)
    return claim, parameters, registry.folder(size, registry.changed(parameters, reference))


def folder_by_hand(folder):
    """Where a run by hand goes, so that it touches nothing that `overparam run` has written."""
    return f"custom/{folder.removeprefix('custom/')},by-hand"


def fingerprint(claim_id, size, overrides=None):
    """The fingerprint that the record of a claim has if nothing that it depends on has changed."""
    claim, parameters, _ = plan(claim_id, size, overrides)
    settings = {name: value for name, value in parameters.items() if name != "device"}
    notebook = claim.page.notebook
    try:
        threads = registry.size_of(claim_id, size).resources["threads"]
        deciding = registry.deciding(claim.page.id)
        return fingerprints.fingerprint(notebook, settings, deciding, threads)
    except Exception as error:  # MemoryError too: what a parser raises for nested brackets
        raise ClaimError(
            f"{notebook}, or what it imports of the library, is not readable code: {error}"
        ) from error


def load(claim_id, folder, figures=None):
    """The record of a claim in a folder such as "laptop", or None.

    Raises ClaimError where it is not readable.
    """
    path = (figures or paths.FIGURES) / folder / claim_id / "result.json"
    return parsed(path.read_bytes(), path) if path.exists() else None


def reference(claim_id, size, figures):
    """({check: value}, what these are in words) that a run with changed parameters stands beside.

    The record of the size; where none is up to date, what the notebook has stored of its smoke run,
    or else the outdated record. ({}, None) where there is nothing of all this.
    """
    claim = registry.claim(claim_id)
    try:
        record = load(claim_id, size, figures)
        current = bool(record) and record.get("fingerprint") == fingerprint(claim_id, size)
    except ClaimError:  # the record is unreadable, or the code
        record, current = None, False
    if size == "smoke" and not current and registry.is_as_stored(claim_id):
        stored = _stored(claim)
        if stored is not None:
            page = claim.page.notebook.relative_to(paths.NOTEBOOKS.parent)
            return stored, f"the outputs that are stored in {page}"
    if record is None:
        return {}, None
    values = {row["name"]: row["value"] for row in record["checks"]}
    source = f"the record at {size} size"
    return values, source if current else f"{source}, which other code, checks or parameters made"


def _stored(claim):
    """{check: value} of the smoke run whose outputs are stored in a claim's notebook, or None."""
    notebook = json.loads(claim.page.notebook.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if output.get("metadata", {}).get("ledger", {}).get("report") == claim.id:
                text = "".join(output["data"]["text/plain"])
                return render.values_in(claim, text) if "[smoke]" in text else None
    return None


def parsed(content, place):
    """The record in the bytes of a file.

    Raises ClaimError, naming the place, where they are none.
    """
    try:
        return complete(json.loads(content))
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"[:300].replace("\n", " ")
        raise ClaimError(f"{place} is not a readable record ({reason})") from error


def complete(record):
    """The record, if it has what is shown of records.

    Raises ValueError, LookupError or TypeError otherwise.
    """
    if record["verdict"] not in _ALL_VERDICTS:
        raise ValueError(f"its verdict is {record['verdict']!r}")
    for row in record["checks"]:
        rule.requirement(row["holds"])
        if row["outcome"] not in ("holds", "fails", "undecided"):
            raise ValueError(f"the outcome of {row['name']!r} is {row['outcome']!r}")
    for row in [*record["checks"], *record["metrics"].values()]:
        numbers = [row["value"], row["paper"], *(row["interval"] or [])]
        if not all(number is None or isinstance(number, int | float) for number in numbers):
            raise TypeError(f"{numbers} are no numbers")
    for name in record["figures"]:
        if not _FILE.fullmatch(name):
            raise ValueError(f"a figure is named {name!r}")
    for name in (
        "parameters",
        "unmet",
        "conditions",
        "said",
        "tables",
        "seeds",
        "data",
        "device",
        "date",
    ):
        record[name]
    if not isinstance(record["seconds"], int | float):
        raise TypeError(f"its seconds are {record['seconds']!r}")
    for name in ("device", "date"):
        if not isinstance(record[name], str):
            raise TypeError(f"its {name} is {record[name]!r}")
    if not isinstance(record.get("versions", {}), dict):
        raise TypeError("its versions are no table")
    json.dumps(record, ensure_ascii=False).encode()
    return record


def kept(claim_id, size, figures):
    """Names of what is kept of a claim beside its notebook: record, pictures, tables, series."""
    folder = figures / size / claim_id
    return [
        file.name
        for file in sorted(folder.iterdir())
        if _FILE.fullmatch(file.name) and not file.is_symlink()
    ]


def stale(claim_id, size):
    """Whether a run's records are absent, unreadable, damaged, without their notebook, or made from
    other sources.

    Where somebody ran only the notebook again, and saved it, the records are what they were.
    """
    wrong = damaged(claim_id, size) and not run_by_hand(claim_id, size)
    return outdated(claim_id, size) or bool(wrong)


def outdated(claim_id, size):
    """Whether a run's records are absent, unreadable, without their notebook, or made from other
    sources.
    """
    page = registry.claim(claim_id).page
    wanted = fingerprint(claim_id, size)  # raises for sources that cannot be read
    try:
        made_from = {
            (load(claim.id, size) or {}).get("fingerprint") for claim in registry.served(page.id)
        }
    except ClaimError:
        return True
    return made_from != {wanted} or not executed(page.id, size).exists()


def executed(page_id, folder, figures=None):
    """Where the executed notebook of a run lies."""
    return (figures or paths.FIGURES) / folder / page_id / "notebook.ipynb"


def damaged(claim_id, size, figures=None):
    """Those of a run's outputs that are not what it wrote: paths."""
    path = executed(registry.claim(claim_id).page.id, size, figures)
    if not path.exists():
        return []
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if not references.is_sealed(notebook):
            return [path]
        return _other_outputs(path, notebook)
    except _MALFORMED:
        return [path]


def _other_outputs(path, notebook):
    """Those of the files that an executed notebook names that are not what its run wrote."""
    outputs = notebook["metadata"]["overparam"]["outputs"]
    if f"{path.parent.name}/result.json" not in outputs:
        return [path]  # the notebook of another claim
    wrote = {path.parents[1] / name: sha for name, sha in outputs.items()}
    return [
        file
        for file, sha in wrote.items()
        if not file.is_file() or files.sha256(file.read_bytes()) != sha
    ]


def run_by_hand(claim_id, size):
    """Whether somebody ran an executed notebook again where it lies, and saved it.

    And nothing else is other than what its run wrote.
    """
    path = executed(registry.claim(claim_id).page.id, size)
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        return references.was_run_by_hand(notebook) and not _other_outputs(path, notebook)
    except _MALFORMED:
        return False


def pages(size, claim_ids=()):
    """Ids of the runs that serve the given claims (default: all) and have the size."""
    if size not in rule.SIZES:
        raise ParameterError(f"unknown profile {size!r}; there are {', '.join(rule.SIZES)}")
    ids = dict.fromkeys(registry.claim(name).page.id for name in (claim_ids or registry.registry()))
    existing = [page for page in ids if registry.claim(page).page.notebook.exists()]
    return existing if claim_ids else [page for page in existing if has_size(page, size)]


def has_size(claim_id, size):
    return size == "smoke" or size in registry.claim(claim_id).page.sizes


def counting(states):
    """The size whose verdict counts.

    Of {size that was run: whether its record is outdated} by growing size.

    The largest of the present sources, else the largest; smoke where nothing larger was run. None
    where nothing was.
    """
    run = [size for size in states if size != "smoke"] or list(states)
    current = [size for size in run if not states[size]]
    return next(reversed(current or run), None)


def overview(claim_ids=()):
    """One row per claim (default: all).

    Claim, paper, kind, title, source, page, and the state of each size.
    """
    rows = []
    with fingerprints.remembered():
        for claim in map(registry.claim, claim_ids or registry.registry()):
            row = {name: getattr(claim, name) for name in ("paper", "kind", "title", "source")}
            sizes = rule.SIZES if claim.page.notebook.exists() else ()
            states = {size: _state(claim.id, size) for size in sizes}
            rows.append({"claim": claim.id, **row, "page": claim.page.id, "sizes": states})
    return rows


def _state(claim_id, size):
    """{verdict, stale, error} of a claim at a size; the verdict is None where it was not run."""
    if not has_size(claim_id, size):
        return {"verdict": None, "stale": None}
    try:
        stored, wrong = load(claim_id, size), damaged(claim_id, size)
        by_hand = bool(wrong) and run_by_hand(claim_id, size)
        # Sources that cannot be read are told at smoke size, also where nothing was run.
        unmade = stored is None and size != "smoke"
        state = {
            "verdict": stored and stored["verdict"],
            "stale": unmade or bool(wrong and not by_hand) or outdated(claim_id, size),
        }
    except OverparamError as error:
        return {"verdict": None, "stale": True, "error": str(error)}
    if by_hand:
        back = f"overparam run {claim_id} --profile {size}"
        back = f"git checkout {wrong[0]}" if size in COMMITTED else back
        state["error"] = f"{wrong[0]} was run by hand and saved; `{back}` brings it back"
    elif wrong:
        state["error"] = f"{wrong[0]} is not what its run wrote; run the claim again"
    return state
