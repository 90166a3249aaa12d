"""A record in words: its verdict, the three facts of a theorem, and the table of its checks."""

import math
import re

from . import findings, registry, rule

_WORDS = {"<": "below {}", "<=": "at most {}", ">": "above {}", ">=": "at least {}", "==": "{}"}
PRELIMINARY = "Preliminary"
_MARKS = {"holds": "✓", "fails": "✗"}


def number(value, thresholds=()):
    """Three significant digits, which are stable on other machines.

    Up to five where they read like a threshold.
    """
    if value is None:
        return "nan"
    if 0 < abs(value) < findings.ROUNDING:
        return "rounding"
    apart = (
        k for k in range(3, 6) if all(f"{value:.{k}g}" != f"{bound:.{k}g}" for bound in thresholds)
    )
    return findings.rounded(value, next(apart, 3))


def measured(row):
    """What was measured in a check, with the 95 % interval where there is one."""
    value = number(row["value"], rule.requirement(row["holds"])[1])
    if row["value"] is None or not row.get("interval"):
        return value
    low, high = row["interval"]
    if low is None and high is None:
        return f"{value} (one draw has no interval)"
    if None not in (low, high) and math.isclose(
        row["value"] - low, high - row["value"], rel_tol=1e-6, abs_tol=1e-300
    ):
        half = (high - low) / 2
        if 0 < max(abs(row["value"]), half) < findings.ROUNDING:
            return value
        return findings.with_half_width(row["value"], half, _said)
    ends = ["unbounded" if end is None else number(end) for end in (low, high)]
    return f"{value} ({ends[0]} to {ends[1]})"


def _said(value, digits):
    """A very small or very large number; what rounding leaves of zero differs between machines."""
    return "rounding" if 0 < abs(value) < findings.ROUNDING else findings.rounded(value, digits)


def required(row):
    """What a check requires, in words."""
    bounds = rule.requirement(row["holds"])[1]
    if len(bounds) == 2:
        return "{:g} to {:g}".format(*bounds)
    return _WORDS[re.match(r"[<>=]+", row["holds"])[0]].format(f"{bounds[0]:g}")


def outcome(row):
    """What became of a check, in words. One that could not be measured counts as one that fails."""
    return "not measured" if row["value"] is None and row["outcome"] == "fails" else row["outcome"]


def count(record):
    """How the checks came out, as a sentence; with the reason where a requirement is not met."""
    words = findings.generated(record)
    if size(record) == "smoke":
        words += (
            " A smoke run shows that the computation runs, and decides nothing about the paper."
        )
    return words


def size(record):
    """The size of a run; `profile` of a record is "custom" where parameters were changed."""
    return record["parameters"]["profile"]


def facts(claim, record):
    """[(name, sentence)] of a claim: for a theorem as printed, where measured, conditions.

    Else its verdict.
    """
    changed = ", with changed parameters" if record.get("changed") else ""
    verdict = f"{record['verdict'].capitalize()}{changed}. {count(record)}"
    if claim.kind != "theorem":
        return [("Verdict", verdict)]
    printed = f"{registry.PRINTED[claim.printed].capitalize()}. {claim.note}".strip()
    return [
        ("As printed", printed),
        ("Where measured", verdict),
        ("Conditions", conditions(record)),
    ]


def conditions(record):
    """Whether a theorem's own conditions were met where it was measured."""
    stated = record.get("conditions")
    if stated is None:
        return "Not compared on this page."
    if stated["factor"] is not None and stated["factor"] <= 1:
        return f"Met. {stated['text']}"
    factor = (
        "above $10^{308}$"
        if stated["factor"] is None
        else f"of {findings.spoken(stated['factor'])}"
    )
    return f"Not met, by a factor {factor}. {stated['text']}"


def frozen(claim, record):
    """A line on when the checks were fixed, and whether the draws had been seen before."""
    own = registry.frozen(claim.paper).get(claim.slug)
    if own is None:
        seen = ", with draws that had been seen during development"
        drawn = "n_seeds" in record["parameters"]
        return f"{PRELIMINARY}: run before the checks were frozen{seen if drawn else ''}."
    changes = [f"{change.date}: {change.what} ({change.why})" for change in claim.changes]
    since = f" Changed since: {'; '.join(changes)}." if changes else ""
    if record["date"] < str(own["date"]):
        when = "; this record was made before the freeze"
    elif "n_seeds" not in record["parameters"]:
        when = ", before this run"
    else:
        then = "before" if unseen(claim, record) else "after"
        when = f", {then} these draws had first been run"
    return f"Checks frozen on {own['date']}{when}.{since}"


def unseen(claim, record):
    """Whether a record's draws were first run after its checks were frozen."""
    own = registry.frozen(claim.paper).get(claim.slug)
    if own is None or record["date"] < str(own["date"]):
        return False
    fresh = {own["seeds"].get(size(record)), *(change.seed for change in claim.changes)}
    drawn = "n_seeds" in record["parameters"]
    return not drawn or record["parameters"].get("seed") in fresh


def markdown(claim, record):
    """A record's facts, its sizes and data, and the table of its checks."""
    told = [f"**{name}:** {_escaped(text)}" for name, text in facts(claim, record)]
    parts = ["  \n".join(told), _table(claim, record)]
    parts += [f"*{_escaped(line)}*" for line in about(claim, record)]
    return "\n\n".join(filter(None, parts))


