"""All claims as a list, and one claim on a screen or in full, for a terminal.

At most as wide as it is, 80 columns in a pipe.
"""

import re
import shutil
import sys
import textwrap

from rich.text import Text

from overparam.errors import ParameterError

from . import findings, fingerprints, paths, records, registry, render, rule
from .errors import ClaimError
from .markup import plain
from .parameters import comments, near, notebook_parameters

NOT_RUN, UNREADABLE, NOT_WRITTEN = "not run", "unreadable", "not written yet"
PLACEHOLDER = "PLACEHOLDER"  # how the title begins that `overparam new` gives a claim
KINDS = {
    "experiment": ("experiment", "experiments"),
    "theorem": ("theorem", "theorems"),
    "ours": ("claim of our own", "claims of our own"),
}
MANY = {
    "holds": "hold",
    "holds in part": "hold in part",
    "fails": "fail",
    "stands": "stand",
    "typo": "typos",
    "constant": "constants",
    "exponent": "exponents",
    "gap": "gaps",
}
COLOURS = {}
for _words in rule.VERDICTS.values():
    COLOURS.update(zip(_words, ("green", "yellow", "red"), strict=True))
COLOURS.update({rule.NOT_TESTED: "dim", UNREADABLE: "red", NOT_RUN: "dim", NOT_WRITTEN: "dim"})
WIDEST = 100  # columns of prose that can be read
TITLES = 120  # columns from which on a list has the titles of its claims
SCREEN = 40  # lines
MOST_RUNS = 3  # of somebody's own, on one screen


def best(states):
    """The size whose verdict counts, of {size: state}, or None."""
    return records.counting(
        {size: state["stale"] for size, state in states.items() if state["verdict"]}
    )


def listing(rows, papers=(), verdict=None, words=()):
    """Lines of rich's Text.

    Under each paper its claims, each with the verdict that counts and the size it is of. With the
    titles of the claims where the terminal is wide, or some claims are chosen.

    rows: of `records.overview`; papers, verdict, words: only these. Raises ParameterError for names
    that there are not.
    """
    known = list(dict.fromkeys(row["paper"] for row in rows))
    papers = [_paper(paper, known) for paper in papers]
    if verdict and not any(word.startswith(verdict) for word in COLOURS):
        raise ParameterError(f"unknown verdict {verdict!r}; there are {', '.join(COLOURS)}")
    verdicts = {row["claim"]: verdict_of(row) for row in rows}
    chosen = [
        row
        for row in rows
        if row["paper"] in (papers or known)
        and verdicts[row["claim"]][0].startswith(verdict or "")
        and _has(row, words)
    ]
    if not chosen:
        return [Text(_wrapped(_nothing(papers, verdict, words)))]
    titled = bool(words or papers or verdict) or _columns() >= TITLES
    width = max(len(row["claim"]) for row in chosen)
    lines = []
    for paper in dict.fromkeys(papers or known):
        own = [row for row in chosen if row["paper"] == paper]
        if not own:
            continue
        words_of_own = [(row["kind"], verdicts[row["claim"]][0]) for row in own]
        head = _wrapped(f"{about_paper(paper)[0]}: {counts(words_of_own)}", indent=" ")
        lines += [Text(), *(Text(line, "bold") for line in head.splitlines())]
        for row in own:
            lines += _entry(row["claim"], width, *verdicts[row["claim"]])
            lines += _title(row) if titled else []
            lines += _hits(row, words)
    return lines[1:]


def _paper(beginning, known):
    """The one known paper whose key begins like this."""
    found = [paper for paper in known if paper.startswith(beginning.lower())]
    if beginning in known:
        return beginning
    if len(found) > 1:
        raise ParameterError(f"the paper {beginning!r} may be {' or '.join(found)}")
    if not found:
        words = f"{near(beginning, known)} there are {', '.join(known)}".strip()
        raise ParameterError(f"unknown paper {beginning!r}; {words}")
    return found[0]


def _has(row, words):
    """Whether all words occur in a claim's id, title, source or finding, in either case."""
    if not words:
        return True
    text = f"{_head(row)} {_finding(row)}".lower()
    return all(word.lower() in text for word in words)


def _head(row):
    return f"{row['claim']} {plain(row['title'])} {row['source']}"


def _hits(row, words):
    """Lines with the sentences of a finding that have those words that its head has not."""
    missing = [word.lower() for word in words if word.lower() not in _head(row).lower()]
    if not missing:
        return []
    found = [one for one in _sentences(_finding(row)) if any(w in one.lower() for w in missing)]
    return [Text(line, "dim") for one in found for line in _wrapped(one, " " * 6).splitlines()]


