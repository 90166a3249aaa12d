"""Files that are whole or not there at all, and pictures that are small."""

import contextlib
import io
import os

PAGE = 7.0  # inches: what a page shows; wider figures, of an older form, get fewer dots


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
    """A figure as PNG of 256 colours, 200 dots per inch at the page's width."""
    drawn = io.BytesIO()
    fig.savefig(drawn, format="png", dpi=200 if fig.get_figwidth() <= PAGE else 150)
    return compact_png(drawn.getvalue())


def compact_png(content):
    """The same picture in 256 colours."""
    from PIL import Image

    small = io.BytesIO()
    picture = Image.open(io.BytesIO(content)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(small, "PNG", optimize=True)
    return small.getvalue()
