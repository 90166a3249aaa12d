"""Every page has the anatomy that README.md promises, as committed.

What is registered of it names only what exists.
"""

import ast
import json
import re

import pytest

from ledger import records, registry, rule
from ledger.parameters import notebook_parameters
from ledger.paths import FIGURES, NOTEBOOKS
from ledger.site import records as entries

PAGES = {
    str(path.relative_to(NOTEBOOKS).with_suffix("")): path
    for path in sorted(NOTEBOOKS.glob("*/*.ipynb"))
}
EXPLORERS = {path.stem: path for path in NOTEBOOKS.glob("*.ipynb")}  # notebooks that judge no claim
CLAIMS = registry.registry()
ENTRIES = entries.load(FIGURES)
RUNS = sorted({claim.page.id for claim in CLAIMS.values()})
WIDEST = 88  # characters that a page shows of a line of code
LONGEST = 90  # characters of a title
# Formulas, code, and places in a paper; and what theory says, not a run: exponents, scales, a coin,
# a machine's memory
NO_RESULT = re.compile(
    r"\$[^$]*\$|`[^`]*`|[(A-Z]\.?\d+\.\d+|[A-Z]\.\d+|(?:Theorem|Lemma|Example|Section|eq\.) "
    r"\d+\.\d+"
    r"|95 %|-0\.5\b|= 0\.01\b|error 0\.5\b|141 GB"
)
RESULT = re.compile(r"\d+\.\d+|\d[\d,]+\d|\d+ ?%")
CODE_WORD = re.compile(r"`|\w_\w|\[|\w\(\)")


def test_every_registered_file_is_whole():
    registry.require_whole()


each_page = pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
each_claim = pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def code(path):
    return [cell for cell in cells(path) if cell["cell_type"] == "code"]


def source(cell):
    return "".join(cell["source"])


def tree(path):
    return ast.parse("\n".join(map(source, code(path))))


def is_parameters(cell):
    return "parameters" in cell["metadata"].get("tags", [])


def test_every_registered_claim_has_its_notebook_and_every_notebook_a_claim():
    assert {claim.page.notebook for claim in CLAIMS.values()} == set(PAGES.values())


@each_page
def test_cell_order(path):
    """Title, parameters, the claim.

    And the report at the end or with nothing but prose after it.
    """
    first, last = source(cells(path)[0]), source(code(path)[-1])
    assert cells(path)[0]["cell_type"] == "markdown"
    assert first.startswith("# ")
    assert "**Claim" in first
    assert [is_parameters(cell) for cell in code(path)] == [True] + [False] * (len(code(path)) - 1)
    own = f"{path.parent.name}-{path.stem}"
    if own in CLAIMS:
        assert f'claim = Claim("{own}", globals())' in source(code(path)[1])
    assert last.rstrip().endswith(".report()")


@each_page
def test_a_page_links_to_the_executed_notebook_that_opens_with_its_finding(path):
    """The one of the record that counts, if there is any."""
    (link,) = re.findall(
        r"^\*\*In short\.\*\* \[The executed notebook\]\((\S+)\)",
        source(cells(path)[0]),
        re.MULTILINE,
    )
    counting = [entry.best for entry in ENTRIES if entry.claim.page.notebook == path and entry.best]
    executed = {version.path for version in counting if version.record}
    assert (path.parent / link).resolve() in executed or not executed


@each_page
def test_the_links_of_a_page_lead_somewhere(path):
    texts = [source(cell) for cell in cells(path) if cell["cell_type"] == "markdown"]
    links = re.findall(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)", "\n".join(texts))
    assert links
    written = [link for link in links if "/figures/" not in link]  # a run makes those
    assert [link for link in written if not (path.parent / link).exists()] == []


@each_page
def test_a_page_is_as_wide_as_a_page(path):
    lines = [line for cell in code(path) for line in source(cell).splitlines()]
    assert [line for line in lines if len(line) > WIDEST] == []


@each_page
def test_parameters_are_commented_literals_that_papermill_reads(path):
    parameters, lines = notebook_parameters(path), source(code(path)[0]).splitlines()
    assert parameters["profile"] == "smoke"
    assert isinstance(parameters["seed"], int)
    assert [line for line in lines if "=" in line.partition("#")[2]] == []
    uncommented = {line.partition(" = ")[0] for line in lines if " = " in line and "#" not in line}
    assert uncommented <= {"dtype", "device"}


@each_page
def test_no_backslash_of_a_formula_is_lost(path):
    r"""Python reads one backslash before times as a tab: formulas in plain strings need two."""
    texts = [node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant)]
    assert [
        text for text in texts if isinstance(text, str) and re.search(r"[\a\b\f\r\t\v]", text)
    ] == []


@each_page
def test_no_number_of_a_finding_is_typed_by_hand(path):
    """Sentences take their numbers from the run, so that they agree with the record at every
    size.
    """
    assert typed_numbers(tree(path)) == []


def test_a_typed_number_is_found():
    said = 'claim.say(f"{share:.0%} of 512 runs, by Theorem 5.1 at $m = 1024$; 3.5 times")'
    assert typed_numbers(ast.parse(said)) == ["512", "3.5"]


