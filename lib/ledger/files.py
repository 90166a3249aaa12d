"""Files that are whole or not there at all, and pictures that are small."""

import contextlib
import hashlib
import io
import os

KEPT = (".png", ".npz", ".csv", ".xz")  # suffixes of the files of a record beside result.json


def write_atomically(path, content):
    """Write bytes under a temporary name beside `path`, then rename.

    A kill or a full disk leaves the old file.
    """
    write_together({path: content})


def write_together(contents):
    """Write {path: bytes}: all under temporary names, then rename them in order.

    A full disk leaves all old files.
    """
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


def remove_others(folder, names):
    """Remove what earlier runs left in a record's folder.

    Pictures, tables and series that are not named.
    """
    for old in folder.iterdir():
        if old.suffix in KEPT and old.name not in names:
            old.unlink()


def forget(checkpoints):
    """Remove the checkpoints of a finished run from their folder.

    Refused ones stay for whoever wants to see them.
    """
    for file in checkpoints.rglob("*.safetensors"):
        file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # absent, or not empty
        checkpoints.rmdir()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def drawn(fig):
    """(PNG, [[left, upper, right, lower] of each panel with its labels, in pixels]) of a figure."""
    dots = 200 if fig.get_figwidth() <= 7 else 150  # per inch
    boxes = []
    with rendered(fig, dots) as picture:
        for ax in fig.axes:
            box = ax.get_tightbbox()
            if box is not None:  # the panel is visible
                left, lower, right, upper = box.extents
                edges = (left, picture.height - upper, right, picture.height - lower)
                boxes.append([max(0, round(edge)) for edge in edges])
        return compact_png(picture, words(fig)), boxes


@contextlib.contextmanager
def rendered(fig, dots):
    """The picture of a figure at so many dots per inch, which the figure has within.

    `savefig` would lay the panels out, draw nothing, and then draw in a second pass.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas, before = fig.canvas, fig.dpi
    fig.set_dpi(dots)
    try:
        rendering = FigureCanvasAgg(fig)
        rendering.draw()
        size = rendering.get_width_height()
        yield Image.frombuffer("RGBA", size, rendering.buffer_rgba(), "raw", "RGBA", 0, 1)
    finally:
        fig.set_dpi(before)
        fig.set_canvas(canvas)


def words(fig):
    """All that is written in a figure, a line each, without repetitions.

    Titles, names and numbers of axes, legends and notes.
    """
    from matplotlib.text import Text

    texts = [text.get_text().strip() for text in fig.findobj(Text) if text.get_visible()]
    return "\n".join(dict.fromkeys(filter(None, texts)))


def compact_png(picture, description=None):
    """PNG of an image in 256 colours; the description travels with it as text of the file."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    small, info = io.BytesIO(), PngInfo()
    if description:
        info.add_itxt("Description", description)
    colours = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    colours.save(small, "PNG", optimize=True, pnginfo=info)
    return small.getvalue()
