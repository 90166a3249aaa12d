"""Parameters of a notebook.

The literals of its `parameters` cell, and the validation of whatever overrides them.
"""

import ast
import copy
import difflib
import json
import math
import re
import reprlib
import sys
from functools import cache

from overparam.errors import ParameterError

from .errors import ClaimError


def distinct(*lists):
    """Whether no list has a value twice."""
    return all(len(set(values)) == len(values) for values in lists)


def ascending(*lists):
    """Whether the values of every list grow."""
    return all(list(values) == sorted(set(values)) for values in lists)


FUNCTIONS = {  # that the needs of a page may use
    function.__name__: function
    for function in (abs, all, any, ascending, distinct, len, max, min, range, set, sum, zip)
}


def notebook_parameters(path):
    """{name: literal} of a notebook's cell tagged `parameters`.

    Raises ClaimError where it holds anything else.
    """
    try:
        return copy.deepcopy(_literals(path.read_text(encoding="utf-8")))
    except Exception as error:  # MemoryError too: what a parser raises for nested brackets
        raise ClaimError(
            f"{path.name}: no readable cell of literals tagged 'parameters' ({error})"
        ) from error


@cache
def _literals(notebook):
    literals = {}
    for node in ast.parse(_cell(notebook)).body:
        (target,), value = node.targets, ast.literal_eval(node.value)
        if not _is_parameter(value):
            raise ValueError(f"{target.id} is neither a number, nor a word, nor a list of such")
        literals[target.id] = value
    return literals


def _cell(notebook):
    """The source of the cell of parameters, of a notebook's text."""
    cells = json.loads(notebook)["cells"]
    (source,) = [
        "".join(cell["source"])
        for cell in cells
        if "parameters" in cell["metadata"].get("tags", [])
    ]
    return source


def _is_parameter(value):
    if isinstance(value, list):
        return bool(value) and all(
            type(item) is type(value[0]) and _is_parameter(item) for item in value
        )
    return type(value) in (bool, int, float, str)


def comments(path):
    """{name: what the comment behind its literal says}.

    What a notebook's parameter is, and the paper's value.
    """
    text = _cell(path.read_text(encoding="utf-8"))
    lines = [line.encode() for line in text.split("\n")]  # the parser counts bytes
    ends = {
        node.targets[0].id: lines[node.end_lineno - 1][node.end_col_offset :]
        for node in ast.parse(text).body
    }
    return {name: rest.decode().strip("# ") for name, rest in ends.items()}


def near(word, words):
    """`did you mean ...?`, with the one or two words that are most like it.

    Empty where there is none.
    """
    found = difflib.get_close_matches(word, words, n=2, cutoff=0.5)
    return f"did you mean {' or '.join(found)}?" if found else ""


def unknown(name, said):
    """The ParameterError for a name that no parameter has.

    It asks whether one was meant that has the word in its name or its comment, or else one that is
    spelled alike.

    said: {parameter: its comment}, as of `comments`.
    """
    described = {other: text.partition(";")[0] for other, text in said.items()}
    by_name = [other for other in said if _words(name) <= _words(other)]
    by_comment = [other for other in said if _words(name) <= _words(described[other])]
    by_name.sort(key=len)
    by_comment.sort(key=lambda other: len(described[other]))
    meant = list(dict.fromkeys(by_name + by_comment))[:2] if _words(name) else []
    asked = near(name, said)
    if meant:
        named = [f"{other} ({described[other]})" if described[other] else other for other in meant]
        asked = f"did you mean {' or '.join(named)}?"
    words = f"{asked} there are {', '.join(said)}".strip()
    return ParameterError(f"unknown parameter {name!r}; {words}")


def _words(text):
    """The words of a text or of a name such as batch_size, without the s of a plural."""
    return {word.rstrip("s") for word in re.findall(r"[a-z]+", text.lower())}


def validated(given, defaults, ranges):
    """The given parameters, each of the type of its default and in its range.

    Raises ParameterError otherwise.
    """
    for name in given:
        if name not in defaults:
            raise unknown(name, dict.fromkeys(defaults, ""))
    return {
        name: _typed(name, value, defaults[name], ranges.get(name)) for name, value in given.items()
    }


def _typed(name, value, default, allowed):
    if isinstance(default, list):
        if not isinstance(value, list) or not value:
            raise ParameterError(
                f"{name} must be a non-empty list like {default}, not {reprlib.repr(value)}"
            )
        return [_typed(f"{name}[{i}]", item, default[0], allowed) for i, item in enumerate(value)]
    if type(value) is int and abs(value) > (
        sys.float_info.max if isinstance(default, float) else 2**53
    ):
        raise ParameterError(
            f"{name} is an integer of {value.bit_length()} bits, more than can be computed with"
        )
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(default):
        raise ParameterError(
            f"{name} must be {type(default).__name__} like {default!r}, not {reprlib.repr(value)}"
        )
    _in_range(name, value, allowed)
    return value


def _in_range(name, value, allowed):
    if isinstance(value, float) and not math.isfinite(value):
        raise ParameterError(f"{name} must be finite, not {value}")
    if isinstance(value, str) and not value.isprintable():
        raise ParameterError(f"{name} must be printable text, not {value!r}")
    if isinstance(value, str) and allowed and value not in allowed:
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    if isinstance(value, bool | str):
        return
    least = -math.inf if isinstance(value, float) else 0 if name.endswith("seed") else 1
    most = (
        2**32 - 1 if name.endswith("seed") else math.inf
    )  # what all generators take, and products with it as well
    low, high = allowed or (least, most)
    if not low <= value <= high:
        wanted = f"at least {low}" if high == math.inf else f"in [{low}, {high}]"
        raise ParameterError(f"{name} must be {wanted}, not {value}")


def require(parameters, needs):
    """Raise ParameterError, in the words of the need, where parameters do not go together."""
    for need in needs:
        if not eval(need.that, {"__builtins__": FUNCTIONS, **parameters}):
            named = {node.id for node in ast.walk(ast.parse(need.that)) if hasattr(node, "id")}
            given = [f"{name} = {parameters[name]!r}" for name in parameters if name in named]
            raise ParameterError(f"{need.says}, but {' and '.join(given)}")
