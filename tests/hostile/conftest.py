"""The same examples in every run, and small projects to try them on."""

import tempfile
from pathlib import Path

import hypothesis.configuration
import pytest
from hypothesis import HealthCheck, settings
from toy_claim import Toy

from overparam import paths
from overparam.record import checks

hypothesis.configuration.set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "hypothesis")
settings.register_profile(
    "hostile", derandomize=True, deadline=None, database=None, max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("hostile")


@pytest.fixture
def toy(tmp_path, monkeypatch):
    folder = tmp_path / "notebooks"
    (folder / "checks").mkdir(parents=True)
    for name, path in (("NOTEBOOKS", folder), ("CHECKS", folder / "checks"), ("PROFILES", folder / "profiles.toml")):
        monkeypatch.setattr(paths, name, path)
    made = Toy(folder)
    made.write()
    yield made
    checks.registry.cache_clear()


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """An empty folder of data sets, and no cache."""
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("OVERPARAM_DATA", str(tmp_path / "mirror"))
    return tmp_path / "mirror"
