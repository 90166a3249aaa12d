"""All claims as a list, and one claim in full, for a terminal: at most as wide as it is, 80 columns in a pipe."""

import shutil
import textwrap

from rich.text import Text

from .. import paths
from ..errors import ParameterError
from ..record import checks, render
from ..record.parameters import comments, near, notebook_parameters
from . import runner
from .site import markup

COLOURS = {
    "reproduced": "green", "partly": "yellow", "not reproduced": "red", "contradicted": "red",
    "not testable": "dim", "unreadable": "red", "not run": "dim",
}  # fmt: skip
WIDEST = 100  # columns of prose that can be read


def best(states):
    """The size whose verdict counts, of {profile: state}, or None."""
    return runner.counting({profile: state["stale"] for profile, state in states.items() if state["verdict"]})


def listing(rows, papers=(), verdict=None):
    """Lines of rich's Text: under each paper its claims, each with the verdict that counts and the size it is of.

    rows: of `runner.overview`; papers, verdict: only these. Raises ParameterError for names that there are not.
    """
    known = list(dict.fromkeys(row["paper"] for row in rows))
    for paper in papers:
        if paper not in known:
            raise ParameterError(f"unknown paper {paper!r}; {near(paper, known)} there are {', '.join(known)}")
    if verdict and not any(word.startswith(verdict) for word in COLOURS):
        raise ParameterError(f"unknown verdict {verdict!r}; there are {', '.join(COLOURS)}")
    states = {row["claim"]: verdict_of(row["profiles"]) for row in rows}
    shown = [row for row in rows if row["paper"] in (papers or known)]
    chosen = [row for row in shown if states[row["claim"]][0].startswith(verdict or "")]
    width = max((len(row["claim"]) for row in chosen), default=0)
    lines = []
    for paper in papers or known:
        own = [row["claim"] for row in chosen if row["paper"] == paper]
        if own:
            head = f"{heading(paper)[0]}: {_counts([states[claim][0] for claim in own])}"
            lines += [Text(), *(Text(part, "bold") for part in textwrap.wrap(head, 80, subsequent_indent=" "))]
        for claim in own:
            word, star, size = states[claim]
            lines.append(Text.assemble(f"  {claim:<{width}}  ", (f"{word + star:<15}", COLOURS[word]), f"  {size}"))
            lines[-1].rstrip()
    return lines[1:]


def verdict_of(states):
    """(word, star, size) of a claim: the star marks a record of other sources than the present ones."""
    size = best(states)
    if size is None:
        return "unreadable" if any("error" in state for state in states.values()) else "not run", "", ""
    return _short(states[size]["verdict"]), "*" * states[size]["stale"], size


def _short(verdict):
    return verdict.removesuffix(" at this scale")  # which the size beside it says


def _counts(words):
    return ", ".join(f"{words.count(word)} {word}" for word in COLOURS if word in words)


def heading(paper):
    """(short name, title) of a paper, from the first line of its text for the site."""
    file = paths.SITE / "papers" / f"{paper}.md"
    text = file.read_text(encoding="utf-8") if file.exists() else paper
    name, _, title = text.partition("\n")[0].removeprefix("# ").partition(": ")
    return name, title


def shown(claim_id):
    """The text of `overparam show`: what is claimed and found, checks, parameters, figures, and how to run it again."""
    spec = checks.spec(claim_id)
    states = next(row["profiles"] for row in runner.overview([claim_id]))
    size = best(states)
    record = runner.record(claim_id, size) if size else None
    parts = [_about(spec, states, record)]
    if record:
        parts.append(_checks(record))
    parts += [_parameters(spec, states), _files(spec, size, record), _again(spec, size, record)]
    return "\n\n".join(filter(None, parts))


