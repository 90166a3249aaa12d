"""Data files and hosts that lie.

Nothing unregistered is decoded, nothing unpacked or run, sizes are bounded.
"""

import gzip
import lzma
import struct

import numpy as np
import pytest
from hostile_files import archives, fill, hostile_files, idx, member, pickles, tar, zips
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from overparam import data
from overparam.data import readers, sources
from overparam.errors import DataCorrupt

FORMS = [
    (name, files)
    for name, info in sources.registry().items()
    for files in (info.get("files", {}), info.get("mirror", {}))
    if files and all("sha256" in file for file in files.values()) and "urls" in info
]


@pytest.mark.parametrize(
    ("name", "files"), FORMS, ids=["/".join([name, *files][:2]) for name, files in FORMS]
)
def test_what_is_not_registered_reaches_no_decoder(mirror, monkeypatch, name, files):
    opened = []
    monkeypatch.setitem(readers.READERS, name, opened.append)
    for content in [
        *archives("train.bin").values(),
        *pickles(mirror, "y_train", "y_test").values(),
    ]:
        fill(mirror / name, dict.fromkeys(files, content))
        with pytest.raises(DataCorrupt, match="does not have the registered sha256"):
            data.load(name)
    assert opened == []


@pytest.mark.parametrize(("kind", "content"), zips("sgemm_product.csv").items(), ids=zips("x"))
def test_a_hostile_zip_is_refused(mirror, kind, content):
    """Of this one archive no sha256 is registered, but that of its member."""
    fill(mirror / "sgemm", {"sgemm_product_dataset.zip": content})
    with pytest.raises(DataCorrupt, match="does not have the registered sha256"):
        data.load("sgemm")


def read(folder, name, contents):
    """What the decoder of a data set makes of files that nothing is registered of."""
    fill(folder, contents)
    return readers.read(sources._found(name, {file: {} for file in contents}, folder, "test"))


IMAGES = {"train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz"}


def test_decoders_refuse_what_they_cannot_read_and_unpack_nothing(tmp_path):
    for k, (name, contents) in enumerate(hostile_files(tmp_path)):
        with pytest.raises(DataCorrupt, match=name) as caught:
            read(tmp_path / str(k), name, contents)
        assert "Traceback" not in str(caught.value)
        assert sorted(path.name for path in (tmp_path / str(k)).iterdir()) == sorted(contents)
    assert not (tmp_path / "pwned").exists()


HEADERS = {
    "no bytes": b"",
    "floats": b"\0\0\x0d\1" + struct.pack(">I", 4) + bytes(16),
    "sizes of -1": b"\0\0\x08\3" + struct.pack(">3i", -1, -1, 7) + bytes(7),
    "sizes whose product overflows": b"\0\0\x08\3"
    + struct.pack(">3I", 1 << 31, 1 << 31, 4)
    + bytes(7),
    "too long": b"\0\0\x08\1" + struct.pack(">I", 7) + bytes(8),
    "too short": b"\0\0\x08\1" + struct.pack(">I", 7) + bytes(6),
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_lying_headers_of_images(tmp_path, header):
    good = {
        name: gzip.compress(idx(np.zeros((2, 3, 3)[: 3 if name in IMAGES else 1], np.uint8)))
        for name in sources.registry()["mnist"]["files"]
    }
    assert read(tmp_path / "good", "mnist", good)[0].x[0].shape == (2, 3, 3)
    with pytest.raises(DataCorrupt, match=r"mnist in .* cannot be decoded"):
        read(
            tmp_path / "bad", "mnist", good | {"train-images-idx3-ubyte.gz": gzip.compress(header)}
        )


UINT8 = arrays.arrays(np.uint8, arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5))


@given(array=UINT8)
def test_images_are_read_back(array):
    np.testing.assert_array_equal(readers.idx_array(idx(array)), array)


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=5))
def test_texts_are_read_back_from_both_forms(tmp_path, texts):
    rows = [(split, i, text) for split in ("train", "test") for i, text in enumerate(texts)]
    archive, csv = tmp_path / "aclImdb_v1.tar.gz", tmp_path / "imdb_reviews.csv.xz"
    archive.write_bytes(
        tar(*(member(f"aclImdb/{split}/pos/{i}_9.txt", text.encode()) for split, i, text in rows))
    )
    lines = [
        ",".join([split, "1", "9", str(i), '"' + text.replace('"', '""') + '"'])
        for split, i, text in rows
    ]
    csv.write_bytes(lzma.compress("\n".join(["split,label,rating,id,review", *lines, ""]).encode()))
    for path in (archive, csv):
        assert [part.tolist() for part in readers.imdb({path.name: path}).x] == [texts, texts]
