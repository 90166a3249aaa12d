"""Two notebooks of different kinds under the narrowest CPU kernels with two threads: nothing that decides may turn."""

import pytest
from kernel_sets import batch, flips, settings, used
from runs import Copy

# Kernels in closed form with their spectrum; descent by hand of leaky nets.
CLAIMS = ("arora2019-fig1-spectrum-projections", "guo2024-fig2-rate-vs-alpha")
REFERENCE, *OTHERS = settings()
OTHERS = [(OTHERS[-2][0], 2)] if len(OTHERS) > 1 else OTHERS
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return Copy(tmp_path_factory.mktemp("sets") / "project")


@pytest.fixture(scope="module")
def reference(copy):
    return batch(copy, *REFERENCE, CLAIMS)


@pytest.mark.parametrize("setting", OTHERS, ids=lambda setting: f"{setting[0]}, {setting[1]} threads")
def test_nothing_that_decides_turns(copy, reference, setting):
    found = batch(copy, *setting, CLAIMS)
    assert found.keys() == reference.keys() >= set(CLAIMS)
    for claim, record in found.items():
        assert used(record) == setting
        assert flips(record, reference[claim]) == []
