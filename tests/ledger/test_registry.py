"""What is registered: read as it is written, frozen.

And refused in one line that names the place.
"""

import datetime

import pytest

from ledger import freezing, records, registry
from ledger.errors import ClaimError
from overparam.errors import ParameterError

CHANGE = '\n[[changes]]\ndate = 2026-12-05\nwhat = "1 for 2"\nwhy = "a slip"\n'
SECOND = '[lem2]\ntitle = "Another"\nsource = "Lemma 2"\nkind = "ours"\nclaim = "It is."\n'
OWN = '[lem2.checks.own]\nasks = "It is 1."\nholds = "== 1"\n'


def test_a_file_is_read_as_it_is_written(toy):
    toy.register(toy.registered + CHANGE)
    claim, laptop = toy.claim, registry.size_of(toy.id, "laptop")
    assert (claim.paper, claim.slug, claim.kind, claim.printed) == (
        "toy2020",
        "lem1",
        "theorem",
        "typo",
    )
    assert [(check.name, check.holds) for check in claim.asked("smoke")] == [("value", "<= 1")]
    assert [(check.statistic, check.paper) for check in claim.asked("laptop")] == [
        ("mean", None),
        ("mean", 1.5),
    ]
    assert claim.changes[0].date == datetime.date(2026, 12, 5)
    assert (laptop.why, laptop.resources) == (
        "what runs in minutes",
        {"memory_mb": 4000, "threads": 2},
    )
    assert registry.parameters_at(toy.id, "laptop") == toy.namespace(profile="laptop", n=20)
    assert registry.parameters_at(toy.id, "smoke") == toy.namespace()


def both(toy):
    """The text of a file with two claims."""
    return "[lem1]\n" + toy.registered.replace("[checks", "[lem1.checks") + SECOND


def test_a_file_may_hold_several_claims_of_one_run(toy):
    toy.register(both(toy) + OWN)
    assert [claim.id for claim in registry.served("toy2020-lem1")] == [
        "toy2020-lem1",
        "toy2020-lem2",
    ]
    own = ["own", "== 1", "mean", ["smoke", "laptop", "desk", "paper"]]
    assert registry.deciding("toy2020-lem1")[1] == ["toy2020-lem2", "ours", [own]]
    toy.register(both(toy) + OWN.replace("holds", "hold"))
    with pytest.raises(ClaimError, match=r"^toy2020/lem1.toml: lem2.checks.own.hold: unknown key"):
        registry.require_whole()
    toy.register(SECOND)
    with pytest.raises(
        ClaimError, match=r"^toy2020/lem1.toml: there is no claim 'lem1', after which the file"
    ):
        registry.require_whole()
    toy.register(both(toy))
    toy.register(toy.registered, "lem2.toml")
    with pytest.raises(
        ClaimError, match=r"^toy2020/lem2.toml: toy2020-lem2 is registered in another file as well"
    ):
        registry.require_whole()


def test_a_notebook_may_serve_several_runs_with_parameters_of_their_own(toy):
    toy.register(f'notebook = "lem1"\n{toy.registered}\n[sizes.smoke]\nn = 7\n', "lem2.toml")
    assert registry.claim("toy2020-lem2").page.notebook == toy.claim.page.notebook
    assert [registry.parameters_at(f"toy2020-lem{i}", "smoke")["n"] for i in (1, 2)] == [5, 7]
    assert [registry.is_as_stored(f"toy2020-lem{i}") for i in (1, 2)] == [True, False]
    assert [claim.id for claim in registry.served("toy2020-lem2")] == ["toy2020-lem2"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("title", "titel", "toml: titel: unknown key; did you mean title"),
        ("holds =", "hold =", "toml: checks.value.hold: unknown key; did you mean holds?"),
        ('kind = "theorem"\n', "", "toml: kind is missing"),
        ('title = "A toy"\n', "", "toml: title is missing"),
        ('holds = "<= 1"\n', "", "toml: checks.value.holds is missing"),
        ('"Lemma 1"', "1", "source: 1 is of the wrong type"),
        ('"<= 1"', "1", "checks.value.holds: 1 is of the"),
        ('["laptop"]', '"laptop"', "checks.large.sizes: 'laptop' is of the wrong type"),
        (
            '["laptop"]',
            '[["laptop"]]',
            "checks.large.sizes = [['laptop']] are not among smoke, laptop",
        ),
        ("1.5", "true", "checks.large.paper: True is of the wrong type"),
        (
            "[checks.value]",
            "checks.value = 3\n[checks.other]",
            "checks.value: 3 is of the wrong type",
        ),
        (
            "[checks.value]",
            "[checks.'a value']",
            "checks.a value.name = 'a value' has more than letters",
        ),
        ('"<= 1"', '"=< 1"', "checks.value.holds = '=< 1' is neither a relation"),
        (
            '"<= 1"',
            '"<= 1"\nstatistic = "max"',
            "checks.value.statistic = 'max' is none of mean, median",
        ),
        ('"theorem"', '"lemma"', "kind: 'lemma' is none of experiment, theorem, ours"),
        ('"typo"', '"wrong"', "printed: 'wrong' is none of stands, typo"),
        ("[sizes.laptop]", "[sizes.huge]", "toml: sizes.huge: there are the sizes smoke, laptop"),
        (
            "n = 20",
            "resources = { minutes = 'two' }",
            "sizes.laptop.resources.minutes: resources are numbers",
        ),
        ('"what runs in minutes"', "3", "sizes.laptop.why: 3 is of the wrong type"),
        ('["a", "b"]', '"a"', "toml: ranges.kind: a range is [low, high] or a list"),
        (
            'title = "A toy"',
            'title = "A toy"\nnotebook = "../a"',
            "notebook: '../a' is not the name of a notebook",
        ),
        ("[ranges]", "[finding]\nof = 'smoke, holds'\n[ranges]", "toml: finding.text is missing"),
        (
            "[ranges]",
            "[changes]\nwhat = 'a'\n[ranges]",
            "changes: {'what': 'a'} is of the wrong type",
        ),
        (
            "[ranges]",
            "[[changes]]\ndate = '1'\nwhat = 'a'\nwhy = 'b'\n[ranges]",
            "changes.date: '1' is of the",
        ),
        ("[ranges]", "[[needs]]\nthat = 'n > 2'\n[ranges]", "toml: needs.says is missing"),
        (
            "[ranges]",
            "[[needs]]\nthat = 'n < 20'\nsays = 'n is below 20'\n[ranges]",
            "toml: sizes.laptop: n is below 20, but n = 20",
        ),
        ("[checks.value]", "[checks.value", "it is not valid TOML"),
        ("n = 20", "m = 20", "sizes.laptop: unknown parameter 'm'; "),
        ("n = 20", "rate = 2.0", "sizes.laptop: rate must be in [0.0, 1.0]"),
    ],
)
def test_what_is_malformed_is_refused_in_one_line_that_names_the_place(
    toy, figures, old, new, expected
):
    assert old in toy.registered
    toy.register(toy.registered.replace(old, new, 1))
    with pytest.raises(ClaimError) as caught:
        toy.open(profile="laptop")
    assert str(caught.value).startswith("toy2020/lem1.toml")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not figures.exists()


