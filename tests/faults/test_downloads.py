"""Downloads that are killed leave nothing that the next one takes for whole."""

import signal

import pytest
from toys import SECONDS, wait_for


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
