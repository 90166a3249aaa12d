"""A panel of a figure, alone: in a thumbnail, and as a part of the whole picture on a page."""

from types import SimpleNamespace

import pytest
from PIL import Image, ImageColor

from ledger.site import build
from ledger.site.quotes import Quotes
from ledger.site.records import Entry, Version

LEFT, RIGHT = (
    (0, 40, 100, 200),
    (100, 0, 400, 100),
)  # a red and a blue panel of a white picture of 400 x 200 pixels


@pytest.fixture
def version(tmp_path):
    picture = Image.new("RGB", (400, 200), "white")
    picture.paste("red", LEFT)
    picture.paste("blue", RIGHT)
    picture.save(tmp_path / "two.png")
    record = {"figures": {"two.png": [LEFT, RIGHT]}, "verdict": "holds"}
    return Version(
        "laptop", tmp_path / "notebook.ipynb", record=record, folder=tmp_path, files=("two.png",)
    )


def colours(path):
    with Image.open(path) as opened:
        return {colour for _, colour in opened.convert("RGB").getcolors()}, opened.size


def test_a_thumbnail_is_the_first_panel_or_the_whole_where_no_panel_is_known(version, tmp_path):
    build._thumbnail(version, tmp_path / "thumbnails" / "one.png")
    assert colours(tmp_path / "thumbnails" / "one.png") == ({(255, 0, 0)}, (100, 160))
    version.record["figures"]["two.png"] = []
    build._thumbnail(version, tmp_path / "thumbnails" / "one.png")
    assert colours(tmp_path / "thumbnails" / "one.png")[1] == (400, 200)


@pytest.mark.parametrize(
    ("panel", "colour", "box"), [(1, "red", LEFT), (2, "blue", RIGHT), (3, None, (0, 0, 400, 200))]
)  # a third panel there is not
def test_a_page_shows_just_the_panel(version, tmp_path, panel, colour, box):
    entry = Entry(SimpleNamespace(id="toy2020-a"), {"laptop": version}, version)
    shown = Quotes([entry]).picture("toy2020-a", "two", "two squares", panel=panel)
    source = f"panels/toy2020-a/two-{panel}.png"
    assert f'src="{source}" alt="two squares"' in shown
    build._panels(tmp_path / "panels", shown, [entry])
    found, size = colours(tmp_path / source)
    assert size == (box[2] - box[0], box[3] - box[1])
    if colour:
        assert found == {ImageColor.getrgb(colour)}


def test_a_page_shows_the_whole_figure_where_no_panel_is_named(version):
    entry = Entry(SimpleNamespace(id="toy2020-a"), {"laptop": version}, version)
    shown = Quotes([entry], "../").picture("toy2020-a", "two", "two squares")
    assert 'src="../records/laptop/toy2020-a/two.png" alt="two squares"' in shown
    assert 'width="400" height="200"' in shown