def _finding(row):
    """A claim's finding as it is shown; empty where there is none that can be read."""
    size = verdict_of(row)[2]
    if not size:
        return ""
    claim = registry.claim(row["claim"])
    try:
        record = records.load(claim.id, size)
        return plain(findings.finding(claim, record, paths.FIGURES / size / claim.id))
    except ClaimError:
        return ""


def _nothing(papers, verdict, words):
    """A sentence that says of what there is none."""
    who = f"No claim of {' or '.join(papers)}" if papers else "No claim"
    what = [f"has the verdict {verdict!r}"] if verdict else []
    if words:
        named = " and ".join(map(repr, words))
        what.append(f"has {named} in its id, title, source or finding")
    return f"{who} {' and '.join(what) or 'is registered'}."


def _entry(claim_id, width, word, star, size):
    """A claim's line; two where the terminal is too narrow for one."""
    verdict = Text.assemble((f"{word + star:<19}", COLOURS[word]), f"  {size}")
    name = f"  {claim_id:<{width}}  "
    if len(name) + 19 + 2 + max(map(len, rule.SIZES)) <= _columns():
        lines = [Text.assemble(name, verdict)]
    else:
        lines = [Text(name), Text.assemble(" " * 6, verdict)]
    for line in lines:
        line.rstrip()
    return lines


def _title(row):
    return [Text(line, "dim") for line in _wrapped(plain(row["title"]), " " * 6).splitlines()]


def verdict_of(row):
    """(word, star, size) of a row of `records.overview`: the star marks an outdated record."""
    if row["title"].startswith(PLACEHOLDER):
        return NOT_WRITTEN, "", ""
    states = row["sizes"]
    size = best(states)
    if size is None:
        return UNREADABLE if any("error" in state for state in states.values()) else NOT_RUN, "", ""
    return states[size]["verdict"], "*" * states[size]["stale"], size


def counts(verdicts):
    """How many claims of which kind have which verdict.

    3 experiments (2 reproduced, 1 not tested), ...

    verdicts: (kind, verdict) of each claim.
    """
    parts = []
    for kind, (one, many) in KINDS.items():
        words = [word for of, word in verdicts if of == kind]
        if words:
            parts.append(
                f"{len(words)} {one if len(words) == 1 else many} ({counted(words, COLOURS)})"
            )
    return ", ".join(parts)


def counted(words, order):
    """How often each word occurs, in a given order: 23 hold, 1 fails."""
    named = [(words.count(word), word) for word in order if word in words]
    return ", ".join(f"{n} {MANY.get(word, word) if n > 1 else word}" for n, word in named)


def about_paper(paper):
    """(short name, heading, text) of a paper, as written for the site.

    Or else its key, its key, and nothing.
    """
    file = paths.SITE / "papers" / f"{paper}.md"
    written = file.read_text(encoding="utf-8") if file.exists() else paper
    heading, _, text = written.removeprefix("# ").partition("\n")
    return heading.partition(":")[0], heading, text


def shown(claim_id, everything=False):
    """The text of `overparam show`: a screen, or everything.

    What was found and claimed, checks, parameters, figures, and how to run it again.
    """
    claim = registry.claim(claim_id)
    (row,) = records.overview([claim_id])
    size = verdict_of(row)[2]
    record = records.load(claim_id, size) if size else None
    about = _about(claim, row, record, everything)
    if everything:
        parts = [about, _checks(claim, record) if record else "", _parameters(claim)]
        parts += [_files(claim, record), _again(claim, size, record)]
    else:
        ways_on = _ways_on(claim, size, record)
        room = SCREEN - len([*about.splitlines(), "", "", *ways_on.splitlines()])
        parts = [about, _open_checks(claim, record, room) if record else "", ways_on]
    return "\n\n".join(filter(None, parts))


def _columns():
    return shutil.get_terminal_size().columns


