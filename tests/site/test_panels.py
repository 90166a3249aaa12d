"""A panel of a figure, alone: in a thumbnail, and as a part of the whole picture on a page."""

import re
from types import SimpleNamespace

import pytest
from PIL import Image

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
    ("panel", "box"), [(1, LEFT), (2, RIGHT), (3, (0, 0, 400, 200)), (None, (0, 0, 400, 200))]
)  # a third panel there is not
def test_a_page_shows_just_the_panel(version, panel, box):
    entry = Entry(SimpleNamespace(id="toy2020-a"), {"laptop": version}, version)
    shown = Quotes([entry]).picture("toy2020-a", "two", "two squares", panel=panel)
    across, down = map(int, re.search(r"aspect-ratio: (\d+) / (\d+)", shown).groups())
    width, left, top = (
        float(re.search(rf"{name}: (-?[\d.]+)%", shown)[1]) for name in ("width", "left", "top")
    )
    assert (across, down) == (box[2] - box[0], box[3] - box[1])
    assert width / 100 * across == pytest.approx(400, rel=1e-4)
    assert (-left / 100 * across, -top / 100 * down) == pytest.approx(box[:2], rel=1e-4)
    assert 'alt="two squares"' in shown
    assert 'src="records/laptop/toy2020-a/two.png"' in shown
