"""Whatever users do, in any order.

No record that looks current differs from what a clean run of the sources gives.

OVERPARAM_MISCHIEF: seconds for which sequences are tried; otherwise it is one.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
import toys
from toys import NET, SECONDS, wait_for

import toy

CLAIM, PROFILE = "toy2020-mischief", "laptop"
CODE = (
    NET.format(n=40, m=200)
    + """
from overparam.training.losses import halving_step

class Scaled(SquaredLoss):
    def __call__(self, u):
        value, derivative = super().__call__(u)
        return value * FACTOR * rate, derivative

def seen(run):
    return run.weight_change().norm(dim=(-2, -1)) * TWICE

saved = Checkpoint(claim.checkpoints / "net", every=0)
rest = {"log": {"moved": lambda run: seen(run)}, "at": [5, 60], "checkpoint": saved}
history = gradient_descent(net, x, Scaled(y, "sum"), ETA, 60, **rest)
value = history.loss[0, -1] + history.logs["moved"].sum() + halving_step(history.loss)[0]
value = value.item() / 1e3 + rate
claim.metric("same", value)
claim.series(curve=history.loss[0])
"""
)
SOURCES = {
    "FACTOR": [1.0, 0.5],
    "TWICE": [1.0, 2.0],
    "ETA": [1e-4, 2e-4],
    "rate": [0.5, 2.0],
    "threshold": [1.0, 2.0],
}
SOURCES |= {"half": [2, 4], "DIGITS": [6, 3], "tags": [[], ["skip-execution"]], "threads": [1, 2]}
LIBRARY = ("overparam/training/losses.py", "ledger/values.py")  # which have half and DIGITS
MORE = "value = value + 1"  # a cell whose tags decide whether it is run
LOOK = """
import json
from ledger import paths, records
from ledger.site.records import load
(entry,), (row,) = load(paths.FIGURES), records.overview()
found = entry.best.record and [entry.verdict, entry.best.outdated]
print(json.dumps([row["sizes"]["laptop"], found]))
"""
DAMAGED = ("is not what its run wrote", "is not a readable record")
KNOWN = {}  # by sources: what a clean run finds


class Mischief:
    """A project whose sources are a few numbers, another one for clean runs of them.

    And mischief by chance.
    """

    def __init__(self, folder, seed=0):
        self.folder, self.random, self.compared = folder, random.Random(seed), 0
        self.project, self.clean = toys.project(folder / "project"), toys.project(folder / "clean")
        self.sources = {name: values[0] for name, values in SOURCES.items()}
        self.history, self.kept = [dict(self.sources)], folder / "kept"
        lib = self.project.root / "lib"
        self.losses, self.values = ((lib / name).read_text() for name in LIBRARY)
        for project in (self.project, self.clean):
            project.only(CLAIM)
            (project.root / "README.md").touch()
            self.write(project)

    def sequence(self, length=6):
        """Does mischief, and often runs after it.

        The number of records that looked current, and were.
        """
        steps = {
            self.edit: 4,
            self.edit_and_keep_the_times: 2,
            self.link_or_unlink: 1,
            self.revert: 2,
            self.interrupt_or_kill: 4,
            self.edit_while_it_runs: 3,
            self.put_back: 2,
            self.flip_a_bit: 2,
            self.run_with_another_parameter: 1,
            self.refresh: 2,
        }
        for step in self.random.choices([*steps], weights=steps.values(), k=length):
            print(step.__name__, end=" ", flush=True)
            step()
            self.look()
            if self.random.random() < 0.5:
                self.run(*self.random.choice([["run", CLAIM], ["run", CLAIM], ["figures"]]))
                self.look()
                self.keep()
        self.run("run", CLAIM)
        self.look()
        assert self.project.left() == []
        return self.compared

    def end(self):
        for process in [*self.project.processes(), *self.clean.processes()]:
            process.kill()
        shutil.rmtree(self.folder)

    def write(self, project):
        """The sources, where they have changed."""
        now, code = self.sources, CODE
        for name in ("FACTOR", "TWICE", "ETA"):
            code = code.replace(name, repr(now[name]))
        sizes = f"[sizes.laptop]\nrate = {now['rate']}\n"
        sizes += f"resources = {{ threads = {now['threads']} }}\n"
        contents = {
            project.file(CLAIM, ".ipynb"): self.notebook(code),
            project.file(CLAIM): toy.REGISTERED.format(at_most=now["threshold"]) + sizes,
            project.root / "lib" / LIBRARY[0]: self.losses.replace(
                "[..., :1] / 2", f"[..., :1] / {now['half']}"
            ),
            project.root / "lib" / LIBRARY[1]: self.values.replace(
                "DIGITS = 6", f"DIGITS = {now['DIGITS']}"
            ),
        }
        for path, content in contents.items():
            if not path.exists() or path.read_text() != content:
                path.write_text(content)

    def notebook(self, code):
        notebook = json.loads(toy.notebook(CLAIM, code))
        metadata = {"tags": self.sources["tags"]}
        more = {**notebook["cells"][-1], "id": "more", "source": MORE, "metadata": metadata}
        notebook["cells"].insert(-1, more)
        return json.dumps(notebook)

    def found(self, project):
        """What of a record depends on its sources."""
        record = json.loads(project.record(CLAIM, PROFILE))
        kept = {
            name: record[name] for name in ("parameters", "verdict", "checks", "metrics", "series")
        }
        return kept, project.folder(CLAIM, PROFILE)["series.npz"]

    def expected(self):
        """What a clean run of the present sources finds."""
        key = json.dumps(self.sources)
        if key not in KNOWN:
            for folder in (self.clean.figures, self.clean.logs):
                shutil.rmtree(folder, ignore_errors=True)
            self.write(self.clean)
            code, out, err = self.clean.run("run", CLAIM, "--profile", PROFILE)
            assert code == 0, out + err
            KNOWN[key] = self.found(self.clean)
        return KNOWN[key]

    def look(self):
        """What looks current is, to the command line and to the site."""
        wait_for(lambda: not self.project.processes(), "the end of all processes")
        look = [sys.executable, "-c", LOOK]
        done = subprocess.run(look, env=self.project.environment, capture_output=True, text=True)
        if done.returncode:  # the site is not built
            assert any(words in done.stderr for words in DAMAGED), done.stderr
            state = json.loads(self.project.run("list", "--json")[1])[0]["sizes"][PROFILE]
            assert state["stale"], state
            return
        state, shown = json.loads(done.stdout)
        assert shown in (None, [state["verdict"], state["stale"]])
        print(
            "current" if state["verdict"] and not state["stale"] else "-",
            [*self.sources.values()],
            flush=True,
        )
        if state["verdict"] and not state["stale"]:
            self.compared += 1
            assert self.found(self.project) == self.expected(), self.sources

    def run(self, *words):
        code, out, err = self.project.run(*words, "--profile", PROFILE)
        assert code == 0, out + err

    def run_with_another_parameter(self):
        self.run("run", CLAIM, "-p", f"rate={self.random.choice([0.5, 1.0, 3.0])}")

    def refresh(self):
        """Words are renewed, or refused where a record is damaged."""
        code, out, err = self.project.run("refresh")
        assert code == 0 or any(words in err for words in DAMAGED), out + err

    def edit(self):
        name = self.random.choice([*SOURCES])
        self.sources[name] = self.random.choice(
            [value for value in SOURCES[name] if value != self.sources[name]]
        )
        self.history.append(dict(self.sources))
        self.write(self.project)

    def edit_and_keep_the_times(self):
        """As what copies files together with their times; some of these edits keep sizes, too."""
        lib = self.project.root / "lib"
        files = [self.project.file(CLAIM, suffix) for suffix in (".ipynb", ".toml")]
        files += [lib / name for name in LIBRARY]
        times = [(path, path.stat()) for path in files]
        self.edit()
        for path, was in times:
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))

    def link_or_unlink(self):
        """A folder of the library lies elsewhere, and a link leads there."""
        folder = (self.project.root / "lib" / LIBRARY[0]).parent
        elsewhere = self.project.root / "elsewhere"
        if folder.is_symlink():
            folder.unlink()
            shutil.move(elsewhere, folder)
        else:
            shutil.move(folder, elsewhere)
            folder.symlink_to(elsewhere)

    def revert(self):
        self.sources = dict(self.random.choice(self.history))
        self.write(self.project)

    def until_it_trains(self, started):
        saved = self.project.logs / "checkpoints" / PROFILE / CLAIM
        wait_for(
            lambda: any(saved.glob("*.safetensors")) or started.poll() is not None, "a checkpoint"
        )

    def interrupt_or_kill(self):
        """Whatever process, as soon as it has begun to train, mostly, or at any other moment.

        Not Snakemake with SIGTERM: its handler takes a lock that it may hold already, so that it
        never ends.
        """
        batch = self.random.random() < 0.3
        how = self.random.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
        started = self.project.start(
            *(["figures"] if batch else ["run", CLAIM]), "--profile", PROFILE
        )
        if self.random.random() < 0.7:
            self.until_it_trains(started)
        time.sleep(self.random.uniform(0, 0.3 if self.random.random() < 0.7 else 8))
        victims = [
            p
            for p in self.project.processes()
            if how == signal.SIGKILL or "snakemake" not in p.cmdline()
        ]
        victim = self.random.choice(victims or [started])
        print(how.name, "to", "batch" if batch else "run", end=" ", flush=True)
        victim.send_signal(how)
        out, err = started.communicate(timeout=SECONDS)
        assert how == signal.SIGINT or "Traceback" not in out + err, out + err

    def edit_while_it_runs(self):
        """The sources may be back before it ends."""
        started, before = self.project.start("run", CLAIM, "--profile", PROFILE), dict(self.sources)
        time.sleep(self.random.uniform(0, 6))
        self.edit()
        if self.random.random() < 0.7:
            time.sleep(self.random.uniform(0, 2))
            self.sources = before
            self.write(self.project)
        started.communicate(timeout=SECONDS)

    def keep(self):
        """A copy of all figures, by hand."""
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(self.project.figures, self.kept)

    def put_back(self):
        """All that was kept, or one file of it."""
        kept = sorted(path for path in self.kept.rglob("*") if path.is_file())
        for path in self.random.choice([kept, kept[:1], kept[-1:]]):
            place = self.project.figures / path.relative_to(self.kept)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)

    def flip_a_bit(self):
        folders = self.project.figures, self.project.logs
        files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
        if files := [path for path in files if path.stat().st_size]:
            path = self.random.choice(files)
            content = bytearray(path.read_bytes())
            content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
            path.write_bytes(content)


@pytest.mark.parametrize("mended", [{}, {"FACTOR": 0.5}, {"TWICE": 2.0}, {"rate": 2.0}])
def test_two_legs(tmp_path, mended):
    """A killed training goes on where it was, unless its loop is another one now."""
    made = Mischief(tmp_path / "m")
    started = made.project.start("run", CLAIM, "--profile", PROFILE)
    made.until_it_trains(started)
    for process in made.project.processes():
        process.kill()
    started.communicate(timeout=SECONDS)
    made.sources |= mended
    made.write(made.project)
    made.run("run", CLAIM)
    made.look()
    assert made.compared == 1
    assert json.loads(made.project.record(CLAIM, PROFILE))["resumed"]
    assert any(made.project.logs.rglob("*.refused")) == bool(mended)


FOR = float(os.environ.get("OVERPARAM_MISCHIEF", 0))


@pytest.mark.timeout(0 if FOR else 600)
def test_any_sequence(tmp_path):
    compared, end = [], time.monotonic() + FOR
    while not compared or time.monotonic() < end:
        seed = random.randrange(2**32)
        print("sequence", seed, flush=True)
        made = Mischief(tmp_path / str(seed), seed)
        try:
            compared.append(made.sequence())
        finally:
            made.end()
    print(len(compared), "sequences; records that looked current, and were:", compared)
    assert all(compared)
