"""The sliders of `explore-bounds` redraw with the value they were moved to."""

import json

import matplotlib.pyplot as plt
import pytest

from ledger.paths import NOTEBOOKS


def test_moving_a_slider_redraws(capsys):
    plt.switch_backend("agg")
    space = {}
    for cell in json.loads((NOTEBOOKS / "explore-bounds.ipynb").read_text(encoding="utf-8"))[
        "cells"
    ]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]).replace("plt.show()", "plt.close('all')"), space)
    drawn = []
    space["draw"] = drawn.append
    before = {row.theorem: row.width for row in space["rows"]}
    space["sliders"]["n"].value = space["n"] * 10
    (rows,) = drawn
    assert {row.theorem for row in rows} == set(before)
    noy = next(row for row in rows if row.theorem.startswith("Noy"))
    assert noy.width - before[noy.theorem] == pytest.approx(2)
    for name, slider in space["sliders"].items():  # both ends are inside what the theorems allow
        for end in ("min", "max"):
            value = getattr(slider, end)
            slider.value = 10**value if name != "alpha" else value
    capsys.readouterr()
