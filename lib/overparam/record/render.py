"""A record in words: the sentence of its verdict and the table of its checks, as Markdown and as plain text."""

import math
import re

ROUNDING = 1e-12  # what rounding leaves of zero differs between machines
_WORDS = {"<": "below {}", "<=": "at most {}", ">": "above {}", ">=": "at least {}", "==": "{}"}


def number(value, bounds=()):
    """Three significant digits, which are stable on other machines; up to five where fewer would read like a bound."""
    if value is None:
        return "nan"
    if 0 < abs(value) < ROUNDING:
        return "rounding"
    apart = (k for k in range(3, 6) if all(f"{value:.{k}g}" != f"{bound:.{k}g}" for bound in bounds))
    return f"{value:.{next(apart, 3)}g}"


def measured(row):
    """What was measured in a check, with the 95 % interval where there is one. Not for [A]: it is rounding."""
    if row["tag"] == "A" or (row["superseded_by"] and row["value"] is None):
        return ""
    low, high = row.get("spread") or (None, None)
    value = number(row["value"], row["threshold"] if row["relation"] == "in" else [row["threshold"]])
    if row["value"] is None or not row.get("spread"):
        return value
    if low is None and high is None:
        return f"{value} (too few seeds for a spread)"
    if None not in (low, high) and math.isclose(row["value"] - low, high - row["value"], rel_tol=1e-6, abs_tol=1e-300):
        return f"{value} ± {(high - low) / 2:.2g}"
    ends = ["unbounded" if end is None else number(end) for end in (low, high)]
    return f"{value} ({ends[0]} to {ends[1]})"


def required(row):
    """What a check requires, in words."""
    if row["relation"] == "in":
        return "{:g} to {:g}".format(*row["threshold"])
    return _WORDS[row["relation"]].format(f"{row['threshold']:g}")


def outcome(row):
    """What became of a check, in words. One that could not be measured counts as one that fails."""
    if row["superseded_by"]:
        return f"superseded by {row['superseded_by']}: {row['reason']}"
    if not row["applies"]:
        return f"not judged: {row['without']}" if row.get("without") else "does not apply"
    if row.get("undecided"):
        return "undecided"
    return "holds" if row["holds"] else "not measured" if row["value"] is None else "fails"


def opening(record):
    """The verdict as a sentence's beginning."""
    words = "Partly reproduced" if record["verdict"] == "partly" else record["verdict"].capitalize()
    return words + (", with changed parameters." if record.get("changed") else ".")


def sentence(record):
    """The verdict, what decides it, and by what margin: plain text."""
    rows = [row for row in record["checks"] if row["applies"]]
    opposite = [row for row in rows if row["tag"] == "C" and row["holds"]]
    deciding = [row for row in rows if row["tag"] in "RN"]
    unclear = [row for row in deciding if row.get("undecided")]
    held = [row for row in deciding if row["holds"]]
    failed = [row for row in deciding if not row["holds"] and row not in unclear]
    words = []
    if record["verdict"] == "contradicted":
        words.append(f"The opposite was measured: {_case(max(opposite, key=_margin))}")
    elif record["verdict"] == "not testable at this scale":
        asked = [row for row in deciding if row["tag"] == "R"]
        which = "the deciding check" if len(asked) == 1 else "every deciding check"
        open_ones = f"The threshold lies inside the spread of {which}: more seeds are needed."
        words.append(open_ones if asked else "No deciding check applies at this size.")
    elif not failed:
        few = {1: "The deciding check holds", 2: "Both deciding checks hold"}
        which = few.get(len(held), f"All {len(held)} deciding checks hold")
        which = f"{len(held)} of {len(deciding)} deciding checks hold, none fails" if unclear else which
        words.append(f"{which}{'; the closest is' if len(held) > 1 else ':'} {_case(min(held, key=_margin))}")
    elif len(deciding) == 1:
        words.append(f"The deciding check fails: {_case(failed[0])}")
    else:
        worst = max(failed, key=_margin)
        words.append(f"{len(held)} of {len(deciding)} deciding checks hold; furthest from it is {_case(worst)}")
    if unclear and "seeds" not in words[0]:
        count = f"{len(unclear)} are" if len(unclear) > 1 else "One is"
        words.append(f"{count} undecided: the threshold lies inside the spread, and more seeds would decide.")
    if _size(record) == "smoke":
        words.append("(Smoke size: shows that the computation runs, and decides nothing about the paper.)")
    return " ".join(words)


def _size(record):
    return record["parameters"]["profile"] if record.get("changed") else record["profile"]


