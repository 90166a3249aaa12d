"""What the pages are made from: key numbers, stored verdicts, escaping, formulas."""

import json
import re

import pytest
from bs4 import BeautifulSoup

from overparam import paths
from overparam.errors import ClaimError, OverparamError
from overparam.record import checks
from overparam.run.site import formulas, pages, records, reference
from overparam.run.site.build import write_sources

HOSTILE = '<img src=x onerror="alert(1)"> `x` $a_b$ {ref}`y` ``````````\n# z'
CLAIM = "arora2019-fig1-convergence-labels"


def check(name, tag="R", *, value=1.0, holds=True, applies=True, paper_value=None):
    row = {"name": name, "tag": tag, "wording": name, "value": value, "relation": ">=", "threshold": 2.0}
    return row | {
        "holds": holds, "applies": applies, "paper_value": paper_value, "superseded_by": "", "reason": "",
    }  # fmt: skip


def record(*checks, **metrics):
    return {"checks": list(checks), "metrics": {k: {"value": v[0], "paper": v[1]} for k, v in metrics.items()}}


def test_the_key_number_is_the_one_beside_the_papers():
    found = records.key_numbers(record(check("a"), check("b", value=0.5, paper_value=0.25), c=(1, 2)))
    assert found == [("b", "0.5", "paper 0.25")]


def test_the_key_number_is_else_what_failed_and_a_number_that_the_paper_prints():
    found = records.key_numbers(record(check("a"), check("b", "N", holds=False), c=(3, None), d=(4, 5)))
    assert found == [("b", "1", "required ≥ 2"), ("d", "4", "paper 5")]
    assert records.key_numbers(record(check("i", "I"), check("a", applies=False), check("b"))) == [
        ("b", "1", "required ≥ 2")
    ]
    assert records.key_numbers(record(check("c", "C", holds=False), check("r")))[0][0] == "r"
    assert records.key_numbers(record(check("i", "I"))) == []


def test_numbers_that_rounding_leaves_are_called_so():
    assert [records.number(x) for x in (None, 0.0, 1e-17, -3.14159)] == ["nan", "0", "rounding", "-3.14"]


def test_smoke_verdicts_are_those_that_the_notebooks_print():
    entries = {entry.spec.id: entry for entry in records.load(paths.ROOT / "figures")}
    for claim in (CLAIM, "guo2024-fig4-lstm", "guo2024-fig4-vit"):  # the last two share a notebook
        assert entries[claim].versions["smoke"].verdict in checks.VERDICTS
    assert entries[CLAIM].best.profile in ("laptop", "paper")
    assert entries[CLAIM].page() == f"claims/{CLAIM}"
    assert entries[CLAIM].page(entries[CLAIM].versions["smoke"]) == f"claims/{CLAIM}-smoke"


def copy_of_one_record(figures, **changed):
    folder = figures / "laptop" / CLAIM
    folder.mkdir(parents=True)
    source = paths.ROOT / "figures" / "laptop" / CLAIM
    for name in ("notebook.ipynb", "series.npz", *(f.name for f in source.glob("*.png"))):
        (folder / name).write_bytes((source / name).read_bytes())
    content = json.loads((source / "result.json").read_text()) | changed
    (folder / "result.json").write_text(json.dumps(content))
    return content


def test_without_a_record_a_claim_is_not_run(figures):
    copy_of_one_record(figures)
    verdicts = {entry.spec.id: entry.verdict for entry in records.load(figures)}
    assert verdicts.pop(CLAIM) in checks.VERDICTS
    assert set(verdicts.values()) == {records.UNRUN}


def test_an_unreadable_record_is_named(figures):
    copy_of_one_record(figures)
    (figures / "laptop" / CLAIM / "result.json").write_text("{")
    with pytest.raises(ClaimError, match=CLAIM):
        records.load(figures)


