"""What a newcomer meets first: how to cite, badges and workflows, Binder, conda, first commands."""

import datetime
import os
import re
import shlex
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from ledger import paths

README = (paths.ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CONDA = yaml.safe_load((paths.ROOT / "environment.yml").read_text(encoding="utf-8"))
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in (paths.ROOT / ".github" / "workflows").glob("*.yml")
}
ON = True  # what YAML makes of the key `on`
REQUIRED = {"cff-version", "title", "message", "authors"}  # by the citation file format, 1.2.0
ALLOWED = REQUIRED | {"type", "version", "date-released", "license", "repository-code"}
NAMES = ({"name"}, {"given-names", "family-names"})  # of a group, of a person


def lines_of(*names):
    """The lines of a file in the checkout that are neither empty nor a comment."""
    lines = paths.ROOT.joinpath(*names).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def bibtex():
    """(kind, key, {field: value}) of the entry in the README."""
    kind, key, body = re.search(
        r"^    @(\w+)\{([^,\n]*),\n(.*?)^    \}$", README, re.M | re.S
    ).groups()
    return kind, key, dict(re.findall(r"^ +(\w+) += \{(.*)\},?$", body, re.M))


def test_the_citation_file_is_valid():
    assert set(CITATION) >= REQUIRED
    assert set(CITATION) <= ALLOWED | {"references"}
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["type"] == "software"
    assert isinstance(CITATION["date-released"], datetime.date)
    assert CITATION["version"] == PROJECT["version"]
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION.get("repository-code", "https://").startswith("https://")
    for work in [CITATION, *CITATION["references"]]:
        assert work["title"]
        assert work["authors"]
        for author in work["authors"]:
            assert set(author) in NAMES


def test_the_citation_names_every_paper_that_the_readme_links_to():
    works = CITATION["references"]
    assert {"type", "title", "authors", "year", "url"} == set().union(*works)
    assert all(set(work) == set(works[0]) for work in works)
    linked = set(re.findall(r"https://arxiv\.org/abs/[\d.]+", README))
    assert len(linked) == 5
    assert linked <= {work["url"] for work in works}


def test_the_entry_for_bibtex_says_what_the_citation_file_says():
    kind, key, fields = bibtex()
    assert kind == CITATION["type"]
    assert re.fullmatch(r"[a-z]+\d{4}", key)
    (author,) = CITATION["authors"]
    said = {
        "author": f"{{{author['name']}}}",  # in braces, since it is no person's name
        "title": CITATION["title"],
        "year": str(CITATION["date-released"].year),
        "version": str(CITATION["version"]),
    }
    if "repository-code" in CITATION:
        said["url"] = CITATION["repository-code"]
    assert fields == said
    assert key.endswith(fields["year"])


def test_no_address_of_the_project_is_made_up():
    """Only that of the citation file may stand in the README, and it has none yet."""
    own = CITATION.get("repository-code", "")
    named = re.findall(r"(?:github\.com|mybinder\.org/v2/gh)/([\w.-]+/[\w.-]+)", README)
    assert [name for name in named if not own.endswith(f"/{name}")] == []
    assert re.findall(r"\w+\.github\.io|OWNER|<owner>|your-", README) == []


def test_every_workflow_has_a_badge_that_leads_to_its_runs():
    """The links go from the README's place on GitHub, so that no address is needed."""
    targets = dict(re.findall(r"^\[([^\]]+)\]: (\S+)$", README, re.M))
    badges = re.findall(r"\[!\[[^\]]+\]\[([^\]]+)\]\]\[([^\]]+)\]", README)
    shown = {targets[runs]: targets[picture] for picture, runs in badges}
    runs = [f"../../actions/workflows/{name}.yml" for name in WORKFLOWS]
    assert shown == {link: f"{link}/badge.svg" for link in runs}


def test_pull_requests_are_checked_by_the_commands_of_the_readme():
    checks = WORKFLOWS["ci"]
    assert "pull_request" in checks[ON]
    commands = [step.get("run") for step in checks["jobs"]["commands"]["steps"]]
    assert ".ci/run" in commands
    assert os.access(paths.ROOT / ".ci" / "run", os.X_OK)


def test_the_site_is_published_from_the_main_branch_alone():
    workflow = WORKFLOWS["site"]
    assert set(workflow[ON]) == {"push", "workflow_dispatch"}
    assert workflow[ON]["push"] == {"branches": ["main"]}
    build, publish = workflow["jobs"]["build"]["steps"], workflow["jobs"]["publish"]
    assert "make site" in [step.get("run") for step in build]
    (upload,) = [step for step in build if "upload-pages-artifact" in step.get("uses", "")]
    assert upload["with"] == {"path": "site/_build/html"}
    assert workflow["permissions"] == {"contents": "read"}
    assert publish["permissions"] == {"pages": "write", "id-token": "write"}
    assert publish["needs"] == "build"


def test_binder_opens_a_notebook_that_is_there():
    notebook = WORKFLOWS["site"]["env"]["NOTEBOOK"]
    assert (paths.ROOT / notebook).is_file()
    assert f"`{notebook}`" in README
    command = WORKFLOWS["site"]["jobs"]["publish"]["steps"][-1]["run"]
    assert "mybinder.org/v2/gh/$GITHUB_REPOSITORY/" in command
    assert "?urlpath=lab/tree/$NOTEBOOK" in command


def test_binder_and_conda_install_the_lock_file_and_the_project():
    python, *_, from_pip = CONDA["dependencies"]
    assert from_pip == {"pip": ["-r requirements.lock", "-e ."]}
    (version,) = lines_of("binder", "runtime.txt")
    assert python.replace("=", "-") == version
    index, lock, project = lines_of("binder", "requirements.txt")
    assert index == f"--extra-index-url {WORKFLOWS['site']['env']['PIP_EXTRA_INDEX_URL']}"
    assert (lock, project) == ("-r ../requirements.lock", "-e .")


def test_the_lock_file_has_a_version_of_everything_that_the_project_asks_for():
    locked = dict(
        line.lower().replace("_", "-").split("==") for line in lines_of("requirements.lock")
    )
    asked = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for requirement in (Requirement(text) for group in asked for text in group):
        if requirement.name != PROJECT["name"]:
            assert requirement.specifier.contains(Version(locked[requirement.name])), requirement


def test_the_readme_begins_with_the_two_commands():
    commands = re.findall(r"^    (make \w+)", README, re.M)
    assert commands == ["make figures", "make test"]
    assert README.index("make test") < 1000


FIRST = re.findall(
    r"^    (overparam (?:list|show|run) .*?|overparam list)(?: +#.*)?$", README, re.M
)


@pytest.mark.parametrize("command", FIRST)
def test_the_first_commands_of_the_readme_are_accepted(command):
    """Runs are only planned: their parameters are looked at, nothing is computed."""
    _, name, *arguments = shlex.split(command)
    planned = ["--dry-run"] if name == "run" else []
    whole = [sys.executable, "-m", "ledger.cli", name, *arguments, *planned]
    environment = os.environ | {"COLUMNS": "100"}
    done = subprocess.run(whole, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    for word in arguments[:1]:
        assert word in done.stdout


def test_the_readme_has_a_first_command_of_each_kind():
    assert {command.split()[1] for command in FIRST} == {"list", "show", "run"}