def _case(row):
    wanted = "between {:g} and {:g}".format(*row["threshold"]) if row["relation"] == "in" else required(row)
    return f"{row['wording'].rstrip('. ')}: {measured(row)}, where {wanted} was required."


def _margin(row):
    """How far the value, to the digits shown, is from the threshold, as a share of the larger of the two."""
    if row["value"] is None:
        return math.inf
    value = float(f"{row['value']:.3g}")
    bounds = row["threshold"] if row["relation"] == "in" else [row["threshold"]]
    return min(abs(value - bound) / max(abs(value), abs(bound), ROUNDING) for bound in bounds)


def markdown(record):
    """A record's verdict sentence, its data and sizes, the deciding checks, and the others folded."""
    parts = [f"**{opening(record)}** {_escaped(sentence(record))}"]
    parts += [f"*{_escaped(line)}*" for line in _about(record)]
    first = [row for row in record["checks"] if row["applies"] and row["tag"] in "RNC"]
    others = [row for row in record["checks"] if row not in first]
    parts += [_table(first)] if first else []
    if others:
        count = f"{len(others)} further checks inform" if len(others) > 1 else "One further check informs"
        parts.append(f"<details><summary>{count}</summary>\n\n{_table(others)}\n\n</details>")
    return "\n\n".join(parts)


def _about(record):
    data = {d["name"]: d["stand_in"] for d in record["data"] if d["stand_in"]}
    lines = [f"Changed: {changes(record['changed'])}"] if record.get("changed") else []
    if lines and not any(row.get("reference") is not None for row in record["checks"]):
        lines[0] += f" (no record at {_size(record)} size is here to compare with)"
    lines += [f"Data: {name} ({stand_in})" for name, stand_in in data.items()]
    lines += [f"Sizes: {record['sizes']}"] if record.get("sizes") else []
    return lines + ([f"Reduced: {record['reduced']}"] if record.get("reduced") else [])


def changes(changed):
    """{name: [reference, value]} in words: n: 50 -> 60."""
    return ", ".join(f"{name}: {before!r} -> {after!r}" for name, (before, after) in changed.items())


def _table(rows):
    beside = ["reference"] if "reference" in rows[0] else []  # of a run with changed parameters
    spreads = any(row.get("spread") and row["tag"] != "A" for row in rows)
    value = "measured, with 95 % interval" if spreads else "measured"
    heads = ["what was asked", value, *beside, "required", "the paper", "outcome"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in rows:
        asked = _escaped(row["wording"])
        if row.get("added"):
            asked += f" *(decided after the result: {_escaped(row['added'])})*"
        paper = "–" if row["paper_value"] is None else number(row["paper_value"])
        values = [measured(row) or "–", *(_reference(row) for _ in beside)]
        lines.append(f"| {asked} | {' | '.join(values)} | {_escaped(required(row))} | {paper} | {_mark(row)} |")
    return "\n".join(lines)


def _reference(row):
    return "–" if row["reference"] is None or row["tag"] == "A" else number(row["reference"])


def _mark(row):
    words = _escaped(outcome(row))
    if words not in ("holds", "fails"):
        return f"*{words}*"
    if row["tag"] == "C":
        return "✗ the opposite was measured" if row["holds"] else "✓ the opposite was not measured"
    return ("✓" if row["holds"] else "✗") + (" our own computation" if row["tag"] == "A" else "")


def _escaped(text):
    """Text that Markdown shows as it is, in one cell of a table; formulas between dollars stay formulas."""
    parts = re.split(r"(\$[^$]+\$)", " ".join(text.split()))
    return "".join(part if i % 2 else re.sub(r"([\\|*_`\[\]<>$~])", r"\\\1", part) for i, part in enumerate(parts))


def plain(record):
    """The same for a terminal: the verdict, its sentence, and one line for each check by its name."""
    first = f"{record['claim']}  [{record['profile']}]  {record['verdict'].upper()}"
    first += ", WITH CHANGED PARAMETERS" if record.get("changed") else ""
    lines = [first, sentence(record), *_about(record)]
    columns = [lambda row: row["name"], measured, required]
    width, values, wanted = (max((len(of(row)) for row in record["checks"]), default=0) for of in columns)
    for row in record["checks"]:
        beside = [] if row.get("reference") is None else [f"reference {_reference(row)}"]
        beside += [] if row["paper_value"] is None else [f"paper {number(row['paper_value'])}"]
        cells = f"{row['name']:<{width}}  {measured(row):>{values}}  {required(row):<{wanted}}"
        lines.append(f"[{row['tag']}] {cells}  {outcome(row)}" + (f"  ({', '.join(beside)})" if beside else ""))
    return "\n".join(lines)
