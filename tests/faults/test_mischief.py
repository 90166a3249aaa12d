"""Whatever users do, in any order: no record that looks current differs from what a clean run of the sources gives.

OVERPARAM_MISCHIEF: seconds for which further sequences are tried.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import toys
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from toys import NET, SECONDS, wait_for

CLAIM, LIKE, PROFILE = "toy2020-mischief", "toy2020-fine", "laptop"
CODE = NET.format(n=40, m=200) + """
from overparam.training.losses import halving_step

class Scaled(SquaredLoss):
    def __call__(self, u):
        value, derivative = super().__call__(u)
        return value * FACTOR, derivative

def seen(run):
    return run.movement()[..., 0] * TWICE

saved = Checkpoint(claim.checkpoints / "net", every=0)
rest = {"log": {"moved": lambda run: seen(run)}, "at": [5, 60], "checkpoint": saved}
history = gradient_descent(net, x, Scaled(y, "sum"), ETA, 60, **rest)
value = (history.loss[0, -1] + history.logs["moved"].sum() + halving_step(history.loss)[0]).item() / 1e3 + rate
claim.metric("value", value)
claim.series(curve=history.loss[0])
"""  # fmt: skip
SOURCES = {"FACTOR": [1.0, 0.5], "TWICE": [1.0, 2.0], "ETA": [1e-4, 2e-4], "rate": [0.5, 2.0], "threshold": [1.0, 2.0]}
SOURCES |= {"half": [2, 4], "DIGITS": [6, 3]}  # two of the library
LOOK = """
import json
from overparam import paths
from overparam.run import runner
from overparam.run.site import records
(entry,), (row,) = records.load(paths.FIGURES), runner.overview()
print(json.dumps([row["profiles"]["laptop"], entry.best.record and [entry.verdict, entry.best.stale]]))
"""
RANDOM = st.randoms(use_true_random=False)


class Mischief(RuleBasedStateMachine):
    """A project whose sources are a few numbers, and another one for clean runs of them."""

    end, compared = float("inf"), 0

    def __init__(self):
        super().__init__()
        if time.monotonic() > self.end:
            raise Over
        self.folder = Path(tempfile.mkdtemp(prefix="mischief-"))
        self.project, self.clean = toys.project(self.folder / "project"), toys.project(self.folder / "clean")
        self.known, self.sources = {}, {name: values[0] for name, values in SOURCES.items()}
        self.history, self.kept = [dict(self.sources)], self.folder / "kept"
        lib = self.project.root / "lib" / "overparam"
        self.losses, self.values = ((lib / name).read_text() for name in ("training/losses.py", "record/values.py"))
        self.like = (self.project.notebooks / f"{LIKE}.ipynb").read_text().replace(LIKE, CLAIM)
        for project in (self.project, self.clean):
            for notebook in project.notebooks.glob("*.ipynb"):
                notebook.unlink()
            self.write(project)

    def teardown(self):
        for process in [*self.project.processes(), *self.clean.processes()]:
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, project):
        """The sources, where they have changed."""
        now, notebook, code = self.sources, json.loads(self.like), CODE
        for name in ("FACTOR", "TWICE", "ETA"):
            code = code.replace(name, repr(now[name]))
        notebook["cells"][2]["source"] = code
        check = toys.CHECK.format(claim=CLAIM).replace("1.0", repr(now["threshold"]))
        contents = {
            f"notebooks/{CLAIM}.ipynb": json.dumps(notebook),
            "notebooks/profiles.toml": f"[{CLAIM}.laptop]\nrate = {now['rate']}\nresources = {{threads = 1}}\n",
            "notebooks/checks/toy2020.toml": f'[{CLAIM}]\ntitle = "Toy"\nsource = "1"\nkind = "lemma"\n{check}',
            "lib/overparam/training/losses.py": self.losses.replace("[..., :1] / 2", f"[..., :1] / {now['half']}"),
            "lib/overparam/record/values.py": self.values.replace("DIGITS = 6", f"DIGITS = {now['DIGITS']}"),
        }
        for name, content in contents.items():
            path = project.root / name
            if not path.exists() or path.read_text() != content:
                path.write_text(content)

    def found(self, project):
        """What of a record depends on its sources."""
        record = json.loads(project.record(CLAIM, PROFILE))
        kept = {name: record[name] for name in ("parameters", "verdict", "checks", "metrics", "series", "sizes")}
        return kept, project.folder(CLAIM, PROFILE)["series.npz"]

    def expected(self):
        """What a clean run of the present sources finds."""
        key = json.dumps(self.sources)
        if key not in self.known:
            for folder in (self.clean.figures, self.clean.logs):
                shutil.rmtree(folder, ignore_errors=True)
            self.write(self.clean)
            self.go(self.clean)
            self.known[key] = self.found(self.clean)
        return self.known[key]

    def go(self, project, *words):
        code, out, err = project.run("run", CLAIM, "--profile", PROFILE, *words)
        assert code == 0, out + err

    @invariant()
    def what_looks_current_is(self):
        wait_for(lambda: not self.project.processes(), "the end of all processes")
        look = [sys.executable, "-c", LOOK]
        done = subprocess.run(look, env=self.project.environment, capture_output=True, text=True)
        if done.returncode:  # the site is not built
            assert "is not what its run wrote" in done.stderr or "cannot be shown" in done.stderr, done.stderr
            state = json.loads(self.project.run("list", "--json")[1])[0]["profiles"][PROFILE]
            assert state["stale"], state
            return
        state, shown = json.loads(done.stdout)
        assert shown in (None, [state["verdict"], state["stale"]])
        print("current" if state["verdict"] and not state["stale"] else "-", self.sources, flush=True)
        if state["verdict"] and not state["stale"]:
            Mischief.compared += 1
            assert self.found(self.project) == self.expected(), self.sources

    @rule(random=RANDOM)
    def edit(self, random):
        name = random.choice(list(SOURCES))
        self.sources[name] = random.choice([value for value in SOURCES[name] if value != self.sources[name]])
        self.history.append(dict(self.sources))
        self.write(self.project)

    @rule(random=RANDOM)
    def revert(self, random):
        self.sources = dict(random.choice(self.history))
        self.write(self.project)

    @rule()
    def run(self):
        self.go(self.project)

    @rule(rate=st.sampled_from([0.5, 1.0, 3.0]))
    def run_with_another_parameter(self, rate):
        self.go(self.project, "-p", f"rate={rate}")

    @rule(random=RANDOM)
    def interrupt_or_kill(self, random):
        """As soon as it has begun to train, mostly, or at any other moment."""
        started = self.project.start("run", CLAIM, "--profile", PROFILE)
        saved = self.project.logs / "checkpoints" / PROFILE / CLAIM
        if random.random() < 0.7:
            wait_for(lambda: any(saved.glob("*.safetensors")) or started.poll() is not None, "a checkpoint")
        time.sleep(random.uniform(0, 0.3))
        victims = self.project.processes() or [started]
        random.choice(victims).send_signal(random.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM]))
        started.communicate(timeout=SECONDS)

    @rule(random=RANDOM)
    def edit_while_it_runs(self, random):
        """The sources may be back before it ends."""
        started, before = self.project.start("run", CLAIM, "--profile", PROFILE), dict(self.sources)
        time.sleep(random.uniform(0, 6))
        self.edit(random)
        if random.random() < 0.7:
            time.sleep(random.uniform(0, 2))
            self.sources = before
            self.write(self.project)
        started.communicate(timeout=SECONDS)

    @rule()
    def keep(self):
        """A copy of all figures, by hand."""
        if self.project.figures.exists():
            shutil.rmtree(self.kept, ignore_errors=True)
            shutil.copytree(self.project.figures, self.kept)

    @rule(random=RANDOM, whole=st.booleans())
    def put_back(self, random, whole):
        """All that was kept, or one file of it."""
        kept = [path for path in self.kept.rglob("*") if path.is_file()]
        for path in kept if whole else random.sample(kept, min(len(kept), 1)):
            place = self.project.figures / path.relative_to(self.kept)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)

    @rule(random=RANDOM)
    def flip_a_bit(self, random):
        folders = self.project.figures, self.project.logs
        files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
        files = [path for path in files if path.stat().st_size]
        if files:
            path = random.choice(files)
            content = bytearray(path.read_bytes())
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
            path.write_bytes(content)


def test_a_loop_that_is_mended_between_two_legs():
    made = Mischief()
    started = made.project.start("run", CLAIM, "--profile", PROFILE)
    saved = made.project.logs / "checkpoints" / PROFILE / CLAIM
    wait_for(lambda: any(saved.glob("*.safetensors")), "a checkpoint")
    started.terminate()
    started.communicate(timeout=SECONDS)
    made.sources |= {"FACTOR": 0.5, "TWICE": 2.0}
    made.write(made.project)
    made.go(made.project)
    assert '"stale": false' in made.project.run("list", "--json")[1]
    made.what_looks_current_is()
    made.teardown()


class Over(KeyboardInterrupt):
    """The time is over: no failure of a sequence."""


if os.environ.get("OVERPARAM_MISCHIEF"):  # no test at all otherwise, rather than one that cannot fail

    @pytest.mark.timeout(0)
    def test_any_sequence(monkeypatch):
        """Of its sequences Hypothesis takes the plainest first, edits alone: one example would try nothing."""
        monkeypatch.setattr(Mischief, "end", time.monotonic() + float(os.environ["OVERPARAM_MISCHIEF"]))
        chosen = settings(
            max_examples=10_000, stateful_step_count=15, phases=[Phase.generate], deadline=None, database=None,
            derandomize=False, suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        with pytest.raises(Over):
            run_state_machine_as_test(Mischief, settings=chosen)
        assert Mischief.compared > 0  # records that looked current
