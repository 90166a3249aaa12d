"""Parts of figures: a panel of several can be read where the whole would be too small."""

import numpy as np
from PIL import Image

BEHIND = 45  # pixels between two panels, at least
THICK = 6  # pixels: more than any line of a panel's frame
BELOW = 0.47  # inches from a panel's lower edge to the end of its label
RESOLUTION = 170  # dots per inch, where the file does not say


def width(path):
    """Pixels of the page that a figure takes where there is room: letters of all figures are of the same size."""
    with Image.open(path) as picture:
        return round(96 * picture.width / picture.info.get("dpi", (RESOLUTION,))[0])


def panel(picture, index):
    """The box (left, upper, right, lower) of a panel of the uppermost row, with its labels; index: from 0, leftmost.

    Panels are found by their lower edges: the row of pixels with most of its dark ones in long thin lines, the first of
    its kind. The whole picture where there is no such row, as of surfaces, or no such panel.
    """
    dark = np.asarray(picture.convert("L")) < 90
    padded = np.pad(dark, ((THICK, THICK), (0, 0)))
    beside = padded[: -2 * THICK] | padded[2 * THICK :]  # tells a bar from a line
    edges = [[(a, b) for a, b in _runs(row) if near[a:b].mean() < 0.5] for row, near in zip(dark, beside, strict=True)]
    lengths = np.array([sum(end - start for start, end in runs) for runs in edges])
    if not lengths.any():
        return (0, 0, *picture.size)
    lower = int(np.argmax(lengths >= 0.95 * lengths.max()))
    height = round(lower + BELOW * picture.info.get("dpi", (RESOLUTION,))[0])
    ends = [0, *(_behind(dark[:height], end) for _, end in edges[lower])]
    if index + 1 >= len(ends):
        return (0, 0, *picture.size)
    return ends[index], 0, ends[index + 1], min(height, picture.height)


def _behind(dark, end):
    """The first empty column behind a panel, where a last number's half has ended; a few pixels on if there is none."""
    empty = np.flatnonzero(~dark[:, end : end + BEHIND].any(axis=0))
    return min(end + int(empty[0] if len(empty) else 8) + 2, dark.shape[1])


def _runs(row):
    """Starts and ends of the runs of True that are at least an eighth as long as the row."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(np.int8)))
    return [(int(start), int(end)) for start, end in changes.reshape(-1, 2) if end - start >= len(row) / 8]
