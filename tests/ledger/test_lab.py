"""Copies to work in: an edited one is never lost and never the reference."""

import contextlib
import http.cookiejar
import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from typer.testing import CliRunner

from ledger import cli, lab, paths, registry

NAMES = ("toy2020/a.ipynb", "b.ipynb")


@pytest.fixture
def originals(tmp_path, monkeypatch):
    """A folder of two notebooks, whose copies go beside it."""
    monkeypatch.setattr(paths, "LAB", tmp_path / "lab")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(lab, "_contents", list)
    (paths.NOTEBOOKS / "toy2020").mkdir(parents=True)
    for name in NAMES:
        (paths.NOTEBOOKS / name).write_text("old")
    return paths.NOTEBOOKS


def test_an_edited_copy_stays_and_the_others_follow_their_originals(originals):
    own, other = (paths.LAB / name for name in NAMES)
    assert lab.prepare() == []
    own.write_text("mine")
    assert lab.prepare() == []
    for name in NAMES:
        (originals / name).write_text("new")
    assert lab.prepare() == [own]
    assert [own.read_text(), other.read_text()] == ["mine", "new"]
    assert (originals / NAMES[0]).read_text() == "new"
    own.unlink()
    assert lab.prepare() == []
    assert own.read_text() == "new"


def test_the_index_leads_to_every_claims_notebook(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "LAB", tmp_path / "lab")
    monkeypatch.setattr(paths, "FIGURES", paths.ROOT / "figures")
    lab.prepare()
    text = "\n".join(
        "".join(cell["source"]) for cell in json.loads((paths.LAB / lab.INDEX).read_text())["cells"]
    )
    links = re.findall(r"\]\((.*?\.ipynb)\)", text)
    notebooks = [*paths.NOTEBOOKS.glob("*.ipynb"), *paths.NOTEBOOKS.glob("*/*.ipynb")]
    assert set(links) == {str(path.relative_to(paths.NOTEBOOKS)) for path in notebooks}
    assert len(links) == len(registry.registry()) + len([*paths.NOTEBOOKS.glob("*.ipynb")])
    assert all((paths.LAB / link).exists() for link in links)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """server(*arguments): JupyterLab on a folder with an index; the text that it prints."""
    monkeypatch.setattr(paths, "LAB", tmp_path / "my lab")
    monkeypatch.setattr(lab, "_contents", list)
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "notebooks")
    paths.LAB.mkdir()
    lab.prepare()
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name))
    with contextlib.ExitStack() as started:

        def start(*arguments):
            command = lab.command(["--no-browser", "--allow-root", *arguments])
            log = tmp_path / "log.txt"
            with log.open("w") as file:
                process = started.enter_context(subprocess.Popen(command, stderr=file))
            started.callback(process.terminate)
            deadline = time.monotonic() + 60
            while not re.search("Or copy and paste.*//127.0.0.1", log.read_text(), re.DOTALL):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            return log.read_text()

        yield start


def opened(address):
    """The page at an address, as a browser without cookies gets it."""
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
    for _ in range(100):  # the address is printed before anybody listens
        with contextlib.suppress(urllib.error.URLError):
            return browser.open(address, timeout=20).read().decode()
        time.sleep(0.1)
    raise AssertionError(f"nobody answers at {address}")


@pytest.mark.parametrize("more", [[], ["--ip=0.0.0.0"]], ids=["here", "from other machines"])
def test_every_address_that_is_printed_opens_the_index(server, more):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = server(f"--port={port}", *more)
    addresses = re.findall(r"http://\S+", text)
    assert len(addresses) >= 2
    for address in addresses:
        assert re.fullmatch(rf"http://[^/]+:{port}/lab/tree/{lab.INDEX}\?token=\w+", address)
    (own,) = {address for address in addresses if "//127.0.0.1:" in address}
    assert '"treePath": "index.ipynb"' in opened(own)
    (file,) = re.findall(r"file://(\S+)", text)
    with open(file, encoding="utf-8") as page:
        assert f"/lab/tree/{lab.INDEX}?token=" in page.read()


def test_a_remote_user_is_told_how_to_reach_it(monkeypatch, originals):
    started = []
    monkeypatch.setattr(cli.os, "execv", lambda program, words: started.append(words))
    monkeypatch.setenv("COLUMNS", "60")
    done = CliRunner().invoke(cli.app, ["lab", "--no-browser"], catch_exceptions=False)
    assert "\n  ssh -L 8888:localhost:8888 " in done.stdout
    told = [line for line in done.stdout.splitlines() if str(paths.LAB) not in line]
    assert max(map(len, told)) <= 60
    assert started == [lab.command(["--no-browser"])]
