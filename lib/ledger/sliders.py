"""Figures that a slider goes through: one piece of HTML that needs no file and no request."""

import base64
import html
import io

from . import files

DOTS = 120  # per inch; a slider is looked at, not printed
COLOURS = 48  # of a frame
_CHANGE = (
    "const slider = this.closest('.slider');"
    " slider.querySelectorAll('img').forEach((frame, k) => { frame.hidden = k != this.value; });"
    " const text = slider.querySelectorAll('img')[this.value].alt;"
    " slider.querySelector('output').textContent = text;"
    " this.setAttribute('aria-valuetext', text);"
)


def frame(fig):
    """A figure as the bytes of a WebP picture without loss in few colours."""
    from PIL import Image

    small = io.BytesIO()
    with files.rendered(fig, DOTS) as picture:
        colours = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    colours.convert("RGB").save(small, "WEBP", lossless=True, method=6)
    return small.getvalue()


def document(name, frames, labels, start, width):
    """The HTML of a slider over frames, bytes of WebP each, with a label for each.

    name: what is moved, as text; start: the number of the frame that is shown first; width: of a
    frame, in CSS pixels.
    """
    pictures = []
    for k, (content, label) in enumerate(zip(frames, labels, strict=True)):
        shown = "" if k == start else " hidden"
        data = base64.b64encode(content).decode()
        pictures.append(
            f'<img src="data:image/webp;base64,{data}" alt="{html.escape(label)}" width="{width}"'
            f' style="max-width: 100%; height: auto"{shown}>'
        )
    now = html.escape(labels[start])
    line = (
        f"<label>{html.escape(name)}"
        f' <input type="range" min="0" max="{len(frames) - 1}" value="{start}" step="1"'
        f' aria-valuetext="{now}" oninput="{_CHANGE}" style="width: 16em; max-width: 100%">'
        f"</label> <output>{now}</output>"
    )
    return "\n".join(['<div class="slider">', f"<p>{line}</p>", *pictures, "</div>"])