@pytest.mark.parametrize("content", ["[]", '{"verdict": "reproduced"}', None])
def test_an_incomplete_record_or_a_broken_picture_is_named(content, figures, tmp_path):
    copy_of_one_record(figures)
    folder = figures / "laptop" / CLAIM
    broken = next(folder.glob("*.png")) if content is None else folder / "result.json"
    broken.write_text(content or "no picture")
    with pytest.raises(ClaimError, match=re.escape(str(broken))):
        write_sources(tmp_path / "source", figures)


def test_what_looks_like_html_in_a_record_stays_text(figures, tmp_path):
    """Titles, wordings, names and devices are data: no tag of theirs reaches a page."""
    content = copy_of_one_record(figures, device=HOSTILE)
    content["checks"][0]["wording"] = HOSTILE
    content["metrics"] = {HOSTILE: {"value": 1.0, "paper": 2.0}}
    (figures / "laptop" / CLAIM / "result.json").write_text(json.dumps(content))
    write_sources(tmp_path / "source", figures)
    texts = [(tmp_path / "source" / "index.md").read_text()]
    cells = json.loads((tmp_path / "source" / "claims" / f"{CLAIM}.ipynb").read_text())["cells"]
    texts += ["".join(cells[i]["source"]) for i in (0, -1)]
    for text in texts:
        assert BeautifulSoup(text, "html.parser").find("img", src="x") is None
        assert not re.search(r"^`{10}\s*\n# z", text, re.MULTILINE)
    assert all("&lt;img src=x" in text for text in texts)


def test_literal_text_survives_markdown():
    shown = pages.literal(HOSTILE)
    assert "\n" not in shown
    assert re.sub(r"\\(.)", r"\1", shown) == " ".join(HOSTILE.split())
    assert not re.search(r"(?<!\\)[<`$*_#{\[]", shown)


def test_a_paper_without_a_text_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "SITE", tmp_path)
    with pytest.raises(OverparamError, match=r"papers/\w+\.md is missing"):
        pages.papers()


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("C n⁶ / (λ₀⁴ κ² δ³)", r"Cn^{6}/(\lambda_{0}^{4}\kappa^{2}\delta^{3})"),
        ("√(2 yᵀ H⁻¹ y / n)", r"\sqrt{2y^{\top}H^{-1}y/n}"),
        ("C1 ‖W^(t)‖_2 ≤ m^(1/2)", r"C_{1}\|W^{(t)}\|_{2}\lem^{1/2}"),
        ("√log(1/δ) + √m/n", r"\sqrt{\log(1/\delta)}+\sqrt{m}/n"),
        ("min{C1 a, ε}", r"\min\{C_{1}a,\varepsilon\}"),
    ],
)
def test_formulas_of_docstrings_become_latex(formula, expected):
    assert formulas.latex(formula).replace(" ", "") == expected


def test_only_formulas_are_taken_for_formulas():
    assert formulas.leading_formula("C λ₀ / n², the largest step size. Source.") == (
        "C λ₀ / n²",
        "the largest step size. Source.",
    )
    for text in ("The loss of a net.", "Whether n ≥ 2 holds.", "(n, d) of inputs, unit norm."):
        assert formulas.leading_formula(text) == (None, text)


def test_every_bound_that_begins_with_a_formula_shows_it_with_even_brackets():
    shown = [t for n, t in reference.pages().items() if n.startswith("overparam.bounds.")]
    found = [f for text in shown for f in re.findall(r"\$\$\n(.+)\n\$\$", text)]
    assert len(found) > 100
    for formula in found:
        assert formula.count("{") == formula.count("}"), formula
        assert not re.search(r"[\^_]{2}|[\^_]$", formula), formula


def test_the_reference_names_every_public_function():
    page = reference.pages()["overparam.record.claims.md"]
    assert all(f"`{name}`" in page for name in ("Claim", "verdict", "spec", "check", "report"))
    assert "`_plain`" not in page
