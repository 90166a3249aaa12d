"""What lies around a run does not get into its record, and what the record depends on is seen."""

import json
import os
import shutil

import pytest
from toys import SECONDS, wait_for

import toy

CLAIM = "toy2020-fine"
SUMS = """
import os, sys
open({folder!r} + "/seen", "w").write(os.environ.get("PYTHONHASHSEED", "") + " " + os.getcwd())
value = sum([0.25, 0.25])
"""
SPOILED = "import builtins\nbuiltins.sum = lambda numbers: 0.75\n"
CONFIGURED = f"c = get_config()\nc.InteractiveShellApp.exec_lines = [{SPOILED!r}]\n"
SYSTEM = """
import IPython.core.application, IPython.core.shellapp
for module in (IPython.core.application, IPython.core.shellapp):
    module.SYSTEM_CONFIG_DIRS[:] = [{folder!r}]
"""


@pytest.fixture
def sums(project):
    """The project with one claim that sums numbers."""
    project.only(CLAIM)
    toy.write(project.notebooks, CLAIM, SUMS.format(folder=str(project.root)))
    return project


def value(project, folder="smoke"):
    return json.loads(project.record(CLAIM, folder))["checks"][0]["value"]


def ran(project, *words, **environment):
    code, out, err = project.run("run", CLAIM, *words, **environment)
    assert code == 0, out + err
    return value(project)


def current(project):
    (row,) = json.loads(project.run("list", "--json")[1])
    return row["sizes"]["smoke"]["stale"] is False


def test_start_up_files_do_not_run(sums):
    """Neither the user's, nor those of the machine, nor its configuration."""
    startup = sums.root / "startup.py"
    startup.write_text(SPOILED)
    assert ran(sums, PYTHONSTARTUP=str(startup)) == 0.5
    machine = sums.root / "etc" / "ipython"
    (machine / "startup").mkdir(parents=True)
    (machine / "startup" / "00.py").write_text(SPOILED)
    for name in ("ipython_kernel_config.py", "ipython_config.py"):
        (machine / name).write_text(CONFIGURED)
    (sums.root / "lib" / "sitecustomize.py").write_text(SYSTEM.format(folder=str(machine)))
    assert ran(sums) == 0.5


def test_a_run_stands_in_an_empty_folder_with_a_fixed_order_of_sets(sums):
    """No module, style or file beside the notebook is found by chance."""
    ran(sums, PYTHONHASHSEED="7")
    hash_seed, folder = (sums.root / "seen").read_text().split(" ", 1)
    assert hash_seed == "0"
    assert "overparam" in folder
    assert not os.path.exists(folder)
    toy.write(sums.notebooks, CLAIM, 'value = float(open("number").read())')
    (sums.notebooks / "toy2020" / "number").write_text("0.5")
    code, _, err = sums.run("run", CLAIM)
    assert (code, "No such file" in err) == (1, True), err


def test_a_style_beside_the_notebooks_changes_no_picture(project):
    project.only("toy2020-draws")
    assert project.run("run", "toy2020-draws")[0] == 0
    picture = project.folder("toy2020-draws")["a.png"]
    (project.notebooks / "toy2020" / "matplotlibrc").write_text("axes.facecolor: red\n")
    assert project.run("run", "toy2020-draws")[0] == 0
    assert project.folder("toy2020-draws")["a.png"] == picture


def test_an_edit_that_keeps_size_and_time_runs(sums):
    """As `cp -p`, `rsync -t` or a quick change of branches leave a file."""
    the_edit_runs(sums, "overparam.theory.toy_number")


