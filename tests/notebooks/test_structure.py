"""Every notebook has the anatomy that README.md promises, as committed; every table names only what exists."""

import ast
import json
import re

import pytest

from overparam.paths import NOTEBOOKS, PROFILES
from overparam.record import checks
from overparam.record.parameters import notebook_parameters
from overparam.run import runner

EXPLORERS = {"explore-bounds"}  # notebooks that judge no claim
STEMS = sorted({path.stem for path in NOTEBOOKS.glob("*.ipynb")} - EXPLORERS)
RUNS = sorted({spec.notebook for spec in checks.registry().values()})
TABLES = checks.read_toml(PROFILES)
WIDEST = 92  # characters that a page shows of a line of code
SAYING = [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb")) if "claim.say(" in path.read_text(encoding="utf-8")]
# Formulas, code, and places in a paper; and what theory says, not a run: exponents, scales, a coin, a machine's memory
NO_RESULT = re.compile(
    r"\$[^$]*\$|`[^`]*`|[(A-Z]\.?\d+\.\d+|[A-Z]\.\d+|(?:Theorem|Lemma|Example|Section|eq\.) \d+\.\d+"
    r"|95 %|-0\.5\b|= 0\.01\b|error 0\.5\b|141 GB"
)
RESULT = re.compile(r"\d+\.\d+|\d[\d,]+\d|\d+ ?%")


def cells(stem):
    return json.loads((NOTEBOOKS / f"{stem}.ipynb").read_text(encoding="utf-8"))["cells"]


def code(stem):
    return [cell for cell in cells(stem) if cell["cell_type"] == "code"]


def source(cell):
    return "".join(cell["source"])


def is_parameters(cell):
    return "parameters" in cell["metadata"].get("tags", [])


def test_every_registered_claim_has_its_notebook_and_every_notebook_a_claim():
    assert {spec.template for spec in checks.registry().values()} == set(STEMS)
    assert all("." not in stem for stem in STEMS)
    for spec in checks.registry().values():  # a claim is served by its own run or by that of a claim of its own
        assert checks.spec(spec.notebook).notebook == spec.notebook


@pytest.mark.parametrize("stem", STEMS)
def test_cell_order(stem):
    """Title, parameters, the claim, and the report at the end or with nothing but prose after it."""
    first, last = source(cells(stem)[0]), source(code(stem)[-1])
    assert cells(stem)[0]["cell_type"] == "markdown"
    assert first.startswith("# ")
    assert "**Claim" in first
    assert [is_parameters(cell) for cell in code(stem)] == [True] + [False] * (len(code(stem)) - 1)
    if stem in checks.registry():
        assert f'claim = Claim("{stem}", globals())' in source(code(stem)[1])
    assert last.rstrip().endswith(".report()")


@pytest.mark.parametrize("stem", SAYING)
def test_a_page_is_as_wide_as_a_page(stem):
    wide = [line for cell in code(stem) for line in source(cell).splitlines() if len(line) > WIDEST]
    assert wide == []


@pytest.mark.parametrize("stem", STEMS)
def test_papermill_reads_every_parameter(stem):
    (lines,) = [source(cell).splitlines() for cell in code(stem) if is_parameters(cell)]
    assert [line for line in lines if "=" in line.partition("#")[2]] == []


@pytest.mark.parametrize("stem", SAYING)
def test_no_backslash_of_a_formula_is_lost(stem):
    r"""Python reads one backslash before times as a tab: formulas in plain strings need two."""
    nodes = ast.walk(ast.parse("\n".join(source(cell) for cell in code(stem))))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert [text for text in texts if re.search(r"[\a\b\f\r\t\v]", text)] == []


@pytest.mark.parametrize("stem", SAYING)
def test_no_number_of_a_finding_is_typed_by_hand(stem):
    """Sentences take their numbers from the run, so that they agree with the record at every size."""
    assert typed_numbers("\n".join(source(cell) for cell in code(stem))) == []


def test_a_typed_number_is_found():
    said = 'claim.say(f"{share:.0%} of 512 runs, by Theorem 5.1 at $m = 1024$; 3.5 times")'
    assert typed_numbers(said) == ["512", "3.5"]


def typed_numbers(text):
    """The numbers that stand as such in the text of `claim.say`, outside of formulas, code and places."""
    says = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    says = [node.args[0] for node in says if getattr(node.func, "attr", "") == "say"]
    parts = [getattr(said, "values", [said]) for said in says]
    texts = [
        "".join(getattr(part, "value", "") if isinstance(part, ast.Constant) else "x" for part in said)
        for said in parts
    ]
    return [number for said in texts for number in RESULT.findall(NO_RESULT.sub("", said))]


@pytest.mark.parametrize("stem", STEMS)
def test_stored_outputs_come_from_one_run_from_top_to_bottom(stem):
    assert [cell["execution_count"] for cell in code(stem)] == list(range(1, len(code(stem)) + 1))
    for cell in code(stem):
        for output in cell["outputs"]:
            assert output["output_type"] != "error"
            assert output.get("name") != "stderr"
            assert output["output_type"] == "display_data", source(cell)


@pytest.mark.parametrize("stem", sorted(EXPLORERS))
def test_an_explorer_has_parameters_first_and_one_clean_run(stem):
    assert notebook_parameters(NOTEBOOKS / f"{stem}.ipynb")
    assert [is_parameters(cell) for cell in code(stem)] == [True] + [False] * (len(code(stem)) - 1)
    assert [cell["execution_count"] for cell in code(stem)] == list(range(1, len(code(stem)) + 1))
    outputs = [output for cell in code(stem) for output in cell["outputs"]]
    assert all(o["output_type"] != "error" and o.get("name") != "stderr" for o in outputs)
    assert sum("image/png" in o.get("data", {}) for o in outputs) >= 1


@pytest.mark.parametrize("stem", STEMS)
def test_the_stored_verdict_is_the_one_of_the_registered_checks(stem):
    """The printed tables name every claim that the notebook serves, and every check that applies at smoke size."""
    printed = "".join("".join(o["data"]["text/plain"]) for cell in code(stem) for o in cell["outputs"])
    (run,) = [run for run in RUNS if checks.spec(run).template == stem and checks.is_as_stored(run)]
    for claim in runner.served(run):
        assert f"{claim}  [smoke]" in printed
        for check in checks.spec(claim).checks:
            if "smoke" in check.profiles:
                assert check.name in printed


@pytest.mark.parametrize("stem", STEMS)
def test_parameters_are_commented_literals(stem):
    parameters = notebook_parameters(NOTEBOOKS / f"{stem}.ipynb")
    assert parameters["profile"] == "smoke"
    assert isinstance(parameters["seed"], int)
    lines = source(code(stem)[0]).splitlines()
    uncommented = [line for line in lines if " = " in line and "#" not in line]
    assert [line.split(" = ")[0] for line in uncommented if line.split(" = ")[0] not in ("dtype", "device")] == []


@pytest.mark.parametrize("stem", STEMS)
def test_notebooks_compute_no_paths_and_import_none_of_their_own(stem):
    text = "\n".join(source(cell) for cell in code(stem))
    for word in ("sys.path", "os.chdir", "open(", "Path(", "%run", "%cd", "!"):
        assert word not in text.replace("!=", ""), word


def test_the_profile_tables_name_only_what_exists():
    assert set(TABLES) <= {*STEMS, *RUNS}
    for name, table in TABLES.items():
        of_notebook, of_run = ["ranges"] * (name in STEMS), checks.PROFILES * (name in RUNS)
        assert set(table) <= {*of_notebook, *of_run}
        stem = checks.spec(name).template if name in RUNS else name
        assert set(table.get("ranges", {})) <= set(notebook_parameters(NOTEBOOKS / f"{stem}.ipynb"))


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("profile", checks.PROFILES)
def test_every_profile_is_valid_and_its_own(run, profile):
    if profile == "desk" and profile not in TABLES.get(run, {}):
        return
    parameters, _, resources = checks.profile_parameters(run, profile)
    runner.plan(run, profile, {k: v for k, v in parameters.items() if k != "profile"})
    if profile == "paper":
        assert parameters != {**checks.profile_parameters(run, "laptop")[0], "profile": "paper"}
        assert {"gpu", "memory_mb", "minutes"} <= set(resources)


def test_check_names_are_unique_and_tags_decide_something():
    for spec in checks.registry().values():
        names = [check.name for check in spec.checks]
        assert len(names) == len(set(names))
        assert any(check.tag == "R" for check in spec.checks)
        for check in spec.checks:
            assert not check.superseded_by or (check.superseded_by in names and check.reason)
        for group in spec.partly_if:
            assert set(group) <= set(names)
