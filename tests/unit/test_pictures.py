"""An executed notebook refers to the figures of its record, and gets them back where it is shown."""

import base64
import io
import json

import pytest
from PIL import Image

from overparam.run import runner


def png(colour):
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(buffer, "PNG")
    return buffer.getvalue()


def shown(content):
    data = {"image/png": base64.b64encode(content).decode(), "text/plain": "<Figure size 1x1>"}
    return {"output_type": "display_data", "metadata": {}, "data": data}


@pytest.fixture
def sealed(tmp_path):
    """(stored notebook, folder) of a run with a figure of its own, one of another claim, and one that is no file."""
    pictures = [png(colour) for colour in ("red", "green", "blue")]
    for claim, name, content in (("a2000-x", "loss.png", pictures[0]), ("a2000-y", "rate.png", pictures[1])):
        (tmp_path / claim).mkdir()
        (tmp_path / claim / name).write_bytes(content)
    cell = {"cell_type": "code", "metadata": {}, "source": "", "outputs": [shown(p) for p in pictures]}
    meta = {"papermill": {"end_time": "x", "parameters": {}, "duration": 1, "version": "2"}}
    (tmp_path / "partial").write_text(json.dumps({"cells": [cell], "metadata": meta}))
    runner._seal(tmp_path / "partial", tmp_path, "a2000-x")
    return json.loads((tmp_path / "a2000-x" / "notebook.ipynb").read_text()), tmp_path / "a2000-x"


def test_a_picture_is_stored_once_and_comes_back(sealed):
    notebook, folder = sealed
    outputs = notebook["cells"][0]["outputs"]
    assert [output["data"].get("text/plain") for output in outputs[:2]] == [
        "<figure loss.png>", "<figure ../a2000-y/rate.png>"
    ]  # fmt: skip
    assert ["image/png" in output["data"] for output in outputs] == [False, False, True]
    runner.with_pictures(notebook, folder)
    found = [base64.b64decode(output["data"]["image/png"]) for output in outputs]
    assert found[:2] == [png("red"), png("green")]


@pytest.mark.parametrize("name", ["absent.png", "../../secret.png", "/etc/secret.png", "loss.svg", "", 3, None, {}])
def test_what_is_no_figure_of_a_record_stays_words(sealed, name):
    notebook, folder = sealed
    (folder.parent.parent / "secret.png").write_bytes(b"secret")
    for output in notebook["cells"][0]["outputs"][:2]:
        output["metadata"] = {"overparam": {"figure": name}}
    runner.with_pictures(notebook, folder)
    assert ["image/png" in output["data"] for output in notebook["cells"][0]["outputs"]] == [False, False, True]