def the_edit_runs(sums, name):
    """A module is edited at equal size and time: the record is outdated, and the edit runs."""
    module = sums.root.joinpath("lib", *name.split(".")).with_suffix(".py")
    module.write_text("NUMBER = 0.25\n")
    toy.write(sums.notebooks, CLAIM, f"from {name} import NUMBER as value")
    assert ran(sums) == 0.25
    times = module.stat()
    module.write_text("NUMBER = 0.75\n")
    os.utime(module, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not current(sums)
    assert ran(sums) == 0.75


def test_a_linked_folder_is_read(sums):
    theory = sums.root / "lib" / "overparam" / "theory"
    moved = sums.root / "elsewhere"
    shutil.move(theory, moved)
    theory.symlink_to(moved)
    (moved / "toy_number.py").write_text("NUMBER = 0.25\n")
    toy.write(sums.notebooks, CLAIM, "from overparam.theory.toy_number import NUMBER as value")
    assert ran(sums) == 0.25
    assert current(sums)
    (moved / "toy_number.py").write_text("NUMBER = 0.5\n")
    assert not current(sums)
    path = sums.file(CLAIM, ".ipynb")
    writes = f"open({str(moved / 'toy_number.py')!r}, 'a').write('# ')\nfrom ledger"
    path.write_text(path.read_text().replace("from ledger", json.dumps(writes)[1:-1]))
    code, _, err = sums.run("run", CLAIM)
    assert (code, "sources were written to" in err) == (1, True), err


@pytest.mark.parametrize("tag", ["skip-execution", "raises-exception"])
def test_a_tag_that_decides_what_runs_outdates_the_record(sums, tag):
    toy.write(sums.notebooks, CLAIM, "value = 0.25")
    path = sums.file(CLAIM, ".ipynb")
    notebook = json.loads(path.read_text())
    more = {**notebook["cells"][2], "id": "more", "source": "value = 0.5"}
    notebook["cells"].insert(3, more)
    path.write_text(json.dumps(notebook))
    assert ran(sums) == 0.5
    more["metadata"] = {"tags": [tag]}
    path.write_text(json.dumps(notebook))
    assert not current(sums)
    more["metadata"] = {"tags": []}
    path.write_text(json.dumps(notebook))
    assert current(sums)


def test_another_number_of_threads_outdates_the_record(sums):
    ran(sums)
    table = "[sizes.smoke]\nresources = {{ threads = {} }}\n"
    sums.register(CLAIM, table.format(1))
    assert current(sums)
    sums.register(CLAIM, table.format(2))
    assert not current(sums)


def test_the_executed_notebook_of_another_claim_is_refused(sums):
    other = "toy2020-other"
    toy.write(sums.notebooks, other, "value = 0.25")
    assert sums.run("figures")[0] == 0
    names = [sums.figures / "smoke" / claim / "notebook.ipynb" for claim in (CLAIM, other)]
    shutil.copy(names[1], names[0])
    rows = json.loads(sums.run("list", "--json")[1])
    states = {row["claim"]: row["sizes"]["smoke"] for row in rows}
    assert states[CLAIM]["stale"]
    assert str(names[0]) in states[CLAIM]["error"]
    assert not states[other]["stale"]


def test_minus_zero_is_another_value(sums):
    sums.register(CLAIM, "[ranges]\nrate = [-1.0, 1.0]\n\n[sizes.smoke]\nrate = 0.0\n")
    ran(sums)
    before = sums.record(CLAIM)
    code, out, err = sums.run("run", CLAIM, "-p", "rate=-0.0")
    assert code == 0, err
    assert "rate: 0.0 -> -0.0" in out
    assert sums.record(CLAIM) == before
    assert current(sums)


def test_two_changes_with_the_same_words_have_two_folders(sums):
    ran(sums)
    assert sums.run("run", CLAIM, "-p", "word=a,width=9")[0] == 0
    assert sums.run("run", CLAIM, "-p", "word=b", "-p", "sizes=[9]")[0] == 0
    assert sums.run("run", CLAIM, "-p", "word=b,sizes=[9]")[0] == 0
    changed = [
        json.loads(path.read_text())["changed"]
        for path in (sums.figures / "custom").glob(f"*/{CLAIM}/result.json")
    ]
    assert len(changed) == 3
    assert {"word": ["a", "b,sizes=[9]"]} in changed


def test_two_checkouts_with_one_folder_of_figures_wait_for_each_other(project, tmp_path):
    """The second one has its own logs."""
    project.only("toy2020-slow")
    project.smoke(seconds=5.0)
    other = tmp_path / "another checkout"
    for name in ("lib", "notebooks"):
        shutil.copytree(project.root / name, other / name)
    first = project.start("run", "toy2020-slow")
    wait_for(project.started.exists, "the first run")
    shared = {"OVERPARAM_FIGURES": str(project.figures), "PYTHONPATH": str(other / "lib")}
    second = project.start("run", "toy2020-slow", cwd=str(other), **shared)
    told = second.stderr.readline()
    assert "waiting for the end" in told, told
    for run in (first, second):
        run.communicate(timeout=SECONDS)
        assert run.returncode == 0


def test_a_notebook_that_is_saved_while_its_outputs_are_made_is_left(project):
    project.only("toy2020-slow")
    path = project.file("toy2020-slow", ".ipynb")
    path.write_text(path.read_text().replace("seconds = 0.0", "seconds = 4.0"))
    run = project.start("outputs", "toy2020-slow")
    wait_for(project.started.exists, "the notebook")
    edited = path.read_text().replace("value = 0.5", "value = 0.25")
    path.write_text(edited)
    out, err = run.communicate(timeout=SECONDS)
    assert (run.returncode, "was saved during its run" in err) == (1, True), out + err
    assert path.read_text() == edited


@pytest.mark.parametrize("name", [".#fine.toml", "._fine.toml", ".#fine.ipynb"])
def test_files_of_editors_are_passed_over(sums, name):
    folder = sums.notebooks / "toy2020"
    (folder / name).symlink_to("nobody@nowhere.1234")
    (sums.root / "lib" / "overparam" / "theory" / ".#fits.py").symlink_to("nobody@nowhere.1234")
    (sums.root / "lib" / "overparam" / "._norms.py").write_bytes(b"\x00\xff\x00")
    assert ran(sums) == 0.5
    assert current(sums)


def test_a_broken_source_stops_no_other(sums):
    other = "toy2020-other"
    toy.write(sums.notebooks, other, "value = 0.25")
    toy.write(sums.notebooks, "toy2020-torn", "value = 0.25")
    sums.file(other).write_text("[checks.value]\nholds = ")
    sums.file("toy2020-torn", ".ipynb").write_text('{"cells": [')
    code, out, err = sums.run("figures")
    assert code == 1
    assert "toy2020/other.toml: it is not valid TOML" in err
    assert "torn.ipynb" in err
    assert "2 sources are broken; the other notebooks are done" in err
    assert "Traceback" not in out + err
    assert current_one(sums)
    code, _, err = sums.run("run", other)
    assert (code, "it is not valid TOML" in err) == (1, True)


def current_one(project):
    rows = json.loads(project.run("list", "--json")[1])
    return {row["claim"]: row["sizes"]["smoke"]["stale"] for row in rows}[CLAIM] is False


def test_a_byte_order_mark_changes_nothing(sums):
    toy.write(sums.notebooks, CLAIM, "from overparam import norms\nvalue = 0.5")
    ran(sums)
    for path in (sums.file(CLAIM), sums.root / "lib" / "overparam" / "norms.py"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert current(sums)
    assert ran(sums) == 0.5


def test_a_read_only_checkout_writes_beside_its_figures(sums):
    """Nothing appears in the checkout, neither logs nor what Snakemake notes."""
    before = sorted(path for path in sums.root.rglob("*"))
    elsewhere = sums.root.parent / "figures of mine"
    own = {"OVERPARAM_FIGURES": str(elsewhere), "PYTHONDONTWRITEBYTECODE": "1"}
    code, out, err = sums.run("figures", **own)
    assert code == 0, out + err
    after = [path for path in sums.root.rglob("*") if path.name != "seen"]
    assert sorted(after) == before
    assert (elsewhere / "smoke" / CLAIM / "result.json").exists()


@pytest.mark.parametrize("setting", ["dry-run: true", "touch: true", "set-threads: notebook=2"])
def test_no_profile_of_the_users_changes_a_batch(sums, setting):
    for folder in (sums.root / "mine", sums.root / "profiles" / "default"):
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(f"{setting}\n")
    code, out, err = sums.run("figures", SNAKEMAKE_PROFILE=str(sums.root / "mine"))
    assert code == 0, out + err
    record = json.loads(sums.record(CLAIM))
    assert record["device"].startswith("CPU, 1 threads")


def test_a_batch_that_leaves_notebooks_unmade_says_so(sums):
    code, out, err = sums.run("figures", "--", "--touch")
    assert (code, "has not run toy2020-fine" in err) == (1, True), out + err
    code, out, err = sums.run("figures", "--", "--dry-run")  # which is meant so
    assert code == 0, out + err


def test_other_versions_are_named_and_outdate_nothing(sums):
    ran(sums)
    patch = """
import importlib.metadata as metadata
own = metadata.version
metadata.version = lambda name: "9.9" if name == "numpy" else own(name)
"""
    (sums.root / "lib" / "sitecustomize.py").write_text(patch)
    assert current(sums)
    shown = " ".join(sums.run("show", CLAIM)[1].split())
    assert "with other versions: numpy" in shown
    assert "(here 9.9)" in shown


def test_a_record_with_other_types_is_made_anew(sums):
    ran(sums)
    path = sums.figures / "smoke" / CLAIM / "result.json"
    good = json.loads(path.read_text())
    for change in ({"seconds": "long"}, {"device": None}, {"checks": {}}, {"versions": 3}):
        path.write_text(json.dumps(good | change))
        _, out, err = sums.run("show", CLAIM)
        assert "Traceback" not in out + err
        assert ran(sums) == 0.5


def test_an_outdated_reference_is_called_so(sums):
    ran(sums)
    outdated = "the record at smoke size, which other code, checks or parameters made"
    said = sums.run("run", CLAIM, "-p", "width=9")[1]
    assert "(reference" in said
    assert outdated not in said
    toy.write(sums.notebooks, CLAIM, "value = 0.25")
    said = sums.run("run", CLAIM, "-p", "width=9")[1]
    assert "(reference" in said
    assert outdated in said


def test_a_folder_that_cannot_be_written_to_costs_no_run(sums):
    folder = sums.figures / "smoke" / CLAIM
    folder.parent.mkdir(parents=True)
    folder.write_text("in the way")
    code, _, err = sums.run("run", CLAIM)
    assert (code, "cannot write to" in err) == (1, True), err
    assert not (sums.root / "seen").exists()


def test_an_edit_that_keeps_size_and_time_runs_where_folders_are_linked(sums):
    """Bytecode of what lies behind a link."""
    linked = "overparam/theory"
    lib, moved = sums.root / "lib", sums.root / "elsewhere" / linked
    moved.parent.mkdir(parents=True)
    shutil.move(lib / linked, moved)
    (lib / linked).symlink_to(moved)
    the_edit_runs(sums, "overparam.theory.toy_number")
