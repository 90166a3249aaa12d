"""Kill notebooks at random moments, run them again, and compare what they measure with an undisturbed run, bit for bit.

    OMP_NUM_THREADS=1 python tests/determinism/random_kills.py [--kills 100] [--seed 0] [--folder /tmp/kills]

Every kill is a SIGKILL at a uniformly random moment of the run: of the kernel, of the command, or of all its processes,
by turns. The same command is then started at once and runs to its end. Writes random_kills.md beside this file.
"""

import argparse
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import torch
from kills import VICTIMS, kill, survivors, tree
from runs import SECONDS, Copy, differing, temporary, unreadable

# Parameters that make the shorter ones last some seconds.
SMOKE = {
    "arora2019-fig1-convergence-labels": {"steps": 1000},
    "guo2024-thm32-sgd": {"epochs": 400},
    "guo2024-fig4-lstm": {"lstm_epochs": 100, "vit_epochs": 50},
    "arora2019-eq3-kernel-numerics": {"samples": 2000000},
    "noy2021-lem3-rate": {"steps": 3000},
    "guo2024-fig2-rate-vs-alpha": {"t2": 1000},
}


@dataclass
class Case:
    """A command whose runs are killed, and what came of it."""

    what: str
    notebooks: tuple
    seconds: float = 0.0
    reference: dict = field(default_factory=dict)
    counts: Counter = field(default_factory=Counter)

    @property
    def words(self):
        if len(self.notebooks) == 1:
            return ("run", *self.notebooks)
        return ("figures", *(word for notebook in self.notebooks for word in ("--claim", notebook)))


def cases():
    return [
        Case("full-batch descent by hand", ("arora2019-fig1-convergence-labels",)),
        Case("stochastic gradient descent", ("guo2024-thm32-sgd",)),
        Case("LSTM and transformer by autograd", ("guo2024-fig4-lstm",)),
        Case("training and landscape of a convolutional net", ("allenzhu2019-fig1-vgg19",)),
        Case("kernels in closed form, without a training", ("arora2019-eq3-kernel-numerics",)),
        Case("a batch of two", ("noy2021-lem3-rate", "guo2024-fig2-rate-vs-alpha")),
    ]


def undisturbed(copy, case):
    """The time and the measurements of the command left alone."""
    start = time.monotonic()
    code, output = copy.run(*case.words)
    if code:
        raise SystemExit(f"{' '.join(case.words)} fails by itself:\n{output}")
    case.seconds, case.reference = time.monotonic() - start, copy.measured(case.notebooks)


def attempt(copy, case, victim, moment):
    """Kill the command after so many seconds and run it again, counting; False where it had ended before."""
    shutil.rmtree(copy.figures, ignore_errors=True)
    with copy.start(*case.words) as process:
        try:
            process.wait(moment)
            return False
        except subprocess.TimeoutExpired:
            processes = tree(process)
        if not processes:
            return False
        hit = kill(processes, victim)
        # Of a killed command, children may go on for a moment; of a killed kernel, the command has to end by itself.
        process.communicate(timeout=SECONDS) if hit == "kernel" else process.wait(SECONDS)
        broken = unreadable(copy.figures)
        resumable = any(
            file.endswith(".safetensors") for *_, files in os.walk(copy.logs / "checkpoints") for file in files
        )
        code, output = copy.run(*case.words)
    left = survivors(processes, SECONDS)
    broken |= unreadable(copy.figures, copy.logs)
    leftovers = temporary(copy.figures, copy.logs)
    changed = differing(case.reference, copy.measured(case.notebooks)) if code == 0 else ["everything: it failed"]
    case.counts.update(
        **{hit: 1}, kills=1, resumed=int(resumable), failed=int(code != 0), differing=len(changed), broken=len(broken),
        leftovers=len(leftovers), survivors=len(left),
    )  # fmt: skip
    for trouble in (output if code else "", changed, broken, leftovers, left):
        if trouble:
            print(f"  {victim} after {moment:.2f} s: {trouble}", flush=True)
    return True


COLUMNS = {
    "kernel": "of the kernel", "command": "of the command", "everything": "of everything", "resumed": "resumed",
    "failed": "failed reruns", "differing": "differing values", "broken": "unreadable files",
    "leftovers": "temporary files left", "survivors": "processes left",
}  # fmt: skip


def table(all_cases, seed, minutes):
    total = sum((case.counts for case in all_cases), Counter())
    compared = sum(len(case.reference) for case in all_cases)
    lines = [
        "# Random kills", "",
        f"{total['kills']} SIGKILLs (seed {seed}) at uniformly random moments, each followed by a run to the end. Its "
        f"verdicts, checks, metrics and series are compared bit for bit with those of an undisturbed run. One thread, "
        f"a checkpoint every 0.2 s; {minutes:.0f} minutes with torch {torch.__version__}. "
        f"Made by `python tests/determinism/random_kills.py`.", "",
        f"| what | notebooks | seconds | values compared | kills | {' | '.join(COLUMNS.values())} |",
        "|---|---|" + "---:|" * (3 + len(COLUMNS)),
    ]  # fmt: skip
    for case in all_cases:
        counts = " | ".join(str(case.counts[name]) for name in ("kills", *COLUMNS))
        lines.append(
            f"| {case.what} | {', '.join(case.notebooks)} | {case.seconds:.0f} | {len(case.reference)} | {counts} |"
        )
    lines.append(f"| all | | | {compared} | {' | '.join(str(total[name]) for name in ('kills', *COLUMNS))} |")
    lines += ["", "Resumed: the next run found checkpoints to go on from; the others had written none yet."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where the copy of the project goes (default: a temporary one)")
    parser.add_argument("--table", type=Path, default=Path(__file__).with_name("random_kills.md"))
    given = parser.parse_args()
    started, draw, all_cases = time.monotonic(), random.Random(given.seed), cases()
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="kills-") as folder:
        copy = Copy(Path(folder) / "project", SMOKE, OVERPARAM_CHECKPOINT_SECONDS="0.2")
        for case in all_cases:
            undisturbed(copy, case)
            print(f"{case.what}: {case.seconds:.1f} s, {len(case.reference)} values", flush=True)
        for number in range(given.kills):
            case = all_cases[number % len(all_cases)]
            victim = VICTIMS[(number + number // len(all_cases)) % len(VICTIMS)]
            while not attempt(copy, case, victim, draw.uniform(0, case.seconds)):
                continue
            print(f"{number + 1}: {victim}, {case.what}", flush=True)
    text = table(all_cases, given.seed, (time.monotonic() - started) / 60)
    given.table.write_text(text)
    print(text)
    raise SystemExit(any(case.counts[bad] for case in all_cases for bad in list(COLUMNS)[4:]))


if __name__ == "__main__":
    main()
