"""Cuts data/fashion-sample.npz out of Fashion-MNIST: 300 training and 100 test images of each
class.

    python data/make_fashion_sample.py [FOLDER]

FOLDER holds the four IDX files, gzipped or not; the default is where Debian's package
dataset-fashion-mnist puts them. The images keep their order in the original; `rows_train` and
`rows_test` are their row numbers there.
"""

import gzip
import hashlib
import sys
from pathlib import Path

import numpy as np

from overparam import paths
from overparam.data import readers, synthetic

DEBIAN = "/usr/share/datasets/fashion-mnist"
SEED = 0
PER_CLASS = {"train": 300, "test": 100}
# of the decompressed files: whoever packs them again gets other .gz files, as Debian does
SHA256 = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}


def original(folder, name):
    """The array of one IDX file, checked."""
    packed = folder / f"{name}.gz"
    data = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / name).read_bytes()
    if hashlib.sha256(data).hexdigest() != SHA256[name]:
        sys.exit(f"{folder / name}: not the original content")
    return readers.idx_array(data)


def balanced(labels, per_class, rng):
    """Sorted row numbers, `per_class` of each of the ten classes."""
    return np.sort(
        np.concatenate(
            [rng.permutation(np.flatnonzero(labels == k))[:per_class] for k in range(10)]
        )
    )


def sample(folder):
    """The arrays of the sample: x, y and row numbers of both splits."""
    arrays = {}
    prefixes = {"train": "train", "test": "t10k"}
    for (split, prefix), rng in zip(prefixes.items(), synthetic.streams(SEED, 2), strict=True):
        labels = original(folder, f"{prefix}-labels-idx1-ubyte")
        rows = balanced(labels, PER_CLASS[split], rng)
        images = original(folder, f"{prefix}-images-idx3-ubyte")
        arrays |= {
            f"x_{split}": images[rows],
            f"y_{split}": labels[rows],
            f"rows_{split}": rows.astype(np.int32),
        }
    return arrays


if __name__ == "__main__":
    target = paths.DATA / "fashion-sample.npz"
    np.savez_compressed(target, **sample(Path(sys.argv[1] if len(sys.argv) > 1 else DEBIAN)))
    print(hashlib.sha256(target.read_bytes()).hexdigest(), target.stat().st_size, target)
