"""Files that are whole or not there at all, and pictures that are small."""

import contextlib
import io
import os

KEPT = (".png", ".svg", ".npz", ".csv", ".xz")  # suffixes of the files of a record beside result.json
DOTS = 200  # per inch of a figure


def write_atomically(path, content):
    """Write bytes under a temporary name beside `path`, then rename: a kill or a full disk leaves the old file."""
    write_together({path: content})


def write_together(contents):
    """Write {path: bytes}: all under temporary names, then rename them in order: a full disk leaves all old files."""
    temporary = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in contents}
    try:
        for path, content in contents.items():
            with open(temporary[path], "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path in contents:
            os.replace(temporary[path], path)
    finally:
        for left in temporary.values():
            left.unlink(missing_ok=True)


def forget(checkpoints):
    """Remove the checkpoints of a finished run from their folder; refused ones stay for whoever wants to see them."""
    for file in checkpoints.rglob("*.safetensors"):
        file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # absent, or not empty
        checkpoints.rmdir()


def png(fig):
    """A drawn figure as PNG of 256 colours."""
    drawn = io.BytesIO()
    fig.savefig(drawn, format="png", dpi=_dots(fig))
    return compact_png(drawn.getvalue())


def panels(fig):
    """The boxes [left, upper, right, lower] in pixels of a drawn figure's panels, with their labels."""
    import numpy as np

    dots = _dots(fig)
    height, boxes = fig.get_figheight() * dots, []
    for ax in fig.axes:
        box = ax.get_tightbbox()
        if box is not None and ax.get_visible():
            left, lower, right, upper = np.array(box.extents) * dots / fig.dpi
            edges = [left, height - upper, right, height - lower]
            boxes.append([max(0, round(edge)) for edge in edges])
    return boxes


def _dots(fig):
    return DOTS if fig.get_figwidth() <= 7 else 150


def compact_png(content):
    """The same picture in 256 colours."""
    from PIL import Image

    small = io.BytesIO()
    picture = Image.open(io.BytesIO(content)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(small, "PNG", optimize=True)
    return small.getvalue()
