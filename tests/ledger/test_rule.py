"""When a check holds, and which verdict follows."""

import itertools

import pytest

from ledger.rule import NOT_TESTED, VERDICTS, Check, verdict


@pytest.mark.parametrize(
    ("holds", "inside", "outside"),
    [
        ("< 1", 0.99, 1),
        ("<= 1", 1, 1.01),
        ("> 1", 1.01, 1),
        (">= 1", 1, 0.99),
        ("== 0", 0, 1e-9),
        (">=-1e-3", 0, -1),
        ("in [1, 2]", 2, 2.01),
        ("in [1,2]", 1, 0.99),
    ],
)
def test_relations(holds, inside, outside):
    check = Check("c", "It holds.", holds)
    assert check.outcome(inside) == "holds"
    assert {check.outcome(value) for value in (outside, float("nan"), float("inf"), None)} == {
        "fails"
    }


@pytest.mark.parametrize(
    ("holds", "interval", "expected"),
    [
        (">= 1", [1, 2], "holds"),
        (">= 1", [0.9, 2], "undecided"),
        (">= 1", [0, 0.9], "fails"),
        (">= 1", [None, None], "undecided"),
        ("< 1", [0, 1], "undecided"),
        ("< 1", [1, 2], "fails"),
        ("== 1", [0, 2], "undecided"),
        ("== 1", [2, 3], "fails"),
        ("in [1, 2]", [0, 3], "undecided"),
        ("in [1, 2]", [1.2, 1.8], "holds"),
        ("in [1, 2]", [1.5, 3], "undecided"),
        ("in [1, 2]", [3, 4], "fails"),
        ("<= 1", [None, 0.5], "holds"),
        ("<= 1", [0.5, None], "undecided"),
        ("in [1, 2]", [None, 0.9], "fails"),
    ],
)
def test_a_threshold_inside_the_interval_decides_nothing(holds, interval, expected):
    assert Check("c", "It holds.", holds).outcome(1.5, interval) == expected


@pytest.mark.parametrize(
    "holds", ["", "about 3", "=< 1", "<= one", "<= nan", "< inf", "in [1]", "in [2, 1]", "1"]
)
def test_a_relation_that_cannot_be_read_is_refused(holds):
    with pytest.raises(ValueError, match=r"holds = .* is neither a relation and a number"):
        Check("c", "It holds.", holds)


@pytest.mark.parametrize("kind", VERDICTS)
def test_verdicts_of_all_combinations(kind):
    whole, part, none = VERDICTS[kind]
    for outcomes in itertools.chain(
        *(itertools.product(["holds", "fails", "undecided"], repeat=n) for n in range(4))
    ):
        expected = part if "holds" in outcomes else none if "fails" in outcomes else NOT_TESTED
        assert verdict(kind, list(outcomes)) == (whole if set(outcomes) == {"holds"} else expected)