def typed_numbers(parsed):
    """The numbers that stand as such in the text of `claim.say`, outside of formulas, code and
    places.
    """
    says = [node for node in ast.walk(parsed) if isinstance(node, ast.Call)]
    says = [node.args[0] for node in says if getattr(node.func, "attr", "") == "say"]
    parts = [getattr(said, "values", [said]) for said in says]
    texts = [
        "".join(
            getattr(part, "value", "") if isinstance(part, ast.Constant) else "x" for part in said
        )
        for said in parts
    ]
    return [number for said in texts for number in RESULT.findall(NO_RESULT.sub("", said))]


@each_page
def test_notebooks_compute_no_paths_and_import_none_of_their_own(path):
    text = "\n".join(map(source, code(path)))
    for word in ("sys.path", "os.chdir", "open(", "Path(", "%run", "%cd", "!"):
        assert word not in text.replace("!=", ""), word


@each_page
def test_stored_outputs_come_from_one_run_from_top_to_bottom(path):
    assert [cell["execution_count"] for cell in code(path)] == list(range(1, len(code(path)) + 1))
    for cell in code(path):
        assert {output["output_type"] for output in cell["outputs"]} <= {"display_data"}, source(
            cell
        )


@pytest.mark.parametrize("path", EXPLORERS.values(), ids=EXPLORERS)
def test_an_explorer_has_parameters_first_and_one_clean_run(path):
    assert notebook_parameters(path)
    assert [is_parameters(cell) for cell in code(path)] == [True] + [False] * (len(code(path)) - 1)
    assert [cell["execution_count"] for cell in code(path)] == list(range(1, len(code(path)) + 1))
    outputs = [output for cell in code(path) for output in cell["outputs"]]
    assert all(o["output_type"] != "error" and o.get("name") != "stderr" for o in outputs)
    assert sum("image/png" in o.get("data", {}) for o in outputs) >= 1


@each_claim
def test_words_are_a_readers(claim):
    """A title is one line; a check is a sentence; neither has words of the code."""
    assert len(claim.title) <= LONGEST
    assert not claim.title.endswith(".")
    sentences = [claim.claim, *(check.asks for check in claim.checks)]
    assert [text for text in sentences if not text.endswith(".")] == []
    told = [re.sub(r"\$[^$]*\$", "", text) for text in [claim.title, *sentences]]
    assert [text for text in told if CODE_WORD.search(text)] == []


@each_claim
def test_every_registered_check_is_measured_by_its_page(claim):
    """At smoke size in the stored outputs, which nbval compares.

    The others are called by name in its code.
    """
    page = claim.page.notebook
    if registry.is_as_stored(claim.id):
        shown = "\n\n".join(
            "".join(o["data"]["text/plain"]) for cell in code(page) for o in cell["outputs"]
        )
        (report,) = re.findall(rf"^{claim.id}  \[smoke\]  .*(?:\n.+)*", shown, re.MULTILINE)
        assert [
            check.name for check in claim.asked("smoke") if f"\n  {check.name} " not in report
        ] == []
    patterns = list(map(name_in_code, ast.walk(tree(page))))
    words = "\n".join(map(source, code(page)))
    for check in claim.checks:
        if check not in claim.asked("smoke"):
            assert any(re.fullmatch(pattern, check.name) for pattern in patterns), check.name
            assert all(word in words for word in check.name.split("-")), check.name


def name_in_code(node):
    r"""A pattern of the names that a text in code can be: f"{data}-order" is [\w-]*\-order."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            re.escape(v.value) if isinstance(v, ast.Constant) else r"[\w-]*" for v in node.values
        )
    return (
        re.escape(node.value)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        else ""
    )


@pytest.mark.parametrize("run", RUNS)
def test_every_size_names_parameters_and_is_its_own(run):
    page = registry.claim(run).page
    literals, sizes = notebook_parameters(page.notebook), {"smoke": {}}
    assert page.ranges.keys() - registry.RANGES.keys() <= literals.keys()
    assert {"laptop", "paper"} <= set(page.sizes)
    for size in filter(page.sizes.get, rule.SIZES):
        assert set(page.sizes[size].parameters) <= set(literals)
        sizes[size] = registry.parameters_at(run, size)
        records.plan(
            run, size, {name: value for name, value in sizes[size].items() if name != "profile"}
        )
        assert size not in records.LONG or "minutes" in page.sizes[size].resources
    own = [
        json.dumps({**parameters, "profile": ""}, sort_keys=True) for parameters in sizes.values()
    ]
    assert len(own) == len(set(own))


@pytest.mark.parametrize("path", [*PAGES.values(), *EXPLORERS.values()], ids=[*PAGES, *EXPLORERS])
def test_a_notebook_names_the_kernel_that_everybody_has(path):
    """An editor notes the name of its own."""
    kernel = json.loads(path.read_text(encoding="utf-8"))["metadata"]["kernelspec"]
    assert kernel["name"] == "python3"
