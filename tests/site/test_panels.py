"""Where a figure's panels are found, of figures drawn here."""

import io

import matplotlib.pyplot as plt
import pytest
from PIL import Image

from overparam.run.site import pictures


def drawn(fig):
    """The figure as a picture, and each panel's frame (left, upper, right, lower) in its pixels."""
    fig.canvas.draw()
    height = fig.bbox.height
    frames = [(box.x0, height - box.y1, box.x1, height - box.y0) for box in (ax.get_window_extent() for ax in fig.axes)]
    stored = io.BytesIO()
    fig.savefig(stored, dpi=fig.dpi)
    plt.close(fig)
    return Image.open(stored), frames


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 3), (2, 2)])
def test_a_panel_is_cut_out_with_its_labels_and_without_its_neighbours(rows, columns):
    fig, axes = plt.subplots(rows, columns, figsize=(8.2, 3 * rows), dpi=170, squeeze=False, layout="none")
    for ax in axes.flat:
        ax.plot([0, 1, 2], [0, 3, 1])
        ax.axhline(1, color="black", linestyle="--")
        ax.set(xlabel="a label", ylabel="another")
        ax.spines[["top", "right"]].set_visible(False)
    fig.tight_layout()
    picture, frames = drawn(fig)
    for k in range(columns):
        left, upper, right, lower = pictures.panel(picture, k)
        x0, y0, x1, y1 = frames[k]
        assert left < x0 - 40 * (columns > 1)  # numbers and label are in it
        assert upper < y0
        assert x1 < right < x1 + 20
        assert y1 + 60 < lower < y1 + 100
        assert k == 0 or left > frames[k - 1][2] - 2


def test_bars_are_no_frame_and_a_surface_has_none():
    fig, ax = plt.subplots(figsize=(8.2, 3), dpi=170)
    ax.barh([0, 1], [9, 8.9], color="black")
    ax.set(xlim=(0, 10))
    ax.spines[["top", "right"]].set_visible(False)
    picture, [(_, _, _, bottom)] = drawn(fig)
    assert pictures.panel(picture, 0)[3] > bottom
    picture = Image.new("RGB", (300, 200), "white")
    assert pictures.panel(picture, 0) == (0, 0, 300, 200)
