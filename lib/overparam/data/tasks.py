"""Classification tasks of small images, with true or partly wrong labels.

Source: Allen-Zhu et al. 2019, Figures 1 to 4, train on such.
"""

import torch
from torch.nn.functional import avg_pool2d

from ..errors import ParameterError
from . import load


def image_task(name, *, n, size, seed, wrong=0.0, dtype=torch.float32):
    """(data, x, y, scale): n images of a data set, averaged over squares, and class numbers.

    x: (n, c, size, size) in [0, 1]; y: (n,), of which the share `wrong` is that of another class;
    scale: (mean, std) of the channels, each (c, 1, 1).
    Raises ParameterError where the images have no such squares.
    """
    data = load(name, n_train=n, n_test=0, seed=seed, transform="raw", dtype=dtype)
    x, y = data.x_train, data.y_train.long()
    if x.shape[-1] % size:
        raise ParameterError(f"images of {x.shape[-1]} pixels cannot be pooled to {size}")
    x = avg_pool2d(x, x.shape[-1] // size)
    scale = tuple(of((0, 2, 3))[:, None, None] for of in (x.mean, x.std))
    return data, x, relabelled(y, wrong, int(y.max()) + 1, seed), scale


def relabelled(y, share, classes, seed):
    """y (n,) with round(share n) of its labels replaced by another class, uniformly."""
    draw = torch.Generator().manual_seed(seed + 20)
    chosen = torch.randperm(len(y), generator=draw)[: round(share * len(y))]
    shift = torch.randint(1, classes, (len(chosen),), generator=draw)
    return y.index_put((chosen,), (y[chosen] + shift) % classes)
