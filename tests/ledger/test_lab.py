"""Copies to work in: an edited one is never lost and never the reference."""

import json
import re

import pytest

from ledger import lab, paths, registry

NAMES = ("toy2020/a.ipynb", "b.ipynb")


@pytest.fixture
def originals(tmp_path, monkeypatch):
    """A folder of two notebooks, whose copies go beside it."""
    monkeypatch.setattr(paths, "LAB", tmp_path / "lab")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(lab, "_contents", list)
    (paths.NOTEBOOKS / "toy2020").mkdir(parents=True)
    for name in NAMES:
        (paths.NOTEBOOKS / name).write_text("old")
    return paths.NOTEBOOKS


def test_an_edited_copy_stays_and_the_others_follow_their_originals(originals):
    own, other = (paths.LAB / name for name in NAMES)
    assert lab.prepare() == []
    own.write_text("mine")
    assert lab.prepare() == []
    for name in NAMES:
        (originals / name).write_text("new")
    assert lab.prepare() == [own]
    assert [own.read_text(), other.read_text()] == ["mine", "new"]
    assert (originals / NAMES[0]).read_text() == "new"
    own.unlink()
    assert lab.prepare() == []
    assert own.read_text() == "new"


def test_the_index_leads_to_every_claims_notebook(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "LAB", tmp_path / "lab")
    monkeypatch.setattr(paths, "FIGURES", paths.ROOT / "figures")
    lab.prepare()
    text = "\n".join(
        "".join(cell["source"]) for cell in json.loads((paths.LAB / lab.INDEX).read_text())["cells"]
    )
    links = re.findall(r"\]\((.*?\.ipynb)\)", text)
    notebooks = [*paths.NOTEBOOKS.glob("*.ipynb"), *paths.NOTEBOOKS.glob("*/*.ipynb")]
    assert set(links) == {str(path.relative_to(paths.NOTEBOOKS)) for path in notebooks}
    assert len(links) == len(registry.registry()) + len([*paths.NOTEBOOKS.glob("*.ipynb")])
    assert all((paths.LAB / link).exists() for link in links)
