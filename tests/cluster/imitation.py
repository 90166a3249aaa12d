"""SLURM's commands, as far as Snakemake's plug-in calls them, for tests without a SLURM.

Jobs are processes of this machine. The name under which it is called says which command it is; JOBS
names the folder where <id>.pid, <id>.asked (the words of sbatch) and <id>.rc (the exit status, 137
where it was cancelled) stand.
"""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

JOBS = Path(os.environ["JOBS"])
RUN = '"$0" -c "$1" > "$2" 2>&1; echo $? > "$3.part" && mv "$3.part" "$3"'


def claimed(number):
    """Whether this call gets the id, and not another one at the same moment."""
    try:
        (JOBS / f"{number}.asked").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def sbatch(words):
    number = next(number for number in itertools.count(1) if claimed(number))
    (JOBS / f"{number}.asked").write_text("\n".join(words))
    command = next(word.removeprefix("--wrap=") for word in words if word.startswith("--wrap="))
    log = words[words.index("--output") + 1].replace("%j", str(number))
    job = subprocess.Popen(
        ["sh", "-c", RUN, "sh", command, log, JOBS / f"{number}.rc"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=words[words.index("-D") + 1],
        env=os.environ | {"SLURM_JOB_ID": str(number)},
    )
    (JOBS / f"{number}.pid").write_text(str(job.pid))
    print(number)


def squeue(words):
    for job in JOBS.glob("*.pid"):
        ended = job.with_suffix(".rc")
        code = ended.read_text().strip() if ended.exists() else None
        print(f"{job.stem}|{ {None: 'RUNNING', '0': 'COMPLETED'}.get(code, 'FAILED') }")


def scancel(words):
    for number in words:
        os.killpg(int((JOBS / f"{number}.pid").read_text()), signal.SIGKILL)
        (JOBS / f"{number}.rc").write_text("137")


def srun(words):
    first = next(i for i, word in enumerate(words) if not word.startswith("-"))
    os.execvp(words[first], words[first:])


def sinfo(words):
    print("PARTITION\nall*")


def scontrol(words):
    print("MinJobAge = 3600 sec")


def sacct(words):
    sys.exit("accounting is disabled")


globals()[Path(sys.argv[0]).name](sys.argv[1:])
