"""Cache, mirror and download, with a tiny MNIST served from 127.0.0.1.

Nothing damaged is read, nothing is lost.
"""

import gzip
import hashlib
import http.server
import io
import struct
import threading
import zipfile

import numpy as np
import pytest

from overparam import data, settings
from overparam.data import readers, sources
from overparam.errors import DataCorrupt, DataUnavailable

NOWHERE = "http://127.0.0.1:9/{file}"  # the discard port: nobody listens


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}i", *array.shape)
    return gzip.compress(header + array.tobytes(), mtime=0)


def tiny_mnist():
    rng = np.random.default_rng(0)
    images = [rng.integers(1, 256, size=(n, 28, 28), dtype=np.uint8) for n in (40, 20)]
    labels = [np.arange(n, dtype=np.uint8) % 10 for n in (40, 20)]
    contents = [idx(a) for a in (images[0], labels[0], images[1], labels[1])]
    return dict(zip(sources.registry()["mnist"]["files"], contents, strict=True))


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty cache and no mirror."""
    monkeypatch.setattr(settings, "data_cache", tmp_path / "cache")
    monkeypatch.setattr(settings, "data_mirror", None)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path


@pytest.fixture
def mnist(folders, monkeypatch):
    """The four files' contents of a tiny MNIST that the registry now knows by its sha256."""
    files = tiny_mnist()
    known = {
        name: {"size": len(c), "sha256": hashlib.sha256(c).hexdigest()} for name, c in files.items()
    }
    monkeypatch.setitem(sources.registry()["mnist"], "files", known)
    monkeypatch.setitem(sources.registry()["mnist"], "urls", [NOWHERE])
    return files


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, name = self.path.strip("/").split("/", 1)
        content = self.server.files.get(name)
        if content is None or kind == "missing":
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if kind == "wrong":
            content = bytes(len(content))
        self.wfile.write(content if kind in ("good", "wrong") else content[: len(content) // 2])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(mnist):
    """Serves the files below /good/, damaged ones below /wrong/ and /cut/, none below /missing/."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.files = mnist
        thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
        thread.start()
        yield lambda kind: f"http://127.0.0.1:{httpd.server_port}/{kind}/{{file}}"
        httpd.shutdown()
        thread.join()


def set_urls(monkeypatch, *urls, name="mnist"):
    monkeypatch.setitem(sources.registry()[name], "urls", list(urls))


def test_download_then_cache(server, mnist, monkeypatch, capsys):
    set_urls(monkeypatch, server("good"))
    dataset = data.load("mnist", n_train=30, n_test=20)
    assert dataset.source == "127.0.0.1"
    assert "train-images" in capsys.readouterr().err  # the progress bar
    assert {p.name: p.read_bytes() for p in (settings.data_cache / "mnist").iterdir()} == mnist
    again = data.load("mnist", n_train=30, n_test=20)
    assert again.source == "cache"
    assert dataset.x_train.equal(again.x_train)
    assert dataset.sha256 == {
        name: hashlib.sha256(content).hexdigest() for name, content in mnist.items()
    }


@pytest.mark.parametrize("kind", ["wrong", "cut", "missing"])
def test_a_bad_download_leaves_nothing(server, kind, monkeypatch):
    set_urls(monkeypatch, server(kind))
    with pytest.raises(
        DataUnavailable, match=r"train-images-idx3-ubyte\.gz could not be downloaded"
    ):
        data.load("mnist")
    assert list((settings.data_cache / "mnist").iterdir()) == []


def test_the_next_url_is_tried(server, monkeypatch):
    set_urls(
        monkeypatch, NOWHERE, server("missing"), server("cut"), server("wrong"), server("good")
    )
    assert len(data.fetch("mnist")) == 4
    assert data.load("mnist").source == "cache"


def test_no_network(mnist, tmp_path, monkeypatch):
    with pytest.raises(DataUnavailable) as caught:
        data.load("mnist")
    message = str(caught.value)
    assert message.count("\n") == 1
    for part in (
        "mnist is neither in",
        str(settings.data_cache / "mnist"),
        "overparam data fetch mnist",
        "OVERPARAM_DATA",
        "127.0.0.1: ",
        "'mnist-5k'",
        *mnist,
    ):
        assert part in message
    assert "Traceback" not in message
    assert "Pool" not in message
    monkeypatch.setattr(settings, "data_mirror", tmp_path / "mirror")
    with pytest.raises(DataUnavailable, match="mirror/mnist"):
        data.load("mnist")


def test_cache_comes_before_the_mirror(mnist, tmp_path, monkeypatch):
    write(tmp_path / "mirror" / "mnist", mnist)
    monkeypatch.setattr(settings, "data_mirror", tmp_path / "mirror")
    assert data.load("mnist").source == "mirror"
    assert not settings.data_cache.exists()
    write(settings.data_cache / "mnist", mnist)
    assert data.load("mnist").source == "cache"


@pytest.mark.parametrize("place", [0, 100, -1])
def test_a_flipped_byte_in_the_cache(server, mnist, place, monkeypatch):
    folder = write(settings.data_cache / "mnist", mnist)
    damaged = bytearray(mnist["t10k-images-idx3-ubyte.gz"])
    damaged[place] ^= 1
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(damaged)
    with pytest.raises(
        DataCorrupt, match=r"t10k-images-idx3-ubyte.gz.corrupt, and the next run fetches it anew"
    ):
        data.load("mnist")
    assert (folder / "t10k-images-idx3-ubyte.gz.corrupt").read_bytes() == damaged
    set_urls(monkeypatch, server("good"))
    assert data.load("mnist").source == "127.0.0.1"
    assert (folder / "t10k-images-idx3-ubyte.gz.corrupt").read_bytes() == damaged


def test_damage_after_a_load_is_seen_and_every_damaged_file_kept(mnist):
    folder = write(settings.data_cache / "mnist", mnist)
    data.load("mnist")
    file = folder / "train-labels-idx1-ubyte.gz"
    for content in (b"first", b"second"):
        file.write_bytes(content)
        with pytest.raises(DataCorrupt):
            data.load("mnist")
    assert {p.read_bytes() for p in folder.glob("*.corrupt*")} == {b"first", b"second"}


def test_a_damaged_mirror_stays_untouched(mnist, tmp_path, monkeypatch):
    folder = write(
        tmp_path / "mirror" / "mnist", {**mnist, "train-images-idx3-ubyte.gz": b"damaged"}
    )
    monkeypatch.setattr(settings, "data_mirror", tmp_path / "mirror")
    with pytest.raises(DataCorrupt, match="stays as it is") as caught:
        data.load("mnist")
    assert str(folder / "train-images-idx3-ubyte.gz") in str(caught.value)
    assert (folder / "train-images-idx3-ubyte.gz").read_bytes() == b"damaged"
    assert {p.name for p in folder.iterdir()} == set(mnist)


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.csv", content)
    return buffer.getvalue()


def test_an_archive_is_known_by_the_file_inside(server, mnist, monkeypatch):
    parameters = "32,64,16,8,8,8,8,2,1,1,0,1,0,1"
    csv = "\n".join(
        [",".join("abcdefghijklmnopqr"), f"{parameters},1,2,3,6", f"{parameters},2,2,2,2"]
    ).encode()
    content = {"sgemm_product.csv": hashlib.sha256(csv).hexdigest()}
    monkeypatch.setitem(sources.registry()["sgemm"], "content", content)
    set_urls(monkeypatch, server("good"), name="sgemm")
    for bad in (b"<html>", zipped(sgemm_product=csv[1:]), zipped(other=csv)):
        mnist["sgemm_product_dataset.zip"] = bad
        with pytest.raises(DataUnavailable, match="other content than registered"):
            data.fetch("sgemm")
    mnist["sgemm_product_dataset.zip"] = zipped(Readme="text", sgemm_product=csv)
    dataset = data.load("sgemm", n_test=0, target="raw")
    assert dataset.sha256 == content
    assert sorted(dataset.y_train.tolist()) == [2.0, 3.0]
    assert readers.read(sources.find("sgemm"))[0].x[0][0].tolist() == [
        5,
        6,
        4,
        3,
        3,
        3,
        3,
        1,
        0,
        0,
        0,
        1,
        0,
        1,
    ]


def test_a_damaged_file_of_another_user_is_said_to_be_damaged(mnist, monkeypatch):
    folder = write(settings.data_cache / "mnist", mnist)
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(b"damaged")

    def refused(path, target):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(sources.Path, "rename", refused)
    with pytest.raises(DataCorrupt, match=r"labels-idx1-ubyte\.gz .*another user's"):
        data.load("mnist")
