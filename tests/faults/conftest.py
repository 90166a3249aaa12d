"""A toy project, the host of its data, and small file systems."""

import subprocess
import threading

import pytest
import toys


@pytest.fixture
def project(tmp_path):
    made = toys.project(tmp_path / "Zoë's проект")
    yield made
    for process in made.processes():
        process.kill()


@pytest.fixture
def host(project):
    with toys.Host() as server:
        toys.serve_mnist(server, project)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def mount():
    """mount(folder, size): a small file system of its own.

    mount(folder, read_only=True): no more writing to it.
    """
    mounted = []

    def make(folder, size=None, read_only=False):
        options = (
            ["-o", "remount,ro"] if read_only else ["-t", "tmpfs", "-o", f"size={size}", "tmpfs"]
        )
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["mount", *options, str(folder)], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")
        mounted.extend([folder] if size else [])

    yield make
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
