"""Downloads that are killed leave nothing that the next one takes for whole.

A user's own folder of data is found.
"""

import signal

import pytest
from toys import SECONDS, wait_for


@pytest.mark.parametrize(
    ("how", "expected"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9), (signal.SIGINT, 130)]
)
def test_a_killed_download(project, host, how, expected):
    cache, host.mode = project.root / "data" / "cache" / "mnist", "stalled"
    fetch = project.start("data", "fetch", "mnist")
    wait_for(lambda: any(path.stat().st_size for path in cache.glob("*.part")), "some bytes")
    fetch.send_signal(how)
    _, err = fetch.communicate(timeout=SECONDS)
    assert fetch.returncode == expected
    assert "Traceback" not in err
    assert {path.suffix for path in cache.iterdir()} <= (
        {".part"} if how == signal.SIGKILL else set()
    )
    host.mode = "good"
    code, _, err = project.run("data", "fetch", "mnist")
    assert code == 0, err
    assert {path.name: path.read_bytes() for path in cache.glob("*.gz")} == host.files


@pytest.mark.parametrize("words", [["figures"], ["run", "toy2020-data"]])
def test_a_folder_of_data_that_is_named_from_where_one_is(project, host, words):
    project.only("toy2020-data")
    mirror = project.root / "own" / "mirror" / "mnist"
    mirror.mkdir(parents=True)
    for name, content in host.files.items():
        (mirror / name).write_bytes(content)
    host.files = {}
    code, out, err = project.run(*words, cwd="own", OVERPARAM_DATA="mirror")
    assert code == 0, out + err


def test_a_host_that_sends_without_end(project, host):
    """More than the registered size ends with a line that says so."""
    name = "train-labels-idx1-ubyte.gz"
    host.files[name] += b"x" * 2**22
    code, _, err = project.run("data", "fetch", "mnist")
    assert (code, "bytes of the file came" in err) == (1, True), err


def test_the_cause_of_a_failed_download_is_named(project):
    code, _, err = project.run("data", "fetch", "mnist", https_proxy="http://127.0.0.1:9")
    assert code == 1
    assert "refused" in err


def test_a_host_that_sends_byte_by_byte(project, host):
    """It ends when its time is over, though never a whole piece has come."""
    host.mode = "trickling"
    sources = project.root / "lib" / "overparam" / "data" / "sources.py"
    sources.write_text(sources.read_text().replace("PATIENCE = 60", "PATIENCE = 2"))
    fetch = project.start("data", "fetch", "mnist")
    try:
        _, err = fetch.communicate(timeout=SECONDS)
    finally:
        fetch.kill()
    assert (fetch.returncode, "bytes came in" in err) == (1, True), err
