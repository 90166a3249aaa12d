"""The picture of a figure is the one that matplotlib saves."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from ledger import files
from overparam import plots


def _panels():
    fig, axes = plots.figure(2, 3, height=2.5)
    for i, ax in enumerate(axes.flat):
        ax.plot([1, 10, 100], label=f"series {i}")
        ax.set(yscale="log", ylabel=r"loss, $\alpha = -1$", title=f"panel {i}")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center")
    return fig


def _two_axes():
    fig, [[ax]] = plots.figure()
    ax.plot([1, 2, 3])
    ax.twinx().plot([3, 2, 1])
    return fig


def _wide():
    fig, axes = plots.figure(1, 2, width=4.0)
    axes[0, 0].imshow(np.eye(5))
    axes[0, 1].set_visible(False)
    return fig


@pytest.mark.parametrize("draw", [_panels, _two_axes, _wide])
def test_a_picture_is_what_matplotlib_saves(draw):
    saved = io.BytesIO()
    plotted = draw()
    plotted.savefig(saved, format="png", dpi=150)
    plt.close(plotted)
    fig = draw()
    before = fig.canvas, fig.dpi
    with files.rendered(fig, 150) as picture:
        found = np.asarray(picture.convert("RGB"))
    assert np.array_equal(found, np.asarray(Image.open(saved).convert("RGB")))
    assert (fig.canvas, fig.dpi) == before
    plt.close(fig)


def test_panels_lie_within_the_picture_and_apart():
    fig = _panels()
    content, boxes = files.drawn(fig)
    width, height = Image.open(io.BytesIO(content)).size
    assert (width, height) == (1400, 1000)  # 7 inches, two rows of 2.5, 200 dots per inch
    assert len(boxes) == 6
    for left, upper, right, lower in boxes:
        assert 0 <= left < right <= width
        assert 0 <= upper < lower <= height
    assert boxes[0][2] < boxes[1][0]
    assert boxes[0][3] < boxes[3][1]
    plt.close(fig)
