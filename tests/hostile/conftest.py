"""The same examples in every run, and small projects to try them on."""

import tempfile
from pathlib import Path

import hypothesis.configuration
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as of_examples

import toy
from ledger import paths, registry
from overparam import settings

hypothesis.configuration.set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "hypothesis")
of_examples.register_profile(
    "hostile",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
of_examples.load_profile("hostile")


@pytest.fixture
def claim_id(tmp_path, monkeypatch):
    """The one claim of a small project."""
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    toy.write(paths.NOTEBOOKS, "toy2020-hostile", "value = 0.5")
    registry.registry.cache_clear()
    yield "toy2020-hostile"
    registry.registry.cache_clear()


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """An empty folder of data sets, and no cache."""
    monkeypatch.setattr(settings, "data_cache", tmp_path / "cache")
    monkeypatch.setattr(settings, "data_mirror", tmp_path / "mirror")
    return tmp_path / "mirror"
