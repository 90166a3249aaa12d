"""The three notebooks of Allen-Zhu et al.'s landscapes are one computation: only parameters and claims differ."""

import json
import re

from overparam.paths import NOTEBOOKS

STEMS = ("fig1-vgg19", "fig2-resnet32-cifar100", "fig3-resnet110-cifar100")


def code(stem):
    """Code cells but for the parameters, with the names of claims left out."""
    cells = json.loads((NOTEBOOKS / f"allenzhu2019-{stem}.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"][1:]
    return [re.sub(r'"allenzhu2019-[\w-]+"', "", source) for source in sources]


def test_the_two_residual_nets_share_all_cells():
    assert code(STEMS[1]) == code(STEMS[2])


def test_all_nets_share_data_experiment_and_figures():
    first, second = code(STEMS[0]), code(STEMS[1])
    shared = [source for source in second[1:] if source in first]
    assert any("landscapes(" in source for source in shared)
    assert any("image_task(" in source for source in shared)
    assert len(second) - len(shared) <= 4  # claims, whose figure is which, which checks
