"""A checkout that was copied, or lies inside another one, is itself.

Its environment, its commit.
"""

import os
import shutil
import subprocess

from ledger import fingerprints, paths

PYTHON = """#!/bin/sh
mkdir -p .venv/bin
printf '#!/bin/sh\\necho made in %s\\n' "$(pwd)" > .venv/bin/python
chmod +x .venv/bin/python
"""


def test_a_copied_environment_is_made_anew(tmp_path):
    """Of interpreters that only say where they were made."""
    base, here, copy = tmp_path / "python", tmp_path / "here", tmp_path / "copy"
    base.write_text(PYTHON)
    base.chmod(0o755)
    here.mkdir()
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(paths.ROOT / name, here)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")
    }

    def ran(folder):
        command = [
            "make",
            "--no-print-directory",
            "-C",
            str(folder),
            "figures",
            f"BASE_PYTHON={base}",
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert ran(here).endswith(f"made in {here}\n")
    assert ran(here) == f"made in {here}\n"
    shutil.copytree(here, copy)
    assert ran(copy).endswith(f"made in {copy}\n")


def test_the_commit_is_this_checkouts(tmp_path, monkeypatch):
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    for name in ("lib", "notebooks", "figures"):
        (inner / name).mkdir(parents=True)
        (inner / name / "a").write_text("1")
    monkeypatch.setattr(paths, "ROOT", inner)

    def git(folder, *words):
        own = ["-c", "user.name=x", "-c", "user.email=x", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", "-C", str(folder), *own, *words], check=True, capture_output=True)

    def commit(folder):
        git(folder, "init")
        git(folder, "add", ".")
        git(folder, "commit", "-m", "all")

    commit(outer)
    assert fingerprints.git_revision() is None
    commit(inner)
    clean = fingerprints.git_revision()
    assert len(clean) == 12
    monkeypatch.setenv("GIT_DIR", str(outer / ".git"))  # as in a hook of another one
    assert fingerprints.git_revision() == clean
    monkeypatch.delenv("GIT_DIR")
    (inner / "figures" / "new").touch()
    assert fingerprints.git_revision() == clean
    for new in ("lib/b", "notebooks/b"):
        (inner / new).touch()
        assert fingerprints.git_revision() == f"{clean}-dirty"
        (inner / new).unlink()
    (inner / "lib" / "a").write_text("2")
    for words in (["status"], ["add", "."]):
        git(inner, *words)
        assert fingerprints.git_revision() == f"{clean}-dirty"