def about(claim, record):
    """Lines on what was changed, the data, the size, and the freeze."""
    lines = []
    if record.get("changed"):
        lines.append(f"Changed: {changes(record['changed'])}")
        lines += [_reference(record)] if record["checks"] else []
    stand_ins = {data["name"]: data["stand_in"] for data in record["data"] if data["stand_in"]}
    lines += [f"Data: {name}: {stand_in}" for name, stand_in in stand_ins.items()]
    if why := registry.size_of(claim.id, size(record)).why:
        lines.append(f"At {size(record)} size: {why}")
    if any(row["outcome"] == "undecided" for row in record["checks"]):
        lines.append("Undecided: the 95 % interval has values that satisfy the check, and others.")
    if size(record) != "smoke":
        left_out = [check.asks for check in claim.checks if size(record) not in check.sizes]
        lines += [f"Not asked at this size: {' '.join(left_out)}"] if left_out else []
        lines.append(frozen(claim, record))
    return lines


def _reference(record):
    """A line on what a run with changed parameters is compared with, or how to make that."""
    source = record.get("reference")
    if source is None:
        command = f"overparam run {record['claim']} --profile {size(record)}"
        return f"Reference: there is none here yet; `{command}` makes it."
    compared = any(row.get("reference") is not None for row in record["checks"])
    return f"Reference: {source}{'' if compared else ', which has none of these checks'}."


def changes(changed):
    """{name: [reference, value]} in words: n: 50 -> 60."""
    return ", ".join(
        f"{name}: {before!r} -> {after!r}" for name, (before, after) in changed.items()
    )


def sentences(claim):
    """{check name: the sentence that is asked} as registered today."""
    return {check.name: check.asks for check in claim.checks}


def open_checks(claim, record):
    """[(what became of it, what was measured, what it asks)] of the checks that do not hold.

    None where a requirement is not met: they say nothing then.
    """
    asks, rows = sentences(claim), record["checks"]
    rows = [] if record["unmet"] else [row for row in rows if row["outcome"] != "holds"]
    words = {"fails": "failed", "undecided": "undecided", "not measured": "not measured"}
    return [
        (words[outcome(row)], findings.measured(row), asks.get(row["name"], row["name"]))
        for row in rows
    ]


def _table(claim, record):
    """The checks as a Markdown table; empty where none was asked."""
    rows, asks = record["checks"], sentences(claim)
    if not rows:
        return ""
    value = (
        "measured, with 95 % interval" if any(row.get("interval") for row in rows) else "measured"
    )
    columns = {
        "check": [_escaped(asks.get(row["name"], row["name"])) for row in rows],
        value: [measured(row) for row in rows],
    }
    if record.get("changed"):
        columns["reference"] = [_or_dash(row.get("reference")) for row in rows]
    columns["required"] = [_escaped(required(row)) for row in rows]
    if any(row["paper"] is not None for row in rows):
        columns["the paper"] = [_or_dash(row["paper"]) for row in rows]
    columns["outcome"] = [_MARKS.get(outcome(row), outcome(row)) for row in rows]
    lines = [
        f"| {' | '.join(cells)} |" for cells in (columns, *zip(*columns.values(), strict=True))
    ]
    lines[1:] = [_typeset(line) for line in lines[1:]]
    return "\n".join([lines[0], "|---" * len(columns) + "|", *lines[1:]])


def _typeset(cells):
    """Numbers such as 1e-06 as powers of ten."""
    powers = re.sub(r"(-?\d[\d.]*)e([+-]\d+)", lambda m: f"${m[1]}\\cdot10^{{{int(m[2])}}}$", cells)
    return powers.replace(r"$1\cdot10", "$10")


def _or_dash(value):
    return "–" if value is None else number(value)


def _escaped(text):
    """Text that Markdown shows as it is, in one cell of a table.

    Formulas and code between backticks stay theirs.
    """
    words, special = _taken_apart(" ".join(text.split()))
    shown = [re.sub(r"([\\|*_`\[\]<>$~])", r"\\\1", part) for part in words]
    return _joined(shown, special)


def in_cell(text):
    """Markdown text whose bars do not end the cell of a table."""
    words, special = _taken_apart(text)
    return _joined([part.replace("|", "\\|") for part in words], special)


def _taken_apart(text):
    """(the words around formulas and code, the formulas and code without bars) of a text."""
    parts = re.split(r"(\$[^$]+\$|`[^`]*`)", text)
    bars = {"$": "\\vert ", "`": "\\|"}
    special = [part.replace("\\|", "\\Vert ").replace("|", bars[part[0]]) for part in parts[1::2]]
    return parts[::2], special


def _joined(words, special):
    return "".join(word + rest for word, rest in zip(words, [*special, ""], strict=True))


def plain(claim, record):
    """The same for a terminal: the verdict, and one line for each check by its name."""
    changed = ", WITH CHANGED PARAMETERS" if record.get("changed") else ""
    lines = [
        f"{record['claim']}  [{record['profile']}]  {record['verdict'].upper()}{changed}",
        count(record),
    ]
    lines += about(claim, record)
    rows = [(row["name"], measured(row), required(row)) for row in record["checks"]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, (name, value, wanted) in zip(record["checks"], rows, strict=True):
        line = f"  {name:<{widths[0]}}  {value:>{widths[1]}}  {wanted:<{widths[2]}}  {outcome(row)}"
        compared = {"reference": row.get("reference"), "paper": row["paper"]}
        beside = [
            f"{what} {number(other)}" for what, other in compared.items() if other is not None
        ]
        lines.append(line + (f"  ({', '.join(beside)})" if beside else ""))
    return "\n".join(lines)


def values_in(claim, text):
    """{check: value} in the text of `plain`, with as many digits as it shows."""
    values = {}
    for check in claim.checks:
        if row := re.search(rf"^  {re.escape(check.name)} +(\S+)", text, re.MULTILINE):
            values[check.name] = _value(row[1])
    return values


def _value(shown):
    """The number that `number` has shown; what rounding leaves of zero is zero."""
    if shown == "nan":
        return None
    return 0.0 if shown == "rounding" else float(shown.replace(",", ""))
