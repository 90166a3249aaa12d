"""Jobs of a machine without a scheduler: each has a GPU of its own, until it ends, however it ends."""

import os
import subprocess
import sys

SAY = "import os, sys; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); sys.stdin.read()"


def start(folder, **variables):
    """A job that says which GPU it got, and ends when its standard input does."""
    environment = os.environ | {"TMPDIR": str(folder), "CUDA_VISIBLE_DEVICES": "4, GPU-a1", **variables}
    command = [sys.executable, "-m", "overparam.run.gpu", "-c", SAY]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_no_job_takes_the_gpu_of_another(tmp_path):
    with start(tmp_path) as first, start(tmp_path) as second:
        freed = first.stdout.readline()
        assert {freed, second.stdout.readline()} == {"4\n", "GPU-a1\n"}
        with start(tmp_path) as third:
            first.kill()
            assert third.stdout.readline() == freed
            third.stdin.close()
        second.stdin.close()


def test_a_scheduler_is_left_to_assign_gpus(tmp_path):
    with start(tmp_path, SLURM_JOB_ID="7", CUDA_VISIBLE_DEVICES="0,1") as job:
        assert job.communicate()[0] == "0,1\n"
    assert not list(tmp_path.iterdir())
