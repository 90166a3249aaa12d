"""The record: whatever a notebook measures, result.json is strict JSON that is read back.

And series need no pickle.
"""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ledger import fingerprints, records, registry
from ledger.claim import Claim
from ledger.errors import ClaimError

REALS = (
    st.floats() | st.integers() | st.sampled_from([10**400, -(10**400), 2**63, -0.0, 5e-324, True])
)
NUMBERS = REALS | st.builds(
    lambda kind, value: kind(value),
    st.sampled_from([np.float64, np.float32, np.float16, np.array, torch.tensor]),
    st.floats(width=16),
)
NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=10)
DTYPES = (
    arrays.boolean_dtypes()
    | arrays.floating_dtypes()
    | arrays.integer_dtypes()
    | arrays.unicode_string_dtypes()
)
ARRAYS = DTYPES.flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0, max_dims=2))
)


def strictly(text):
    """JSON without NaN and infinities, which other readers refuse."""

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def opened(claim_id, monkeypatch):
    """opened(): the toy claim, begun anew."""
    monkeypatch.setattr(fingerprints, "git_revision", lambda: None)
    return lambda: Claim(claim_id, registry.parameters_at(claim_id, "smoke"))


@given(
    value=NUMBERS,
    metrics=st.dictionaries(NAMES, st.tuples(NUMBERS, st.none() | NUMBERS), max_size=3),
)
def test_any_number_is_recorded(opened, figures, capsys, value, metrics):
    claim = opened()
    claim.check("value", value)
    for name, (measured, paper) in metrics.items():
        claim.metric(name, measured, paper=paper)
    claim.report()
    record = records.complete(strictly((figures / "smoke" / claim.id / "result.json").read_text()))
    assert list(record["metrics"]) == list(metrics)
    for name, (measured, paper) in metrics.items():
        row = record["metrics"][name]
        assert same(row["value"], measured)
        assert same(row["paper"], paper)
    (row,) = record["checks"]
    assert same(row["value"], value)
    holds = row["value"] is not None and row["value"] <= 1
    assert row["outcome"] == ("holds" if holds else "fails")
    assert record["verdict"] == ("reproduced" if holds else "not reproduced")
    assert record["verdict"].upper() in capsys.readouterr().out


def same(stored, given):
    """Whether a stored number is the given one, None standing for what is not finite."""
    try:
        expected = math.nan if given is None else float(given)
    except OverflowError:
        expected = math.inf
    return stored == (expected if math.isfinite(expected) else None)


@given(
    series=st.dictionaries(NAMES.filter(lambda name: not name.endswith(".npy")), ARRAYS, max_size=3)
)
def test_any_array_is_stored_without_pickle(opened, figures, capsys, series):
    claim = opened()
    claim.check("value", 0.5)
    claim.series(**series)
    claim.report()
    folder = figures / "smoke" / claim.id
    assert strictly((folder / "result.json").read_text())["series"] == sorted(series)
    if not series:
        return
    with np.load(folder / "series.npz", allow_pickle=False) as stored:
        assert stored.files == sorted(series)  # whatever the course of the run
        for name, array in series.items():
            assert stored[name].shape == array.shape
            if array.dtype.kind == "f":
                np.testing.assert_allclose(
                    stored[name], array.astype(np.float64), rtol=1e-5, atol=0
                )
            else:
                np.testing.assert_array_equal(stored[name], array)


@pytest.mark.parametrize(
    "value", [None, "x", [], ["x"], {}, np.ones((2, 2)), torch.ones(2, 2), object(), 1j]
)
def test_what_is_no_number_is_refused_at_once(opened, value):
    claim = opened()
    for record in (lambda: claim.check("value", value), lambda: claim.metric("a", value)):
        with pytest.raises(ClaimError, match="takes one number"):
            record()


@pytest.mark.parametrize(
    "array", [[None], [{}], [10**400], np.array([object()]), [b"x"], np.array(["2020"], "M8[Y]")]
)
def test_what_needs_a_pickle_is_refused_at_once(opened, array):
    with pytest.raises(ClaimError, match=r"the series 'a' of .* cannot be stored"):
        opened().series(a=array)
