"""All claims as a list, and one claim in full, for a terminal.

At most as wide as it is, 80 columns in a pipe.
"""

import shutil
import textwrap

from rich.text import Text

from overparam.errors import ParameterError

from . import findings, fingerprints, paths, records, registry, render, rule
from .markup import plain
from .parameters import comments, near, notebook_parameters

NOT_RUN, UNREADABLE = "not run", "unreadable"
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
COLOURS.update({rule.NOT_TESTED: "dim", UNREADABLE: "red", NOT_RUN: "dim"})
WIDEST = 100  # columns of prose that can be read


def best(states):
    """The size whose verdict counts, of {size: state}, or None."""
    return records.counting(
        {size: state["stale"] for size, state in states.items() if state["verdict"]}
    )


def listing(rows, papers=(), verdict=None):
    """Lines of rich's Text.

    Under each paper its claims, each with the verdict that counts and the size it is of.

    rows: of `records.overview`; papers, verdict: only these. Raises ParameterError for names that
    there are not.
    """
    known = list(dict.fromkeys(row["paper"] for row in rows))
    for paper in papers:
        if paper not in known:
            raise ParameterError(
                f"unknown paper {paper!r}; {near(paper, known)} there are {', '.join(known)}"
            )
    if verdict and not any(word.startswith(verdict) for word in COLOURS):
        raise ParameterError(f"unknown verdict {verdict!r}; there are {', '.join(COLOURS)}")
    states = {row["claim"]: verdict_of(row["sizes"]) for row in rows}
    shown = [row for row in rows if row["paper"] in (papers or known)]
    chosen = [row for row in shown if states[row["claim"]][0].startswith(verdict or "")]
    width = max((len(row["claim"]) for row in chosen), default=0)
    lines = []
    for paper in papers or known:
        own = [row for row in chosen if row["paper"] == paper]
        if not own:
            continue
        head = (
            f"{about_paper(paper)[0]}: "
            f"{counts([(row['kind'], states[row['claim']][0]) for row in own])}"
        )
        lines += [
            Text(),
            *(Text(part, "bold") for part in textwrap.wrap(head, 80, subsequent_indent=" ")),
        ]
        for row in own:
            word, star, size = states[row["claim"]]
            line = Text.assemble(
                f"  {row['claim']:<{width}}  ", (f"{word + star:<19}", COLOURS[word]), f"  {size}"
            )
            line.rstrip()
            lines.append(line)
    return lines[1:]


def verdict_of(states):
    """(word, star, size) of a claim: the star marks an outdated record."""
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


def shown(claim_id):
    """The text of `overparam show`.

    What is claimed and found, checks, parameters, figures, and how to run it again.
    """
    claim = registry.claim(claim_id)
    states = records.overview([claim_id])[0]["sizes"]
    size = best(states)
    record = records.load(claim_id, size) if size else None
    parts = [
        _about(claim, states, record),
        _checks(claim, record) if record else "",
        _parameters(claim),
    ]
    parts += [_files(claim, record), _again(claim, size, record)]
    return "\n\n".join(filter(None, parts))


def _wrapped(text, first="", indent=None):
    """A text in lines as wide as the terminal.

    Indent: of all but the first line (default: as wide as `first`).
    """
    width = min(shutil.get_terminal_size().columns, WIDEST)
    rest = " " * len(first) if indent is None else indent
    return textwrap.fill(
        " ".join(text.split()),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _about(claim, states, record):
    lines = [
        claim.id,
        _wrapped(about_paper(claim.paper)[1].replace(": ", ", ", 1)),
        _wrapped(claim.source),
        "",
    ]
    lines += [_wrapped(plain(claim.title)), "", _wrapped(plain(claim.claim), "Claim    ")]
    if record:
        found = findings.finding(claim, record, paths.FIGURES / record["profile"] / claim.id)
        lines.append(_wrapped(plain(found), "Found    "))
        lines += [
            _wrapped(plain(f"{fact}: {text}"), " " * 9)
            for fact, text in render.facts(claim, record)
        ]
        lines.append(_wrapped(render.frozen(claim, record), "Frozen   "))
        lines.append(_wrapped(_made(record), "Made     "))
    else:
        lines.append("Found    nothing yet: it has not been run")
    ran = [
        f"{size} {state['verdict']}{'*' * state['stale']}"
        for size, state in states.items()
        if state["verdict"]
    ]
    lines += [_wrapped(", ".join(ran), "Sizes    ")] if ran else []
    lines += [
        _wrapped(plain(state["error"]), "Error    ")
        for state in states.values()
        if "error" in state
    ]
    return "\n".join(lines)


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
    return f"{record['date']}, {record['device']}" + (
        f"; with other versions: {', '.join(others)}" if others else ""
    )


def _checks(claim, record):
    asks, lines = render.sentences(claim), [f"Checks at {record['profile']} size"]
    for row in record["checks"]:
        words = [
            render.outcome(row),
            f"{render.measured(row)} measured",
            f"{render.required(row)} required",
        ]
        words += [] if row["paper"] is None else [f"the paper has {render.number(row['paper'])}"]
        lines.append(_wrapped(plain(asks.get(row["name"], row["name"])), "  "))
        lines.append(_wrapped(plain("; ".join(words)), " " * 6))
    return "\n".join(lines) if record["checks"] else ""


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
    """Where pictures, executed notebook, and records with changed parameters lie."""
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
    own = sorted(paths.FIGURES.glob(f"custom/*/{claim.id}/result.json"))
    lines += (
        ["Runs with changed parameters", *(f"  {paths.relative(path.parent)}" for path in own)]
        if own
        else []
    )
    return "\n".join(lines)


def _again(claim, size, record):
    notebook = claim.page.notebook
    name = next(
        name for name in notebook_parameters(notebook) if name not in ("profile", "seed", "device")
    )
    lines = ["Run it again", f"  overparam run {claim.id} --profile {size or 'smoke'}"]
    if record:
        lines.append(
            textwrap.fill(
                f"took {took(record)}", 80, initial_indent="    ", subsequent_indent="    "
            )
        )
    lines.append(
        f"  overparam run {claim.id} -p {name}=...      with another value: a record of its own"
    )
    lines.append(f"  make lab                {paths.relative(notebook)} as a copy to work in")
    return "\n".join(lines)


def took(record):
    """How long a record took, and on what: 3.4 min on CPU, 2 threads."""
    seconds = record["seconds"]
    time = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
    time = time if seconds < 6000 else f"{seconds / 3600:.1f} h"
    return (
        f"{time} on {record['device']}{', the last sitting alone' if record.get('resumed') else ''}"
    )
