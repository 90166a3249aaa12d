"""The command `overparam` where it cannot run: one line that says what is missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ledger


def ran(code, **options):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, **options
    )


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_the_extra_it_says_what_to_install(package):
    hidden = f"import sys; sys.modules['{package}'] = None; "
    done = ran(hidden + "sys.argv = ['overparam', 'list']; from ledger.entry import main; main()")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"overparam: the command line needs {package}: pip install 'overparam[notebooks]'"
    ]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of an installed copy of the packages, as of `pip install .`: no notebooks."""
    lib = Path(ledger.__file__).resolve().parents[1]
    folder = tmp_path_factory.mktemp("python") / "lib" / "python3.11" / "site-packages"
    shutil.copytree(lib, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def refused(program, installed, here):
    """Whether a program of an installed copy ends with code 2 and one line, and writes nothing."""
    tops = (installed.parents[2], here)
    before = [sorted(top.rglob("*")) for top in tops]
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *program],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=here,
        env=environment,
    )
    (line,) = done.stderr.splitlines()
    assert "checkout" in line
    assert "pip install" in line
    assert [sorted(top.rglob("*")) for top in tops] == before
    return (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    "words",
    [
        "list",
        "list --json",
        "show arora2019-fig1-spectrum",
        "run arora2019-fig1-spectrum",
        "figures",
        "lab",
        "new toy2022-thm1",
        "outputs",
        "refresh",
        "freeze arora2019",
        "site",
        "diff HEAD",
        "data list",
        "--help",
        "",
    ],
)
def test_without_a_checkout_every_command_says_so_and_writes_nothing(installed, tmp_path, words):
    code = f"import sys; sys.argv = ['overparam', *{words.split()}]; "
    code += "from ledger.entry import main; main()"
    assert refused(["-c", code], installed, tmp_path)


@pytest.mark.parametrize("words", ["list", "figures", "new toy2022-thm1"])
def test_the_module_of_the_make_targets_says_so_as_well(installed, tmp_path, words):
    assert refused(["-m", "ledger.cli", *words.split()], installed, tmp_path)
