"""A checkout that was copied, or lies inside another one, is itself.

Its environment, its commit.
"""

import json
import os
import shutil
import subprocess

from toys import SECONDS, wait_for

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


def test_files_of_a_clone_are_those_of_the_repository_whatever_the_users_settings(tmp_path):
    """Line ends of a record, of text and of programs; a filter for notebooks."""
    contents = {
        "figures/laptop/toy/result.json": b'{"a": 1}\n',
        "figures/laptop/toy/runs.csv": b"a,b\r\n1,2\n",
        "notebooks/toy.ipynb": b'{"cells": []}\n',
        ".ci/run": b"#!/usr/bin/env bash\nset -e\n",
    }
    here, copy = tmp_path / "here", tmp_path / "copy"
    for name, content in contents.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(content)
    shutil.copy(paths.ROOT / ".gitattributes", here)
    (tmp_path / "attributes").write_text("*.ipynb filter=own\n")
    settings = {
        "user.name": "x",
        "user.email": "x",
        "core.autocrlf": "true",
        "core.attributesFile": str(tmp_path / "attributes"),
        "filter.own.clean": "sed s/cells/stripped/",
        "filter.own.smudge": "sed s/cells/changed/",
    }
    own = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    for words in (["init"], ["add", "."], ["commit", "-m", "all"]):
        subprocess.run(["git", "-C", str(here), *own, *words], check=True, capture_output=True)
    subprocess.run(["git", *own, "clone", str(here), str(copy)], check=True, capture_output=True)
    assert {name: (copy / name).read_bytes() for name in contents} == contents
    status = ["git", "-C", str(copy), *own, "status", "--porcelain"]
    assert subprocess.run(status, check=True, capture_output=True, text=True).stdout == ""


def test_a_record_names_the_commit_at_which_its_run_began(project):
    """Though another one is checked out until it ends."""
    project.only("toy2020-slow")
    project.smoke(seconds=5.0)
    (project.root / ".gitignore").write_text("__pycache__\nlogs\nstarted\n")

    def git(*words):
        own = ["-c", "user.name=x", "-c", "user.email=x"]
        command = ["git", "-C", str(project.root), *own, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    first = git("rev-parse", "--short=12", "HEAD")
    run = project.start("run", "toy2020-slow")
    wait_for(project.started.exists, "the notebook")
    git("commit", "--allow-empty", "-m", "second")
    out, err = run.communicate(timeout=SECONDS)
    assert run.returncode == 0, out + err
    assert json.loads(project.record("toy2020-slow"))["git"] == first