def test_parameters_that_do_not_go_together_are_refused_before_a_run(toy, figures):
    need = "all(n % size == 0 for size in sizes) and len(set(sizes)) == len(sizes)"
    says = "the sizes divide n, and are different"
    toy.register(f'{toy.registered}\n[[needs]]\nthat = "{need}"\nsays = "{says}"\n')
    toy.write(parameters=toy.parameters.replace("[1, 2]", "[1, 5]"))
    expected = "the sizes divide n, and are different, but n = 5 and sizes = [1, 2]"
    for changes in ({"sizes": [1, 2]}, {"sizes": [5, 5]}):
        with pytest.raises(ParameterError, match=r"^the sizes divide n, and are different, but"):
            records.plan(toy.id, "smoke", changes)
    with pytest.raises(ParameterError) as caught:
        toy.open(sizes=[1, 2])
    assert str(caught.value) == expected
    assert not figures.exists()
    assert records.plan(toy.id, "smoke", {"n": 10})[1]["n"] == 10


def test_what_was_frozen_is_compared_with_what_is_registered(toy):
    assert registry.unlisted_changes(toy.claim) == []  # before a freeze
    path = freezing.freeze("toy2020")
    then = registry.frozen("toy2020")
    checks = {"value": "<= 1 mean smoke laptop desk paper", "large": "in [0, 2] mean laptop"}
    today = datetime.date.today()
    assert then == {"lem1": {"date": today, "seeds": {"laptop": 3}, "checks": checks}}
    changed = toy.registered.replace('"<= 1"', '"<= 2"').replace(
        "[checks.large]", "[checks.larger]"
    )
    listed = "".join(CHANGE + f'check = "{name}"\n' for name in ("value", "larger"))
    for text, unlisted in (
        (toy.registered.replace("is at most 1", "does not exceed 1"), []),  # words decide nothing
        (changed, ["large", "larger", "value"]),
        (changed + listed, ["large"]),
    ):
        toy.register(text)
        assert registry.unlisted_changes(toy.claim) == unlisted
    toy.register(SECOND.replace("[lem2]\n", ""), "lem2.toml")
    assert registry.unlisted_changes(registry.claim("toy2020-lem2")) == []  # begun after the freeze
    before = path.read_bytes()
    for paper, only, message in (
        ("toy2020", ["toy2020-lem1"], f"frozen already, on {today}: .*changes"),
        ("toy2020", ["toy2020-lem3"], "no claim of toy2020: toy2020-lem3"),
        ("toy2021", [], "unknown paper .*did you mean toy2020"),
    ):
        with pytest.raises(ParameterError, match=message):
            freezing.freeze(paper, only)
    assert path.read_bytes() == before
    freezing.freeze("toy2020")  # what is new, behind what was frozen before
    assert path.read_bytes().startswith(before)
    assert [*registry.frozen("toy2020")] == ["lem1", "lem2"]
    assert registry.frozen("toy2020")["lem1"] == then["lem1"]
    with pytest.raises(ParameterError, match="frozen already"):
        freezing.freeze("toy2020")


@pytest.mark.parametrize(("value", "text"), [(9, "9"), ([9], "[9]")])
def test_a_word_that_reads_like_other_changes_has_a_folder_of_its_own(value, text):
    changes = {"word": ["a", "b"], "later": [1, value]}
    alike = {"word": ["a", f"b,later={text}"]}
    assert registry.folder("smoke", changes) != registry.folder("smoke", alike)