def _wrapped(text, first="", indent=None):
    width = min(shutil.get_terminal_size().columns, WIDEST)
    rest = " " * len(first) if indent is None else indent
    return textwrap.fill(
        " ".join(text.split()), width, initial_indent=first, subsequent_indent=rest, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _about(spec, states, record):
    name, title = heading(spec.paper)
    lines = [spec.id, _wrapped(f"{name}, {title}" if title else name), _wrapped(spec.source), ""]
    lines.append(_wrapped(markup.plain(spec.title), "Claim    "))
    if record:
        found = [render.opening(record) + " " + render.sentence(record), *record.get("summary", [])]
        for text in found:
            rows = [row for row in text.splitlines() if set(row) - set("|-: ")] if text.startswith("|") else [text]
            lines += [_wrapped(markup.plain(row), "Found    " if row is found[0] else " " * 9) for row in rows]
    else:
        lines.append("Found    nothing yet: it has not been run")
    ran = [f"{p} {_short(s['verdict'])}{'*' * s['stale']}" for p, s in states.items() if s["verdict"]]
    lines += [_wrapped(", ".join(ran), "Sizes    ")] if ran else []
    lines += [_wrapped(f"{markup.plain(state['error'])}", "Error    ") for state in states.values() if "error" in state]
    return "\n".join(lines)


def _checks(record):
    used = [tag for tag in checks.TAGS if any(row["tag"] == tag for row in record["checks"])]
    tags = ", ".join(f"{tag} {checks.TAGS[tag]}" for tag in used)
    lines = [_wrapped(f"Checks at {record['profile']} size ({tags})")]
    for row in record["checks"]:
        value = render.measured(row)
        words = [render.outcome(row), *([f"{value} measured"] if value else []), f"{render.required(row)} required"]
        words += [] if row["paper_value"] is None else [f"the paper has {render.number(row['paper_value'])}"]
        lines += [
            _wrapped(markup.plain(row["wording"]), f"  [{row['tag']}] "),
            _wrapped(markup.plain("; ".join(words)), " " * 8),
        ]
    return "\n".join(lines)


def _parameters(spec, states):
    """Each with its smoke value, its comment in the notebook, its values at other sizes, and its range."""
    if not spec.path.exists():
        return ""
    said, sizes = comments(spec.path), [size for size in states if runner.defines(spec.id, size)]
    values = {size: checks.profile_parameters(spec.id, size)[0] for size in sizes}
    ranges = checks.profile_parameters(spec.id, "smoke")[1]
    lines = ["Parameters (at smoke size, then where other sizes differ, and what is allowed)"]
    for name in notebook_parameters(spec.path):
        if name == "profile":
            continue
        smoke = values["smoke"][name]
        lines.append(_wrapped(f"{name} = {smoke!r}" + (f"  # {said[name]}" if said[name] else ""), "  ", " " * 6))
        words = [f"{size} {values[size][name]!r}" for size in sizes if values[size][name] != smoke]
        words += [_range(ranges[name], smoke)] if name in ranges else []
        lines += [_wrapped("; ".join(words), " " * 6)] if words else []
    return "\n".join(lines)


def _range(allowed, value):
    kind = value[0] if isinstance(value, list) else value
    return f"one of {', '.join(allowed)}" if isinstance(kind, str) else "from {} to {}".format(*allowed)


def _files(spec, size, record):
    figures = [paths.FIGURES / size / spec.id / name for name in record["figures"]] if record else []
    own = sorted(paths.FIGURES.glob(f"custom/*/{spec.id}/result.json"))
    lines = ["Figures", *(f"  {runner.relative(path)}" for path in figures)] if figures else []
    lines += ["Runs with changed parameters", *(f"  {runner.relative(path.parent)}" for path in own)] if own else []
    return "\n".join(lines)


def _again(spec, size, record):
    lines = ["Run it again", f"  overparam run {spec.id} --profile {size or 'smoke'}"]
    if record:
        lines.append(textwrap.fill(f"took {took(record)}", 80, initial_indent="    ", subsequent_indent="    "))
    name = next(name for name in [*notebook_parameters(spec.path)] if name not in ("profile", "seed", "device"))
    lines.append(f"  overparam run {spec.id} -p {name}=...      with another value: a record of its own")
    lines.append(f"  make lab                {runner.relative(spec.path)} as a copy to work in")
    return "\n".join(lines)


def took(record):
    """How long a record took, and on what: 3.4 min on CPU, 2 threads."""
    seconds, last = record["seconds"], ", the last sitting alone" if record.get("resumed") else ""
    text = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
    return f"{text if seconds < 6000 else f'{seconds / 3600:.1f} h'} on {record['device']}{last}"
