"""Findings quote their record, speak of no other one, and say where they cannot be filled in."""

import pandas as pd
import pytest

from ledger import findings
from ledger.errors import ClaimError

TABLE = pd.DataFrame(
    {"net": ["relu", "relu", "leaky"], "x": [1.0, 2.0, 6932.1], "log": [0.0, 0.0, -9.0]}
)


@pytest.fixture
def found(toy, figures):
    """Registers a finding, runs the claim, and gives the finding's words."""

    def fill(text, of="smoke, holds", value=0.5, **changes):
        toy.register(f"{toy.registered}\n[finding]\nof = \"{of}\"\ntext = '''{text}'''\n")
        claim = toy.measured(value, **changes)
        claim.metric("slope", 1.24e-8)
        claim.keep(TABLE)
        claim.report()
        return findings.finding(
            toy.claim, toy.record(claim.folder.parent.relative_to(figures)), claim.folder
        )

    return fill


def test_numbers_are_quoted_by_name(found):
    for text, said in (
        ('It is\n{{ value("value") }}.', "It is 0.5."),
        ('{{ value("slope") }}', r"$1.24\cdot10^{-8}$"),
        ('{{ column("runs", "x", net="relu") }}', "1.5"),
        ('{{ column("runs", "x", how="max") }}', "6,930"),
        ('{{ column("runs", "log", log10=True, net="leaky") }}', r"$1\cdot10^{-9}$"),
    ):
        assert found(text) == said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('value("invented")', "there is no check or number 'invented'"),
        ('column("runs", "y")', "the table 'runs' has no column 'y' with {}"),
        ('column("nets", "x")', "there is no table 'nets'"),
        ('column("runs", "x", depth=3)', "the table 'runs' has no column 'depth'"),
        ('column("runs", "x", net="none")', "has no column 'x' with {'net': 'none'}"),
        ('column("runs", "x", how="largest")', "'largest' is not a valid"),
        ('column("runs", "net")', "string"),
        ('value("value"', "unexpected '}', expected ')'"),
        ("slope", "'slope' is undefined"),
        ("1 / 0", "by zero"),
    ],
)
def test_what_is_not_there_is_named_in_one_line(found, text, reason):
    with pytest.raises(ClaimError) as caught:
        found(f"{{{{ {text} }}}}")
    assert str(caught.value).startswith("toy2020/lem1.toml, toy2020-lem1, finding.text: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_of_another_record_a_plain_sentence_is_said(found):
    plain = "1 of 1 check holds."
    assert found("Found.") == "Found."
    assert found('{{ value("invented") }}', of="laptop, holds") == plain
    assert found("Found.", of="smoke, fails") == plain
    assert found("Found.", n=6) == plain  # a record of changed parameters
    assert found("Found.", value=2) == "0 of 1 check hold."


@pytest.mark.parametrize(
    ("outcomes", "unmet", "said"),
    [
        (["holds", "fails", "undecided"], [], "1 of 3 checks holds, 1 is undecided."),
        (["holds", "holds", "undecided", "undecided"], [], "2 of 4 checks hold, 2 are undecided."),
        ([], [], "No check is asked at this size."),
        (["holds"], ["no net", "no data"], "Not tested: no net; no data."),
    ],
)
def test_the_plain_sentence_counts_checks_or_gives_the_reason(outcomes, unmet, said):
    assert (
        findings.generated(
            {"checks": [{"outcome": outcome} for outcome in outcomes], "unmet": unmet}
        )
        == said
    )


@pytest.mark.parametrize(
    ("value", "interval", "said"),
    [
        (2.871, [2.07, 3.672], "2.87 ± 0.80"),
        (0.9, [0.81, 0.95], "0.9 (0.81 to 0.95)"),
        (0.9, [0.5, None], "0.9"),
        (-1.0003, [-1.02, -0.9806], "-1.000 ± 0.020"),
        (1234.4, [1189.4, 1279.4], "1,234 ± 45"),
        (1234.4, [987.4, 1481.4], "1,234 ± 250"),
        (-0.01, [-9.51, 9.49], "0.0 ± 9.5"),
        (2.0, [2.0 - 1e-13, 2.0 + 1e-13], "2 ± 0 up to rounding"),
        (None, None, "not measured"),
        (1e-17, None, "0 up to rounding"),
        (12345678.0, None, r"$1.23\cdot10^{7}$"),
    ],
)
def test_numbers_as_a_sentence_has_them(value, interval, said):
    assert findings.measured({"value": value, "interval": interval}) == said
