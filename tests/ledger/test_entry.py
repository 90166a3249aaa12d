"""The command `overparam` where it cannot run: one line that says what is missing."""

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


def test_without_a_checkout_it_says_where_the_claims_are(tmp_path):
    """As of `pip install .`, which installs the packages and no notebooks."""
    lib = Path(ledger.__file__).resolve().parents[1]
    installed = tmp_path / "python" / "site-packages"
    shutil.copytree(lib, installed)
    code = f"import sys; sys.path.insert(0, {str(installed)!r}); "
    code += "sys.argv = ['overparam', 'list']; from ledger.entry import main; main()"
    done = ran(code, cwd=tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "checkout" in done.stderr
    assert "pip install" in done.stderr
