"""The original data sets against the facts published about them.

Each is looked for in data/cache and the mirror.
"""

import hashlib
import io
import math
import tarfile

import numpy as np
import pytest
import torch

from overparam import data, settings
from overparam.data import readers, sources
from overparam.errors import ParameterError

pytestmark = pytest.mark.mirror


def found(name):
    place = sources.find(name)
    if place is None and settings.data_mirror is None:
        pytest.skip(f"{name} is not in {settings.data_cache / name}, and OVERPARAM_DATA is not set")
    assert place, f"{name} is neither in the cache nor in {settings.data_mirror}"
    return place


def raw(name):
    return readers.read(found(name))[0]


def archive(path, members, mode):
    with tarfile.open(path, mode) as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_loading_leaves_the_mirror_as_it_is():
    folder = settings.data_mirror
    if folder is None:
        pytest.skip("OVERPARAM_DATA is not set")
    before = {p: (p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(folder.rglob("*"))}
    for name in ("mnist", "california-housing", "sgemm"):
        if sources.find(name):
            data.load(name, n_train=10, n_test=10)
    assert {
        p: (p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(folder.rglob("*"))
    } == before


@pytest.mark.parametrize(
    ("name", "mean", "std", "train", "test"),
    [
        (
            "mnist",
            0.1307,
            0.3081,
            [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
            [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
        ),
        ("fashion-mnist", 0.2860, 0.3530, [6000] * 10, [1000] * 10),
    ],
)
def test_mnist_and_fashion_mnist(name, mean, std, train, test):
    content = raw(name)
    assert [x.shape for x in content.x] == [(60_000, 28, 28), (10_000, 28, 28)]
    assert np.bincount(content.y[0]).tolist() == train
    assert np.bincount(content.y[1]).tolist() == test
    assert abs(content.x[0].mean() / 255 - mean) < 5e-5
    assert abs(content.x[0].std() / 255 - std) < 5e-5


def test_mnist_two_classes():
    found("mnist")
    dataset = data.load("mnist", classes=(0, 1), n_train=800, n_test=200, seed=0)
    assert dataset.x_train.shape == (800, 784)
    assert dataset.stand_in is None
    assert dataset.source in ("cache", "mirror")
    assert (dataset.x_train.norm(dim=1) - 1).abs().max() < 1e-12
    longer = data.load("mnist", classes=(0, 1), n_train=1200, n_test=200, seed=0)
    assert torch.equal(longer.x_train[:800], dataset.x_train)
    assert torch.equal(longer.y_train[:800], dataset.y_train)
    with pytest.raises(ParameterError, match="12665 training rows"):
        data.load("mnist", classes=(0, 1), n_train=20_000)


def test_the_fashion_sample_is_rows_of_the_original():
    content = raw("fashion-mnist")
    with np.load(settings.data_embedded / "fashion-sample.npz", allow_pickle=False) as sample:
        for k, split in enumerate(("train", "test")):
            rows = sample[f"rows_{split}"]
            assert len(set(rows.tolist())) == len(rows) == (3000, 1000)[k]
            assert np.array_equal(sample[f"x_{split}"], content.x[k][rows])
            assert np.array_equal(sample[f"y_{split}"], content.y[k][rows])


def test_cifar10():
    content, digests = readers.read(found("cifar10"))
    assert [x.shape for x in content.x] == [(50_000, 32, 32, 3), (10_000, 32, 32, 3)]
    assert (
        digests["test_batch"] == "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04"
    )
    assert hashlib.sha256(content.x[0][:10_000]).hexdigest() == digests["data_batch_1"]
    assert np.bincount(content.y[0]).tolist() == [5000] * 10
    assert np.bincount(content.y[1]).tolist() == [1000] * 10
    first_batch = [1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981]
    assert np.bincount(content.y[0][:10_000]).tolist() == first_batch
    counts = sum(
        np.bincount(content.x[0][k : k + 5000].ravel(), minlength=256)
        for k in range(0, 50_000, 5000)
    )
    mean = counts @ np.arange(256) / counts.sum()
    assert math.isclose(mean, 120.70756512369792, rel_tol=1e-12)
    assert math.isclose(
        counts @ (np.arange(256) - mean) ** 2 / counts.sum(), 64.1500758911**2, rel_tol=1e-11
    )
    dataset = data.load("cifar10", classes=(0, 1), n_train=100, n_test=50)
    assert dataset.x_train.shape == (100, 3072)
    assert set(dataset.y_train.tolist()) == {1.0, -1.0}


def test_cifar10_binary_archive_gives_the_same_arrays(tmp_path):
    content = raw("cifar10")
    n = 40
    members = {"cifar-10-batches-bin/batches.meta.txt": b"airplane\n"}
    parts = [(content.x[0][i * 10_000 :][:n], content.y[0][i * 10_000 :][:n]) for i in range(5)]
    for k, (x, y) in enumerate([*parts, (content.x[1][:n], content.y[1][:n])], start=1):
        records = np.hstack([y[:, None], x.transpose(0, 3, 1, 2).reshape(n, 3072)])
        members[f"cifar-10-batches-bin/{f'data_batch_{k}' if k < 6 else 'test_batch'}.bin"] = (
            records.tobytes()
        )
    # the members of an archive may come in any order
    path = archive(tmp_path / "cifar-10-binary.tar.gz", dict(reversed(members.items())), "w:gz")
    decoded = readers.cifar10({path.name: path})
    assert np.array_equal(decoded.x[0], np.concatenate([x for x, _ in parts]))
    assert np.array_equal(decoded.y[0], np.concatenate([y for _, y in parts]))
    assert np.array_equal(decoded.x[1], content.x[1][:n])
    assert np.array_equal(decoded.y[1], content.y[1][:n])
    assert decoded.x[0].dtype == content.x[0].dtype
    assert decoded.y[0].dtype == content.y[0].dtype
    assert decoded.content["test_batch"] == hashlib.sha256(content.x[1][:n].tobytes()).hexdigest()


def test_california_housing():
    (x,), (y,) = raw("california-housing").x, raw("california-housing").y
    assert x.shape == (20_640, 13)
    assert np.isnan(x).sum(axis=0).tolist() == [0, 0, 0, 0, 207] + 8 * [0]
    assert x[:, 8:].sum(axis=0).tolist() == [9136, 6551, 2658, 2290, 5]
    assert set(x[:, 8:].sum(axis=1)) == {1.0}
    assert (x[:, 7].min(), x[:, 7].max()) == (0.4999, 15.0001)
    assert (y.min(), y.max()) == (14_999, 500_001)
    dataset = data.load("california-housing")
    assert (len(dataset.x_train), len(dataset.x_test)) == (
        15_480,
        5_160,
    )  # the split of Guo et al. 2024, App. C.1
    assert dataset.x_train[:, :8].mean(0).abs().max() < 1e-11
    assert (dataset.x_train[:, :8].std(0, correction=0) - 1).abs().max() < 1e-12
    assert set(dataset.x_train[:, 8:].unique().tolist()) == {0.0, 1.0}
    assert abs(dataset.y_train.mean()) < 1e-12
    assert (
        dataset.x_test[:, :8].mean(0).abs().max() > 1e-4
    )  # the test rows do not enter the statistics
    unit = data.load("california-housing", transform="unit", n_train=50)
    assert (unit.x_train.norm(dim=1) - 1).abs().max() < 1e-12


def test_sgemm():
    (x,), (y,) = raw("sgemm").x, raw("sgemm").y
    assert x.shape == (241_600, 14)
    assert (
        len(np.unique(x @ 8.0 ** np.arange(14))) == 241_600
    )  # all rows differ: every entry is in 0..7
    assert set(x[:, 0]) == {4.0, 5.0, 6.0, 7.0}
    assert set(x[:, 13]) == {0.0, 1.0}
    assert y.min() >= 13.25
    assert y.max() <= 3397.08
    dataset = data.load("sgemm", n_test=0)
    assert len(dataset.x_train) == 241_600
    assert dataset.x_train.mean(0).abs().max() < 1e-10
    times = data.load("sgemm", n_test=0, target="raw").y_train
    assert torch.allclose(
        (times.log() - times.log().mean()) / times.log().std(correction=0), dataset.y_train
    )


def test_imdb():
    content = raw("imdb")
    assert [np.bincount(y).tolist() for y in content.y] == [[12_500, 12_500]] * 2
    assert len({text for x in content.x for text in x}) == 50_000 - 418
    dataset = data.load("imdb", classes=(1, 0), n_train=60, n_test=20, vocab=200, length=100)
    assert dataset.x_train.shape == (60, 100)
    assert dataset.x_train.dtype == torch.int64
    assert dataset.x_train.min() >= 0
    assert dataset.x_train.max() == 199
    assert (dataset.x_train == 1).sum() > 60  # "the"
    assert set(dataset.y_train.tolist()) == {1.0, -1.0}
    # where a 0 stands, only zeros follow
    assert not ((dataset.x_train[:, :-1] == 0) & (dataset.x_train[:, 1:] > 0)).any()
