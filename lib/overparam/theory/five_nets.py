"""The nets of five papers under one roof, each as its paper starts and trains it, and their tangent
kernels.

Arora: `TwoLayerReLU`, kappa = 1; L does not count (Arora et al. 2019, Section 3.1). Allen-Zhu:
`ReLURuns`, W_1..W_L trained (Allen-Zhu et al. 2019, Section 2). Frei: `ResidualRuns`, branches of
weight 1/L, W_1..W_{L+1} trained (Frei et al. 2019, Section 2). Noy: `GatedRuns("grelu")`, W_1..W_L
trained (Noy et al. 2021, eq. (1)). Guo: `LeakyMLP` of slope alpha, W_1..W_L trained (Guo et al.
2024, Algorithm 1). All have one output.
"""

import torch

from ..models.deep_relu import ReLUNet, ReLURuns
from ..models.gated import GatedRuns
from ..models.leaky import LeakyMLP
from ..models.residual import ResidualReLU, ResidualRuns
from ..models.two_layer import TwoLayerReLU
from .finite_kernels import layer_grams
from .kernels import gated_ntk, leaky_ntk, relu_gram, residual_ntk

PAPERS = {
    "Arora": 0,
    "Allen-Zhu": 1,
    "Frei": 1,
    "Noy": 2,
    "Guo": 1,
}  # q of a tangent kernel that grows like m^q
_FLAT = ("Arora", "Frei")  # outputs (..., n), those of the others (..., n, 1)


def net_of(paper, x, m, L, seeds, *, alpha=-1.0, held_out=None, **options):
    """Runs of width m for inputs x (n, p), in their dtype and on their device, one for each seed.

    alpha: the slope of Guo's net. held_out: other inputs (n', p), which `outputs_at` will be asked
    for. options: further ones of the net's class.

    >>> net_of("Noy", torch.eye(3), 8, 2, seeds=[0, 1]).descent(torch.eye(3)).forward().shape
    torch.Size([2, 3, 1])
    """
    p, own = x.shape[1], {"seeds": list(seeds), **options}
    if paper == "Noy":
        return GatedRuns("grelu", p, m, L, **own)
    own |= {"dtype": x.dtype, "device": x.device}
    if paper == "Arora":
        return TwoLayerReLU(p, m, 1.0, **own)
    if paper == "Allen-Zhu":
        return ReLURuns(p, m, 1, L, held_out=held_out, **own)
    if paper == "Frei":
        return ResidualRuns(p, m, L, 1 / L, **own)
    return LeakyMLP(p, m, 1, L, alphas=[alpha] * len(own["seeds"]), **own)


def targets_of(paper, y):
    """Labels (..., n) in the shape of the net's outputs."""
    return y if paper in _FLAT else y.unsqueeze(-1)


def outputs_at(paper, run, x):
    """Outputs (..., n') of an open run at inputs x (n', p); of Allen-Zhu's net at those held out
    from it.
    """
    if paper == "Allen-Zhu":
        return run.everywhere()[..., -len(x) :, 0]
    return run.predict(x) if paper in _FLAT else run.predict(x)[..., 0]


def kernel_at_start(paper, x, m, L, seeds, *, alpha=-1.0):
    """Outputs (S, n) and tangent kernels (S, n, n) by the trained weights before training, float64,
    for each seed.

    K_ij = sum_l <df(x_i)/dW_l, df(x_j)/dW_l>. Source: Arora et al. 2019, eq. (5); Noy et al. 2021,
    eq. (6).
    """
    place = {"dtype": x.dtype, "device": x.device}
    outputs, kernels = [], []
    for seed in seeds:
        if paper == "Arora":
            net = net_of(paper, x, m, L, [seed])
            u, layers = net.outputs(x)[0], net.gram(x)
        elif paper == "Allen-Zhu":
            net = ReLUNet(x.shape[1], m, 1, L, seed=seed, **place)
            u, layers = net.outputs(x)[:, 0], net.grams(x)
        elif paper == "Frei":
            net = ResidualReLU(x.shape[1], m, L, 1 / L, seed=seed, **place)
            u, layers = net.outputs(x), net.grams(x)
        else:
            run = net_of(paper, x, m, L, [seed], alpha=alpha).descent(x, 0)
            u, layers = run.forward()[:, 0], layer_grams(run)
        outputs.append(u)
        kernels.append(sum(layers))
    return torch.stack(outputs).double(), torch.stack(kernels).double()


def limit_kernel(paper, x, m, L, *, alpha=-1.0):
    """The mean of `kernel_at_start` for m -> infinity in the units of width m, so times m^q:
    float64 (n, n).

    x: inputs (n, p) that are not 0, of norm 1 for Arora. Source: Arora et al. 2019, eq. (3); the
    others are ours, see `kernels`.
    """
    if paper == "Arora":
        return relu_gram(x)
    if paper == "Allen-Zhu":
        return gated_ntk(x, L, "relu") * m / 2
    if paper == "Frei":
        return residual_ntk(x, L, 1 / L) * m
    if paper == "Noy":
        return gated_ntk(x, L) * m**2 / x.shape[1]
    return leaky_ntk(x, L, alpha) * m / 2
