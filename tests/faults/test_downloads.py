"""Downloads from the original host and copies of it, with all that can be wrong with either."""

import signal

import pytest
from toys import SECONDS, complains, wait_for


def test_wrong_content_is_not_used_and_the_right_one_is_taken_later(project, host, tmp_path):
    host.mode = "wrong"
    words = ["DataUnavailable: mnist", "127.0.0.1: other content than registered"]
    assert complains(project.run("run", "toy2020-data"), *words)
    copy = tmp_path / "copy" / "mnist"
    copy.mkdir(parents=True)
    for name in host.files:
        (copy / name).write_bytes(b"")
    words = ["DataCorrupt: mnist", "does not have the registered sha256", "stays as it is"]
    assert complains(project.run("run", "toy2020-data", OVERPARAM_DATA=str(copy.parent)), *words)
    assert all(path.read_bytes() == b"" for path in copy.iterdir())
    host.mode = "good"
    code, _, err = project.run("run", "toy2020-data")
    assert code == 0, err
    assert project.left() == []


@pytest.mark.parametrize(("how", "expected"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_killed_download(project, host, how, expected):
    cache, host.mode = project.root / "data" / "cache" / "mnist", "stalled"
    fetch = project.start("data", "fetch", "mnist")
    wait_for(lambda: any(path.stat().st_size for path in cache.glob("*.part")), "some bytes")
    fetch.send_signal(how)
    _, err = fetch.communicate(timeout=SECONDS)
    assert fetch.returncode == expected
    assert "Traceback" not in err
    assert {path.suffix for path in cache.iterdir()} <= ({".part"} if how == signal.SIGKILL else set())
    host.mode = "good"
    code, _, err = project.run("data", "fetch", "mnist")
    assert code == 0, err
    assert {path.name: path.read_bytes() for path in cache.glob("*.gz")} == host.files
