"""A record in words: the verdict or a theorem's three facts, what was changed, the freeze.

And the table of checks.
"""

import pytest

from ledger import freezing, render


@pytest.fixture
def shown(toy, figures):
    """Reports a claim, and gives its Markdown in paragraphs."""

    def report(value=0.5, profile="smoke", **changes):
        claim = toy.measured(value, profile=profile, **changes)
        claim.conditions(120.0, "The width is too small.")
        claim.report()
        return render.markdown(
            toy.claim, toy.record(claim.folder.parent.relative_to(figures))
        ).split("\n\n")

    return report


def test_a_theorem_has_three_facts_and_its_checks_a_table(shown):
    facts, table, size = shown(profile="laptop", n=20)[:3]
    assert facts.split("  \n") == [
        "**As printed:** Follows, but for a misprint. A letter is missing.",
        "**Where measured:** Holds. 2 of 2 checks hold.",
        "**Conditions:** Not met, by a factor of 120. The width is too small.",
    ]
    assert table.splitlines() == [
        "| check | measured | required | the paper | outcome |",
        "|---|---|---|---|---|",
        "| The value is at most 1. | 0.5 | at most 1 | – | ✓ |",
        "| The value at size $m_1$ lies between 0 and 2. | 0.5 | 0 to 2 | 1.5 | ✓ |",
    ]
    assert size == "*At laptop size: what runs in minutes*"


def test_an_experiment_has_a_verdict_and_no_words_break_its_table(toy, shown):
    text = toy.registered.replace('"theorem"', '"experiment"')
    toy.register(
        text.replace("The value is at most 1.", r"max_k |a_k| is 1, with $|b_k| \\le \\|c\\|$.", 1)
    )
    facts, table, undecided = shown([2.0, 3.0, 4.0])
    assert facts.startswith(
        "**Verdict:** Not tested. 0 of 1 check hold, 1 is undecided. A smoke run shows that"
    )
    head, _, row = table.splitlines()
    assert head == "| check | measured, with 95 % interval | required | outcome |"
    assert row.startswith(r"| max\_k \|a\_k\| is 1, with $")
    assert row.endswith("| 3.0 ± 2.5 | at most 1 | undecided |")
    assert undecided.startswith("*Undecided: the 95 % interval has values that satisfy")
    assert row.replace(r"\|", "").count("|") == 5


def test_the_line_on_the_freeze(toy, shown):
    def line(seed=3):
        return shown(profile="laptop", n=20, seed=seed)[-1].strip("*")

    told = "Preliminary: run before the checks were frozen, with draws that had been seen"
    assert line() == f"{told} during development."
    freezing.freeze("toy2020")
    record = toy.record("laptop")
    frozen = f"Checks frozen on {record['date']}"
    fresh, seen = (f", {word} these draws had first been run." for word in ("before", "after"))
    assert line() == frozen + fresh
    earlier = render.frozen(toy.claim, record | {"date": "2020-01-01"})
    assert earlier == frozen + "; this record was made before the freeze."
    undrawn = {name: v for name, v in record["parameters"].items() if name != "n_seeds"}
    run = render.frozen(toy.claim, record | {"parameters": undrawn})
    assert run == frozen + ", before this run."
    change = '\n[[changes]]\ndate = 2026-12-05\nwhat = "on the sphere only"\nwhy = "a slip"\n'
    since = " Changed since: 2026-12-05: on the sphere only (a slip)."
    text = toy.registered.replace("n = 20", "n = 20\nseed = 7") + change
    toy.register(text)
    assert line(7) == frozen + seen + since
    toy.register(text + "seed = 7\n")
    assert line(7) == frozen + fresh + since


def test_what_is_left_to_other_sizes_is_named_and_powers_of_ten_are_typeset(toy, shown):
    text = toy.registered.replace('holds = "<= 1"', 'holds = "<= 1e-06"', 1)
    toy.register(text.replace('sizes = ["laptop"]', 'sizes = ["paper"]'))
    shown_lines = shown(1.5e-7, profile="laptop", n=20)
    assert "| $1.5\\cdot10^{-7}$ | at most $10^{-6}$ | ✓ |" in shown_lines[1]
    asked = "The value at size $m_1$ lies between 0 and 2."
    assert f"*Not asked at this size: {asked}*" in shown_lines


@pytest.mark.parametrize(
    ("value", "interval", "holds", "words"),
    [
        (0.99972, None, "< 1", "0.9997"),  # three digits would say that a value below 1 is 1
        (1.0052, None, "< 1.01", "1.005"),
        (1.0, None, "<= 1", "1"),
        (0.123456, None, "in [0.2, 0.3]", "0.123"),
        (1.0000002, None, "<= 1", "1"),  # told apart by rounding alone
        (-0.99961, None, "in [-1.0005, -0.9995]", "-0.9996"),
        (None, None, "<= 1", "nan"),
        (1e-16, None, "== 0", "rounding"),
        (0.5, [0.4, 0.9], "<= 1", "0.5 (0.4 to 0.9)"),
        (0.5, [None, None], "<= 1", "0.5 (one draw has no interval)"),
        (2e-16, [1e-16, 3e-16], "<= 1", "rounding"),
        (1.5e-9, [1.4e-9, 1.6e-9], "<= 1", "1.5e-09 ± 1e-10"),
    ],
)
def test_a_measured_value_is_not_shown_as_the_bound_that_it_differs_from(
    value, interval, holds, words
):
    assert render.measured({"value": value, "interval": interval, "holds": holds}) == words


def test_values_are_read_from_a_report_with_the_digits_that_it_shows(toy, capsys):
    shown = {0.123456: 0.123, 12345.678: 12300, -1.5e-9: -1.5e-9, 1e-16: 0, float("nan"): None}
    for value, read in shown.items():
        toy.measured(value, profile="laptop", n=20).report()
        text = capsys.readouterr().out
        assert render.values_in(toy.claim, text) == {"value": read, "large": read}
    toy.measured([-1.1, -1.2, -1.3]).report()
    assert render.values_in(toy.claim, capsys.readouterr().out) == {"value": -1.2}
    assert render.values_in(toy.claim, "no report") == {}


def test_conditions_are_met_or_missed_by_a_factor():
    said = {
        0.5: "Met.",
        1e8: r"Not met, by a factor of $1\cdot10^{8}$.",
        None: "Not met, by a factor above $10^{308}$.",
    }
    for factor, words in said.items():
        assert (
            render.conditions({"conditions": {"factor": factor, "text": "It is."}})
            == f"{words} It is."
        )
    assert render.conditions({"conditions": None}) == "Not compared on this page."
