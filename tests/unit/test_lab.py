"""Copies to work in: an edited one is never lost and never the reference."""

import json
import re

import pytest

from overparam import paths
from overparam.paths import NOTEBOOKS
from overparam.record import checks
from overparam.run import lab


@pytest.fixture
def originals(tmp_path, monkeypatch):
    """A folder of two notebooks, whose copies go beside it."""
    monkeypatch.setattr(paths, "LAB", tmp_path / "lab")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(lab, "_contents", list)
    paths.NOTEBOOKS.mkdir()
    for name in ("a.ipynb", "b.ipynb"):
        (paths.NOTEBOOKS / name).write_text("old")
    return paths.NOTEBOOKS


def test_an_edited_copy_stays_and_the_others_follow_their_originals(originals):
    assert lab.prepare() == []
    (paths.LAB / "a.ipynb").write_text("mine")
    assert lab.prepare() == []
    for name in ("a.ipynb", "b.ipynb"):
        (originals / name).write_text("new")
    assert lab.prepare() == [paths.LAB / "a.ipynb"]
    assert [(paths.LAB / name).read_text() for name in ("a.ipynb", "b.ipynb")] == ["mine", "new"]
    assert (originals / "a.ipynb").read_text() == "new"
    (paths.LAB / "a.ipynb").unlink()
    assert lab.prepare() == []
    assert (paths.LAB / "a.ipynb").read_text() == "new"


def test_the_index_leads_to_every_notebook(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "LAB", tmp_path / "lab")
    monkeypatch.setattr(paths, "FIGURES", paths.ROOT / "figures")
    lab.prepare()
    text = "\n".join("".join(cell["source"]) for cell in json.loads((paths.LAB / lab.INDEX).read_text())["cells"])
    links = re.findall(r"\]\((.*?\.ipynb)\)", text)
    assert set(links) == {path.name for path in NOTEBOOKS.glob("*.ipynb")}
    assert len(links) == len(checks.registry()) + 1
    assert all((paths.LAB / link).exists() for link in links)
