"""A slider is one piece of HTML: frames of one size, labels, nothing asked of any host."""

import base64
import io
import re
from urllib.parse import urlsplit

import matplotlib.pyplot as plt
import pytest
from bs4 import BeautifulSoup
from PIL import Image

from ledger import sliders
from ledger.errors import ClaimError

LABELS = ["slope -2", "slope -1 & even", "slope 0"]


def drawn(height):
    fig, ax = plt.subplots(figsize=(3, 2))
    ax.plot([0, 1], [0, height])
    ax.set_ylim(-2, 2)
    return fig


@pytest.fixture(scope="module")
def page():
    """The HTML of a slider over three lines, which rise by -1, 0 and 1."""
    frames = [sliders.frame(drawn(height)) for height in (-1, 0, 1)]
    plt.close("all")
    return sliders.document("Slope", frames, LABELS, 1, 300)


def test_frames_are_pictures_of_one_size_with_labels(page):
    soup = BeautifulSoup(page, "html.parser")
    frames = soup.find_all("img")
    assert [frame["alt"] for frame in frames] == LABELS
    assert ["hidden" in frame.attrs for frame in frames] == [True, False, True]
    assert soup.output.text == LABELS[1]
    assert (soup.input["min"], soup.input["max"], soup.input["value"]) == ("0", "2", "1")
    pictures = [
        Image.open(io.BytesIO(base64.b64decode(frame["src"].partition(",")[2]))) for frame in frames
    ]
    assert {picture.size for picture in pictures} == {(360, 240)}
    assert len({picture.tobytes() for picture in pictures}) == 3


def test_nothing_is_asked_of_any_host(page):
    addresses = re.findall(r"(?:src|href)=\"([^\"]*)\"", page)
    assert {urlsplit(address).scheme for address in addresses} == {"data"}
    assert "<script" not in page


def test_a_claim_shows_a_slider_and_stores_nothing_of_it(toy, capsys):
    claim = toy.measured()
    claim.slider(drawn, [-1, 1], "Height", lambda value: f"height {value}")
    assert "Height: height -1; height 1" in capsys.readouterr().out
    assert plt.get_fignums() == []
    claim.report()
    assert list(toy.record()["figures"]) == []
    with pytest.raises(ClaimError, match="goes through two values at least"):
        claim.slider(drawn, [1], "Height", str)
