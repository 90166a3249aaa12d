"""The nets of five papers under one roof, each as its paper starts and trains it.

All have one output. A width m enters the outputs of a paper's net by its own power, so that the
tangent kernel grows like m^q. `Problem` holds labelled inputs and what the papers' theorems read
off them.
"""

from dataclasses import dataclass

import torch

from ..bounds.requirements import requirements
from ..models.deep_relu import ReLURuns
from ..models.gated import GatedRuns
from ..models.leaky import LeakyMLP
from ..models.residual import ResidualRuns
from ..models.two_layer import TwoLayerReLU, row_space
from ..training import LogisticLoss, SquaredLoss
from .finite_width_kernels import tangent_kernel
from .infinite_width_kernels import gated_ntk, leaky_ntk, relu_gram, residual_ntk
from .margins import feature_margin


@dataclass(frozen=True)
class Problem:
    """Inputs x (n, r) of norm 1 with labels y (n,) of +1, -1, and what the theorems read off them.

    x: coordinates in the span of the inputs, which lie in R^d; delta: the smallest distance of two
    inputs; lam0: the smallest eigenvalue of H^infinity (Arora et al. 2019, eq. (4)); gamma: the
    margin of random features on these inputs (Frei et al. 2019, Assumption 3.2).
    """

    x: torch.Tensor
    y: torch.Tensor
    d: int
    delta: float
    lam0: float
    gamma: float

    @classmethod
    def of(cls, x, y, features=1000, seed=0):
        """The problem of inputs x (n, d) of norm 1 and labels y (n,); features: how many for gamma.

        >>> problem = Problem.of(torch.eye(3, 5).double(), torch.tensor([1.0, -1.0, 1.0]))
        >>> problem.d, problem.x.shape, round(problem.delta, 4), round(problem.lam0, 4)
        (5, torch.Size([3, 3]), 1.4142, 0.5)
        """
        inside = x @ row_space(x)
        draw = torch.Generator().manual_seed(seed)
        u = torch.randn(inside.shape[1], features, generator=draw, dtype=torch.float64)
        margin, _ = feature_margin(torch.relu(inside.double() @ u).numpy(), y.numpy())
        lam0 = float(torch.linalg.eigvalsh(relu_gram(inside))[0])
        return cls(inside, y, x.shape[1], float(torch.pdist(inside).min()), lam0, min(1.0, margin))

    def required(self, L, error, p, alpha=-1.0):
        """{paper: what its theorem requires}, a `Requirement` each, for nets of depth L.

        error: the surrogate error that Frei et al.'s net is to reach, on which no other width and
        no other step size depends; p: the probability to fail; alpha: Guo et al.'s leak.
        """
        read = {name: getattr(self, name) for name in ("d", "delta", "lam0", "gamma")}
        found = requirements(n=len(self.y), L=L, eps=error, alpha=alpha, p=p, **read)
        return dict(zip(PAPERS, found, strict=True))


class SurrogateError(LogisticLoss):
    """Descends the logistic loss; reports the surrogate error plus the number of wrong signs.

    Source: Frei et al. 2019, Section 2.
    """

    def __call__(self, u):
        _, slope = super().__call__(u)
        wrong = (u * self.y <= 0).sum(-1)
        return self.surrogate(u) + wrong, slope


class PaperNet:
    """The net of one paper. q: its tangent kernel grows like m^q; flat: outputs are (..., n).

    name: its authors and a word.
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
    form = "halfsum"  # of the squared loss

    def targets(self, y):
        """Labels (..., n) in the shape of the net's outputs."""
        return y if self.flat else y.unsqueeze(-1)

    def inputs(self, problem):
        """The inputs of a `Problem` as the net takes them."""
        return problem.x

    def loss(self, y):
        """The paper's loss for labels y (n,)."""
        return SquaredLoss(self.targets(y), self.form)

    def curvature(self, n):
        """The largest second derivative of the loss of n examples with respect to an output."""
        return 2.0 if self.form == "sum" else 1.0

    def stable_step(self, problem, L):
        """2/(c lambda_max), times m^q: the largest stable step size of the infinitely wide net.

        c: the curvature of the loss; lambda_max: the largest eigenvalue of the limit kernel.
        """
        kernel = self.limit_kernel(self.inputs(problem), 1, L)
        return 2 / (self.curvature(len(problem.y)) * float(torch.linalg.eigvalsh(kernel)[-1]))

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

    name = "Arora et al., two layers"
    q = 0
    flat = True

    def runs(self, x, m, L, seeds, held_out=None, **options):
        place = {"dtype": x.dtype, "device": x.device}
        return TwoLayerReLU(x.shape[1], m, 1.0, seeds=list(seeds), **place, **options)

    def limit_kernel(self, x, m, L):
        return relu_gram(x)


class AllenZhu(PaperNet):
    """`ReLURuns`, W_1..W_L trained. Source: Allen-Zhu et al. 2019, Section 2."""

    name = "Allen-Zhu et al., deep ReLU"

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

    name = "Frei et al., residual"
    flat = True

    def loss(self, y):
        return SurrogateError(y)

    def curvature(self, n):
        return 1 / (4 * n)

    def runs(self, x, m, L, seeds, held_out=None, **options):
        place = {"dtype": x.dtype, "device": x.device}
        return ResidualRuns(x.shape[1], m, L, 1 / L, seeds=list(seeds), **place, **options)

    def limit_kernel(self, x, m, L):
        return residual_ntk(x, L, 1 / L) * m


class Noy(PaperNet):
    """`GatedRuns("grelu")`, W_1..W_L trained. Source: Noy et al. 2021, eq. (1)."""

    name = "Noy et al., GReLU"
    q = 2

    def inputs(self, problem):
        """Scaled, since the entries of C have the variance 2/d, in the coordinates as well."""
        return problem.x * (problem.x.shape[1] / problem.d) ** 0.5

    def runs(self, x, m, L, seeds, held_out=None, **options):
        return GatedRuns("grelu", x.shape[1], m, L, seeds=list(seeds), **options)

    def limit_kernel(self, x, m, L):
        return gated_ntk(x, L) * m**2 / x.shape[1]


class Guo(PaperNet):
    """`LeakyMLP` of slope alpha, W_1..W_L trained. Source: Guo et al. 2024, Algorithm 1."""

    name = "Guo et al., leaky ReLU"
    form = "sum"

    def __init__(self, alpha=-1.0):
        self.alpha = alpha

    def runs(self, x, m, L, seeds, held_out=None, **options):
        place = {"dtype": x.dtype, "device": x.device}
        alphas = [self.alpha] * len(seeds)
        return LeakyMLP(x.shape[1], m, 1, L, alphas=alphas, seeds=list(seeds), **place, **options)

    def limit_kernel(self, x, m, L):
        return leaky_ntk(x, L, self.alpha) * m / 2


PAPERS = {"Arora": Arora(), "Allen-Zhu": AllenZhu(), "Frei": Frei(), "Noy": Noy(), "Guo": Guo()}