def _wrapped(text, first="", indent=None):
    """A text in lines as wide as the terminal.

    Indent: of all but the first line (default: as wide as `first`).
    """
    rest = " " * len(first) if indent is None else indent
    return textwrap.fill(
        " ".join(text.split()),
        min(_columns(), WIDEST),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def fitted(text):
    """A text whose lines are wrapped between words where the terminal is narrower.

    As it is in a pipe.
    """
    width = shutil.get_terminal_size(fallback=(sys.maxsize, 0)).columns
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        wrapped = textwrap.wrap(
            line.strip(),
            width,
            initial_indent=indent,
            subsequent_indent=f"{indent}  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += wrapped or [""]
    return "\n".join(lines)


def _about(claim, row, record, everything):
    """Id, title, what was found, verdict, claim, source, when it was frozen and made."""
    lines = [claim.id, _wrapped(plain(claim.title)), ""]
    if record:
        found = findings.finding(claim, record, paths.FIGURES / record["profile"] / claim.id)
        lines.append(_wrapped(plain(found), "Found    "))
        lines += _facts(claim, record, everything)
    elif verdict_of(row)[0] == NOT_WRITTEN:
        lines.append("Found    nothing yet: the claim is not written yet")
    else:
        lines.append("Found    nothing yet: it has not been run")
    lines.append(_wrapped(plain(claim.claim), "Claim    "))
    name, heading, _ = about_paper(claim.paper)
    paper = heading.replace(": ", ", ", 1) if everything else name
    lines.append(_wrapped(f"{paper}; {claim.source}", "Source   "))
    if record:
        lines.append(_wrapped(_frozen(claim, record, everything), "Frozen   "))
        lines.append(_wrapped(_made(record), "Made     "))
    ran = [
        f"{size} {state['verdict']}{'*' * state['stale']}"
        for size, state in row["sizes"].items()
        if state["verdict"]
    ]
    outdated = any(state["verdict"] and state["stale"] for state in row["sizes"].values())
    told = ", ".join(ran) + ("  (* outdated)" if outdated else "")
    lines += [_wrapped(told, "Sizes    ")] if ran else []
    lines += [
        _wrapped(plain(state["error"]), "Error    ")
        for state in row["sizes"].values()
        if "error" in state
    ]
    return "\n".join(lines)


def _facts(claim, record, everything):
    """Lines on the verdict, and then on a theorem as printed and its conditions."""
    facts = dict(render.facts(claim, record))
    measured = "Where measured" if claim.kind == "theorem" else "Verdict"
    lines = [_wrapped(plain(facts.pop(measured)), "Verdict  ")]
    for fact, text in facts.items():
        said = f"{fact}: {text if everything else _first_sentence(text)}"
        lines.append(_wrapped(plain(said), " " * 9))
    return lines


def _first_sentence(text):
    return _sentences(text)[0]


def _sentences(text):
    return re.split(r"(?<=[.!?])\s+(?=[A-Z$])", text)


def _frozen(claim, record, everything):
    told = render.frozen(claim, record)
    if everything or not claim.changes:
        return told
    times = "once" if len(claim.changes) == 1 else f"{len(claim.changes)} times"
    return f"{_first_sentence(told)} Changed {times} since."


def _made(record):
    """When and on what a record was made, and which versions were others than here.

    Versions and machines do not outdate a record.
    """
    here = fingerprints.versions()
    others = [
        f"{name} {version} (here {here[name]})"
        for name, version in record.get("versions", {}).items()
        if here.get(name, version) != version
    ]
    took = f"in {record['seconds']:,.0f} s" if record["seconds"] >= 1 else "in less than a second"
    return f"{record['date']}, {record['device']}, {took}" + (
        f"; with other versions: {', '.join(others)}" if others else ""
    )


def _checks(claim, record):
    """Each check with what became of it and the numbers."""
    lines = [f"Checks at {record['profile']} size"]
    for row in record["checks"]:
        words = [
            render.outcome(row),
            f"{render.measured(row)} measured",
            f"{render.required(row)} required",
        ]
        words += [] if row["paper"] is None else [f"the paper has {render.number(row['paper'])}"]
        lines.append(_wrapped(_asked(claim, row), "  "))
        lines.append(_wrapped(plain("; ".join(words)), " " * 6))
    return "\n".join(lines) if record["checks"] else ""


def _open_checks(claim, record, room):
    """The checks that do not hold, each in a sentence with its numbers; those that fail first.

    As many as there is room for, in lines, but at least one.
    """
    rows = [row for row in record["checks"] if row["outcome"] != "holds"]
    rows.sort(key=lambda row: row["outcome"] != "fails")
    lines = [f"Checks that do not hold, at {record['profile']} size"]
    for k, row in enumerate(rows):
        numbers = f"{render.measured(row)} measured, {render.required(row)} required"
        told = _wrapped(f"{render.outcome(row)}, {numbers}: {_asked(claim, row)}", "  ")
        told = told.splitlines()
        if k and len(lines) + len(told) >= room:
            lines.append(f"  and {len(rows) - k} more")
            break
        lines += told
    return "\n".join(lines) if rows else ""


def _asked(claim, row):
    return plain(render.sentences(claim).get(row["name"], row["name"]))


def _parameters(claim):
    """Each with its smoke value, its comment in the notebook, its values at other sizes.

    And its range.
    """
    sizes = [size for size in rule.SIZES if records.has_size(claim.id, size)]
    values = {size: registry.parameters_at(claim.id, size) for size in sizes}
    said, ranges = comments(claim.page.notebook), claim.page.ranges
    lines = ["Parameters (at smoke size, then where other sizes differ, and what is allowed)"]
    for name, smoke in values["smoke"].items():
        if name == "profile":
            continue
        lines.append(
            _wrapped(
                f"{name} = {smoke!r}" + (f"  # {said[name]}" if said[name] else ""), "  ", " " * 6
            )
        )
        words = [f"{size} {values[size][name]!r}" for size in sizes if values[size][name] != smoke]
        words += [_range(ranges[name], smoke)] if name in ranges else []
        lines += [_wrapped("; ".join(words), " " * 6)] if words else []
    return "\n".join(lines)


def _range(allowed, value):
    kind = value[0] if isinstance(value, list) else value
    return (
        f"one of {', '.join(allowed)}"
        if isinstance(kind, str)
        else "from {} to {}".format(*allowed)
    )


def _files(claim, record):
    """Where pictures, the executed notebook, and the user's own runs lie."""
    lines = []
    if record:
        folder = paths.FIGURES / record["profile"] / claim.id
        if record["figures"]:
            lines += [
                "Figures",
                *(f"  {paths.relative(folder / name)}" for name in record["figures"]),
            ]
        executed = records.executed(claim.page.id, record["profile"])
        lines += ["Executed notebook", f"  {paths.relative(executed)}"]
    own = _own_runs(claim)
    lines += ["Your own runs", *own] if own else []
    return "\n".join(lines)


def _own_runs(claim):
    """Lines with the folders of runs with changed parameters or by hand, the last one last."""
    own = paths.FIGURES.glob(f"custom/*/{claim.id}/result.json")
    own = sorted(own, key=lambda path: path.stat().st_mtime)
    return [f"  {paths.relative(path.parent)}" for path in own]


def _ways_on(claim, size, record):
    """The executed notebook, the parameters, and the commands that run the claim and show more."""
    again, changed = _commands(claim, size)
    lines = [_wrapped(", ".join(_names(claim)), "Parameters   ")]
    if record:
        executed = paths.relative(records.executed(claim.page.id, record["profile"]))
        lines.append(f"Notebook     {executed}")
    lines += [
        f"Run again    {again}",
        f"Change it    {changed}",
        f"Everything   overparam show {claim.id} --all",
    ]
    if own := _own_runs(claim):
        last = f"the last {MOST_RUNS} of {len(own)}" if len(own) > MOST_RUNS else "all"
        lines += [f"Your own runs ({last})", *own[-MOST_RUNS:]]
    return "\n".join(lines)


def _names(claim):
    """The parameters that can be changed."""
    return [name for name in notebook_parameters(claim.page.notebook) if name != "profile"]


def _commands(claim, size):
    """The commands that run a claim again, and with another value of a parameter."""
    names = _names(claim)
    sizes = [name for name in names if name not in ("seed", "n_seeds", "device")]
    name = (sizes or names)[0]
    return [
        f"overparam run {claim.id} --profile {size or 'smoke'}",
        f"overparam run {claim.id} -p {name}=...",
    ]


def _again(claim, size, record):
    again, changed = _commands(claim, size)
    lines = ["Run it again", f"  {again}"]
    lines += [_wrapped(f"took {took(record)}", " " * 4)] if record else []
    lines += ["Run it with another value, which gives a record of its own", f"  {changed}"]
    notebook = paths.relative(claim.page.notebook)
    lines += [_wrapped(f"Work in a copy of {notebook}"), "  make lab"]
    return "\n".join(lines)


def took(record):
    """How long a record took, and on what: 3.4 min on CPU, 2 threads."""
    seconds = record["seconds"]
    time = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
    time = time if seconds < 6000 else f"{seconds / 3600:.1f} h"
    return (
        f"{time} on {record['device']}{', the last sitting alone' if record.get('resumed') else ''}"
    )
