"""A copy of the project with toy claims, which the tests may break; the command line runs in it as for a user."""

import os
import shutil
import subprocess
import sys

import nbformat
import pytest

from overparam.paths import ROOT

CHECK = """
[[{claim}.checks]]
name = "value"
tag = "R"
wording = "the value"
relation = "<="
threshold = 1.0
"""
CELLS = {
    "toy2020-fine": "from overparam.train import halving_step\nhalving_step([2.0, 1.0])\nvalue = width / 10",
    "toy2020-slow": 'import time\nopen("started", "w").close()\ntime.sleep(seconds)\nvalue = 0.5',
    "toy2020-raises": "1 / 0",
    "toy2020-dies": "import os\nos._exit(1)",
    "toy2020-diverges": (
        "import torch\nfrom overparam.nets.two_layer import TwoLayerReLU\n"
        "from overparam.train import SquaredLoss, gradient_descent\n"
        "x = torch.eye(3, dtype=torch.float64)\nnet = TwoLayerReLU(3, 8, 1.0, seeds=[0], dtype=torch.float64)\n"
        "gradient_descent(net, x, SquaredLoss(torch.ones(3).double(), 'sum'), 1e200, 5)"
    ),
    "toy2020-data": 'from overparam.data import load\nload("mnist", n_train=width, n_test=1)\nvalue = 0.5',
}
PARAMETERS = 'profile = "smoke"\nseed = 0\nwidth = 5\nseconds = 0.0\nrate = 0.5'


class Project:
    """The copied tree; `run(*words)` is the command line in it."""

    def __init__(self, root):
        self.root = root
        self.figures = root / "figures"
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("OVERPARAM")},
            "PYTHONPATH": str(root / "lib"),
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "300",
            "http_proxy": "http://127.0.0.1:9",  # no network, whatever the machine has
            "https_proxy": "http://127.0.0.1:9",
        }

    def start(self, *words, **environment):
        return subprocess.Popen(
            [sys.executable, "-m", "overparam.cli", *words], cwd=self.root, env={**self.environment, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *words, **environment):
        process = self.start(*words, **environment)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def record(self, claim, profile="smoke"):
        path = self.figures / profile / claim / "result.json"
        return path.read_bytes() if path.exists() else None

    def only(self, *claims):
        """Keep these claims alone."""
        table = "".join(
            f'[{c}]\ntitle = "Toy"\nsource = "Lemma 1"\nkind = "lemma"\n' + CHECK.format(claim=c) for c in claims
        )
        (self.root / "notebooks" / "checks" / "toy2020.toml").write_text(table)


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "a project"  # a path with a space
    shutil.copytree(ROOT / "lib", root / "lib", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "Snakefile", root)
    (root / "notebooks" / "checks").mkdir(parents=True)
    (root / "notebooks" / "profiles.toml").write_text("")
    for claim, body in CELLS.items():
        cells = [
            nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}),
            nbformat.v4.new_code_cell(f'from overparam.claims import Claim\nclaim = Claim("{claim}", globals())'),
            nbformat.v4.new_code_cell(body),
            nbformat.v4.new_code_cell('claim.check("value", value)\nclaim.report()'),
        ]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), root / "notebooks" / f"{claim}.ipynb")
    made = Project(root)
    made.only(*CELLS)
    return made
