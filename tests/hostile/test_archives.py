"""Data files that lie: none that is unregistered is decoded, nothing is unpacked or run, what is true is read back."""

import lzma

import numpy as np
import pytest
from hostile_files import archives, fill, idx, member, pickles, tar
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


@pytest.mark.parametrize(("name", "files"), FORMS, ids=["/".join([name, *files][:2]) for name, files in FORMS])
def test_what_is_not_registered_reaches_no_decoder(mirror, monkeypatch, name, files):
    opened = []
    monkeypatch.setitem(readers.READERS, name, opened.append)
    for content in [*archives("train.bin").values(), *pickles(mirror, "y_train", "y_test").values()]:
        fill(mirror / name, dict.fromkeys(files, content))
        with pytest.raises(DataCorrupt, match="does not have the registered sha256"):
            data.load(name)
    assert opened == []


UINT8 = arrays.arrays(np.uint8, arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5))


@given(array=UINT8)
def test_images_are_read_back(array):
    np.testing.assert_array_equal(readers.idx_array(idx(array)), array)


@given(images=arrays.arrays(np.uint8, (3, 3, 32, 32)), labels=arrays.arrays(np.uint8, (3, 2)))
def test_records_of_images_are_read_back(tmp_path, images, labels):
    content = np.hstack([labels, images.reshape(3, -1)]).tobytes()
    path = tmp_path / "cifar-100-binary.tar.gz"
    path.write_bytes(tar(member("a/train.bin", content), member("a/test.bin", content)))
    raw = readers.cifar100({path.name: path})
    np.testing.assert_array_equal(raw.x[0], images.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(raw.y[1], labels[:, 1])


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=5))
def test_texts_are_read_back_from_both_forms(tmp_path, texts):
    rows = [(split, i, text) for split in ("train", "test") for i, text in enumerate(texts)]
    archive, csv = tmp_path / "aclImdb_v1.tar.gz", tmp_path / "imdb_reviews.csv.xz"
    archive.write_bytes(tar(*(member(f"aclImdb/{split}/pos/{i}_9.txt", text.encode()) for split, i, text in rows)))
    lines = [",".join([split, "1", "9", str(i), '"' + text.replace('"', '""') + '"']) for split, i, text in rows]
    csv.write_bytes(lzma.compress("\n".join(["split,label,rating,id,review", *lines, ""]).encode()))
    for path in (archive, csv):
        assert [part.tolist() for part in readers.imdb({path.name: path}).x] == [texts, texts]
