"""Formulas as the library's docstrings write them, in Unicode on one line, as LaTeX."""

import re

_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma",
    "τ": "tau", "υ": "upsilon", "φ": "varphi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta",
    "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega", "Σ": "sum",
}  # fmt: skip
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵏᵗᵖᵀ", "0123456789+-=()niktpT", strict=True))
_LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙᵢⱼₖₗₜₐ", "0123456789+-=()nijklta", strict=True))
_SYMBOLS = {
    "‖": r"\|", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "→": r"\to ", "∇": r"\nabla ", "∂": r"\partial ",
    "∏": r"\prod ", "∈": r"\in ", "·": r"\cdot ", "∞": r"\infty ", "−": "-", "×": r"\times ", "′": "'", "″": "''",
    "ℓ": r"\ell ", "⟨": r"\langle ", "⟩": r"\rangle ", "<": r"\lt ", ">": r"\gt ", "⊙": r"\odot ",
    "≈": r"\approx ", "%": r"\%", "#": r"\#", "&": r"\&", "~": r"\sim ",
}  # fmt: skip
_KNOWN = {"log", "ln", "exp", "min", "max", "cos", "sin", "cosh", "sinh", "arccos", "arctan", "Var"}
_NAMED = {"arsinh", "erf", "rad", "loss", "Back", "var", "rank", "sign", "tr", "Binom", "log10", "log2", "sup", "inf"}
_TOKEN = re.compile(
    rf"\s+|\.\.\.?|!!|[A-Za-z]+\d*|\d+(?:\.\d+)?|[{''.join(_RAISED)}]+|[{''.join(_LOWERED)}]+|<(?=\S)|."
)
_CLOSING = {"(": ")", "{": "}", "[": "]"}


def leading_formula(text):
    """(formula, rest) of a docstring's first paragraph that begins with a formula, else (None, text).

    The formula ends at the first comma, full stop or semicolon outside brackets that words follow.
    """
    opening = re.match(r"The smallest m with (?=m )", text)
    if opening:
        formula, rest = leading_formula(text[opening.end() :])
        return (formula, f"{opening[0]}this. {rest}".strip()) if formula else (None, text)
    depth, end = 0, len(text)
    for i, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        ends = char in ",;." and text[i + 1 : i + 2] in (" ", "")
        if ends and depth == 0 and _is_prose(text[i + 1 :].split(" ", 4)[:4]):
            end = i
            break
    formula = text[:end]
    words = re.findall(r"[A-Za-z]{2,}", re.sub(r"[_^](\w+|\{[^}]*\})", "", formula))
    plain = [w for w in words if w not in _KNOWN | _NAMED and not re.fullmatch(r"[A-Za-z]{2}", w)]
    symbolic = re.search(r"[\^√=≤≥/‖]|[⁰¹²³⁴-⁹₀-₉α-ω]", formula)
    short = {w for w in words if len(w) == 2} & {"of", "at", "in", "is", "or", "as", "by", "to", "An", "If", "on", "it"}
    if plain or short or not symbolic:
        return None, text
    return formula.rstrip("."), text[end + 1 :].strip()


def _is_prose(words):
    return not words or any(re.fullmatch(r"[A-Za-z]{3,}[,.:]?", w) and w not in _KNOWN | _NAMED for w in words)


def latex(formula):
    """LaTeX of a one-line formula: √(x), n⁶, x^(1/2), Σ_i, ‖W‖₂, Greek letters, C1 for C with index 1."""
    return _group(_TOKEN.findall(formula), 0, None)[0].strip()


def _group(tokens, i, closing):
    """(LaTeX up to the closing bracket, index behind it)."""
    out = ""
    while i < len(tokens) and tokens[i] != closing:
        piece, i = _piece(tokens, i)
        out += piece
    return out, i + 1


def _piece(tokens, i):
    token = tokens[i]
    if token in ("^", "_"):
        inner, after = _argument(tokens, i + 1)
        if tokens[i + 1 : i + 2] == ["("] and len(inner.strip()) == 1:  # W^(t) is W at time t
            inner = f"({inner})"
        return f"{token}{{{inner}}}", after
    if token == "√":
        inner, i = _argument(tokens, i + 1)
        return rf"\sqrt{{{inner}}}", i
    if token in _CLOSING:
        inner, i = _group(tokens, i + 1, _CLOSING[token])
        slash = "\\" if token == "{" else ""
        return f"{slash}{token}{inner}{slash}{_CLOSING[token]}", i
    return _atom(token), i + 1


def _argument(tokens, i):
    """What a root, an exponent or an index applies to: a bracket's content, a function with its bracket, a token."""
    while i < len(tokens) and tokens[i].isspace():
        i += 1
    if i == len(tokens):
        return "", i
    if tokens[i] in ("(", "{"):
        return _group(tokens, i + 1, _CLOSING[tokens[i]])
    if tokens[i] in ("-", "−"):
        inner, i = _argument(tokens, i + 1)
        return f"-{inner}", i
    out, i_next = _piece(tokens, i)
    if tokens[i] in _KNOWN and i_next < len(tokens) and tokens[i_next] == "(":
        inner, i_next = _piece(tokens, i_next)
        out += inner
    return out, i_next


def _atom(token):
    if token[0] in _RAISED:
        return "^{" + "".join(_RAISED[c] for c in token).replace("T", r"\top") + "}"
    if token[0] in _LOWERED:
        return "_{" + "".join(_LOWERED[c] for c in token) + "}"
    if token in _GREEK:
        return rf"\{_GREEK[token]} "
    if token in _KNOWN:
        return rf"\{token} " if token != "Var" else r"\operatorname{Var} "
    if token in _NAMED:
        return rf"\operatorname{{{token}}}"
    if token in ("..", "..."):
        return r"\dots "
    if indexed := re.fullmatch(r"([A-Za-z])(\d+)", token):
        return f"{indexed[1]}_{{{indexed[2]}}}"
    return " " if token.isspace() else _SYMBOLS.get(token, token)


def plain(text):
    """Text in which a record has used LaTeX for single symbols, with these in Unicode."""
    symbols = {name: letter for letter, name in _GREEK.items()} | {"|": "‖"}
    return re.sub(r"\\([A-Za-z]+|\|)", lambda found: symbols.get(found[1], found[0]), text.replace("$", ""))
