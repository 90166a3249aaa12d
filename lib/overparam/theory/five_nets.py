"""The nets of five papers under one roof, each as its paper starts and trains it.

All have one output. A width m enters the outputs of a paper's net by its own power, so that the
tangent kernel grows like m^q.
"""

import torch

from ..models.deep_relu import ReLURuns
from ..models.gated import GatedRuns
from ..models.leaky import LeakyMLP
from ..models.residual import ResidualRuns
from ..models.two_layer import TwoLayerReLU
from .finite_width_kernels import tangent_kernel
from .infinite_width_kernels import gated_ntk, leaky_ntk, relu_gram, residual_ntk


class PaperNet:
    """The net of one paper. q: its tangent kernel grows like m^q; flat: outputs are (..., n).

    runs(x, m, L, seeds, held_out=None, **options) gives nets of width m and depth L for inputs x
    (n, p), in their dtype and on their device, one for each seed. held_out: other inputs (n', p),
    at which `outputs_at` will be asked for; options: further ones of the net's class.
    limit_kernel(x, m, L) is the mean of `kernel_at_start` for m -> infinity in units of width m, so
    times m^q, float64 (n, n); x: inputs (n, p) that are not 0.

    >>> Noy().runs(torch.eye(3), 8, 2, seeds=[0, 1]).descent(torch.eye(3)).forward().shape
    torch.Size([2, 3, 1])
    """

    q = 1
    flat = False

    def targets(self, y):
        """Labels (..., n) in the shape of the net's outputs."""
        return y if self.flat else y.unsqueeze(-1)

    def outputs_at(self, run, x):
        """Outputs (..., n') of an open run at inputs x (n', p)."""
        outputs = run.predict(x)
        return outputs if self.flat else outputs[..., 0]

    def kernel_at_start(self, x, m, L, seeds):
        """Outputs (S, n) and tangent kernels (S, n, n) before training, float64, for each seed.

        Source: Arora et al. 2019, eq. (5); Noy et al. 2021, eq. (6).
        """
        outputs, kernels = [], []
        for seed in seeds:
            run = self.runs(x, m, L, [seed]).descent(x, 0)
            outputs.append(run.forward().reshape(-1))
            kernels.append(tangent_kernel(run))
        return torch.stack(outputs).double(), torch.stack(kernels).double()


class Arora(PaperNet):
    """`TwoLayerReLU`, kappa = 1, for inputs of norm 1; L does not count.

    Source: Arora et al. 2019, Section 3.1.
    """

    q = 0
    flat = True

    def runs(self, x, m, L, seeds, held_out=None, **options):
        place = {"dtype": x.dtype, "device": x.device}
        return TwoLayerReLU(x.shape[1], m, 1.0, seeds=list(seeds), **place, **options)

    def limit_kernel(self, x, m, L):
        return relu_gram(x)


class AllenZhu(PaperNet):
    """`ReLURuns`, W_1..W_L trained. Source: Allen-Zhu et al. 2019, Section 2."""

    def runs(self, x, m, L, seeds, held_out=None, **options):
        place = {"dtype": x.dtype, "device": x.device, "held_out": held_out}
        return ReLURuns(x.shape[1], m, 1, L, seeds=list(seeds), **place, **options)

    def outputs_at(self, run, x):
        """Outputs (..., n') of an open run at the inputs held out from it."""
        return run.everywhere()[..., -len(x) :, 0]

    def limit_kernel(self, x, m, L):
        return gated_ntk(x, L, "relu") * m / 2


class Frei(PaperNet):
    """`ResidualRuns`, branches of weight 1/L, W_1..W_{L+1} trained. Frei et al. 2019, Section 2."""

    flat = True

    def runs(self, x, m, L, seeds, held_out=None, **options):
        place = {"dtype": x.dtype, "device": x.device}
        return ResidualRuns(x.shape[1], m, L, 1 / L, seeds=list(seeds), **place, **options)

    def limit_kernel(self, x, m, L):
        return residual_ntk(x, L, 1 / L) * m


class Noy(PaperNet):
    """`GatedRuns("grelu")`, W_1..W_L trained. Source: Noy et al. 2021, eq. (1)."""

    q = 2

    def runs(self, x, m, L, seeds, held_out=None, **options):
        return GatedRuns("grelu", x.shape[1], m, L, seeds=list(seeds), **options)

    def limit_kernel(self, x, m, L):
        return gated_ntk(x, L) * m**2 / x.shape[1]


class Guo(PaperNet):
    """`LeakyMLP` of slope alpha, W_1..W_L trained. Source: Guo et al. 2024, Algorithm 1."""

    def __init__(self, alpha=-1.0):
        self.alpha = alpha

    def runs(self, x, m, L, seeds, held_out=None, **options):
        place = {"dtype": x.dtype, "device": x.device}
        alphas = [self.alpha] * len(seeds)
        return LeakyMLP(x.shape[1], m, 1, L, alphas=alphas, seeds=list(seeds), **place, **options)

    def limit_kernel(self, x, m, L):
        return leaky_ntk(x, L, self.alpha) * m / 2


PAPERS = {"Arora": Arora(), "Allen-Zhu": AllenZhu(), "Frei": Frei(), "Noy": Noy(), "Guo": Guo()}
