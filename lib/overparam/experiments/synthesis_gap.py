"""What five theorems demand of width, step size and steps, and what training needs: the smallest width, by bisection.

A net of each paper, trained by full-batch gradient descent from the paper's own start on its own loss: squared error of
labels +1 and -1, or, of Frei et al., the logistic loss. Step sizes are powers of two times `limit`, nine tenths of the
largest stable one of the tangent kernel of infinite width; all nets see the same inputs in coordinates of their span.
"""

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import torch

from ..bounds import arora2019, noy2021, requirements
from ..errors import ParameterError
from ..models.deep_relu import ReLURuns
from ..models.gated import GatedRuns
from ..models.leaky import LeakyMLP
from ..models.residual import ResidualRuns
from ..models.two_layer import TwoLayerReLU, row_space
from ..theory.kernels import gated_ntk, leaky_ntk, relu_gram, residual_ntk
from ..theory.margins import feature_margin
from ..training import Checkpoint, LogisticLoss, SquaredLoss, gradient_descent
from ..training.descent import in_threads

PAPERS = {
    "arora": "Arora et al. 3.1, two-layer",
    "allenzhu": "Allen-Zhu et al. 1, deep ReLU",
    "frei": "Frei et al. 3.5, residual",
    "noy": "Noy et al. 1, GReLU",
    "guo": r"Guo et al. 3.1, $\alpha = -1$",
}
POWER = {"arora": 0, "allenzhu": 1, "frei": 1, "noy": 2, "guo": 1}  # the tangent kernel grows like m^power
SHARE = 0.9  # of the largest stable step size
HIGHEST = 12  # log2 of the largest step size over `limit` that is tried


class ErrorLoss(LogisticLoss):
    """The derivative of `LogisticLoss`; the value is the surrogate error, plus the number of wrong signs."""

    def __call__(self, u):
        """(value, derivative by u): value () or (R,), derivative of the shape of u, (n,) or (R, n)."""
        value = self.surrogate(u) + (u * self.y <= 0).sum(-1)
        return value, super().__call__(u)[1]


@dataclass(frozen=True, eq=False)
class Problem:
    """n unit inputs in coordinates of their span, x (n, r), labels y (n,) of +1 and -1, and their own dimension d."""

    x: torch.Tensor
    y: torch.Tensor
    d: int

    @classmethod
    def of(cls, data, n, **options):
        """The first n examples of a `DataSet`; options: dtype and device."""
        x, y = data.x_train[:n], data.y_train[:n]
        return cls((x @ row_space(x)).to(**options), y.to(**options), x.shape[1])

    @cached_property
    def own(self):
        return self.x.double().cpu()


def facts(problem, features=1000, seed=0):
    """{n, d, delta, lam0, gamma} of a `Problem`: distance of the inputs, smallest eigenvalue, margin.

    gamma: of Frei et al. 2019, Assumption 3.2, by a linear program on so many random features of that seed.
    """
    x = problem.own
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(x.shape[1], features, generator=generator, dtype=torch.float64)
    return {
        "n": len(x),
        "d": problem.d,
        "delta": float(torch.pdist(x).min()),
        "lam0": float(torch.linalg.eigvalsh(relu_gram(x))[0]),
        "gamma": min(1.0, feature_margin(torch.relu(x @ u).numpy(), problem.y.cpu().numpy())[0]),  # 1 but for rounding
    }


def demanded(facts, L, target, p):
    """{paper: requirements.Requirement} of data with these `facts`, all constants 1, to reach the target of each net.

    target: {"squared": share of the labels' squares, "surrogate": error}; p: probability to fail. The loss is half the
    sum of squares, of Guo et al. the sum.
    """
    half = target["squared"] * facts["n"] / 2
    eps = {"arora": half, "allenzhu": half, "frei": target["surrogate"], "noy": half, "guo": 2 * half}
    rows = {e: requirements.requirements(**facts, L=L, eps=min(e, 1.0), alpha=-1.0, p=p) for e in set(eps.values())}
    return {paper: rows[eps[paper]][i] for i, paper in enumerate(PAPERS)}


def with_constants(facts, L, p, kappa=1.0):
    """{paper: (log10 width, log10 step size)} with the constants of the proofs, of those that give them; ours.

    arora: the width at which Lemma C.2 with the R of Lemma C.1 and |y - u(0)|^2 <= n (1 + kappa^2/2)/p keeps H(k)
    within lam0/4 of H(0); with a step size of constant 1. noy: the width at which m^(-1/2) is within the gamma that
    eq. (17) allows by the constants of Theorem 5, and the probability of that theorem positive; the step size of
    eq. (18), corrected, at this width.
    """
    n, d = facts["n"], facts["d"]
    C = (64 / math.sqrt(2 * math.pi)) ** 2 * (1 + kappa**2 / 2)
    m = arora2019.thm31_width(n, facts["lam0"], kappa, p, C=C)
    found = {"arora": (math.log10(m), math.log10(arora2019.thm31_eta(n, facts["lam0"])))}
    m = max(float(noy2021.gamma_needed(n)) ** -2, float(noy2021.thm5_width(L, d, 1, 0.5)))
    sizes = noy2021.alpha2(m, d), noy2021.beta2(m, d), noy2021.beta_x(m, d)
    loss0 = noy2021.loss0_bound(n, m, d, "corrected")
    eta = noy2021.eta_lemma3(*sizes, n, L, loss0, 0.5, "corrected").eta
    return found | {"noy": (math.log10(m), math.log10(eta))}


def runs_of(paper, problem, m, L, seeds):
    """(nets, inputs, loss) of a paper's nets of width m, one run per seed."""
    x, y, p = problem.x, problem.y, problem.x.shape[1]
    options = {"seeds": seeds, "dtype": x.dtype, "device": x.device}
    if paper == "arora":
        return TwoLayerReLU(p, m, 1.0, **options), x, SquaredLoss(y, "halfsum")
    if paper == "frei":
        return ResidualRuns(p, m, L, 1 / L, **options), x, ErrorLoss(y)
    y = y[:, None]
    if paper == "allenzhu":
        return ReLURuns(p, m, 1, L, **options), x, SquaredLoss(y, "halfsum")
    if paper == "noy":  # entries of C have variance 2/d, in the coordinates of the span as well
        return GatedRuns("grelu", p, m, L, seeds=seeds), x * (p / problem.d) ** 0.5, SquaredLoss(y, "halfsum")
    if paper == "guo":
        return LeakyMLP(p, m, 1, L, alphas=[-1.0] * len(seeds), **options), x, SquaredLoss(y, "sum")
    raise ParameterError(f"paper must be one of {', '.join(PAPERS)}, not {paper!r}")


def kernel(paper, problem, L):
    """The tangent kernel of infinite width over m^POWER, float64 (n, n), of one output by the trained layers."""
    x = problem.own
    if paper == "arora":
        return relu_gram(x)
    if paper == "frei":
        return residual_ntk(x, L, 1 / L)
    if paper == "noy":
        return gated_ntk(x, L) / problem.d
    return (leaky_ntk(x, L, -1.0) if paper == "guo" else gated_ntk(x, L, "relu")) / 2


@cache
def _largest(paper, problem, L):
    return float(torch.linalg.eigvalsh(kernel(paper, problem, L))[-1])


def limit(paper, problem, m, L):
    """SHARE of the largest step size at which gradient descent is stable with the infinite-width kernel at width m."""
    largest = _largest(paper, problem, L) * m ** POWER[paper]
    curvature = {"frei": 1 / (4 * len(problem.y)), "guo": 2.0}.get(paper, 1.0)  # of the loss by an output
    return SHARE * 2 / (curvature * largest)


@dataclass(frozen=True)
class Search:
    """How a net is trained: seeds, target as in `demanded`, steps, log2 of the step sizes over `limit`, widths.

    top: log2 of the step size that is tried first as the largest; checkpoints: a folder, or None.
    """

    seeds: list
    target: dict
    steps: int
    powers: list
    widths: list
    top: int = 1
    checkpoints: object = None

    def first(self, paper, problem, m, L, powers):
        """First step at which the target is met, (len(powers), seeds), infinite where it is not, at width m."""
        seeds = [seed for _ in powers for seed in self.seeds]
        nets, x, loss = runs_of(paper, problem, m, L, seeds)
        eta = [limit(paper, problem, m, L) * 2.0**power for power in powers for _ in self.seeds]
        saved = self.checkpoints and Checkpoint(self.checkpoints / f"{m}-{'_'.join(map(str, powers))}")
        history = gradient_descent(nets, x, loss, eta, self.steps, allow_divergence=True, checkpoint=saved)
        met = self.met(paper, problem, history, loss)
        return np.where(met.any(1), met.argmax(1), np.inf).reshape(len(powers), -1)

    def met(self, paper, problem, history, loss):
        """Whether the target is met before each step, (R, steps + 1)."""
        squares = self.target["squared"] * len(problem.y) * loss.scale
        return history.loss.numpy() <= (self.target["surrogate"] if paper == "frei" else squares)

    def within(self, *names):
        """The same with a folder of its own for the checkpoints."""
        return replace(self, checkpoints=self.checkpoints and self.checkpoints / "-".join(map(str, names)))


def width_grid(largest):
    """Even numbers nearest to 2^(k/2), from 2 to the first that is at least `largest`."""
    count = math.ceil(2 * math.log2(largest))
    return sorted({2 * max(1, round(2 ** (k / 2 - 1))) for k in range(2, count + 1)})


def smallest(suffices, count, start):
    """The smallest k in 0..count-1 at which a monotone `suffices` holds, count where it nowhere does, by bisection.

    start: where it looks first, in growing strides from there, so that a good guess saves the largest k.
    """
    low, high, k, stride = -1, count, min(start, count - 1), 1
    while high - low > 1:
        low, high = (low, k) if suffices(k) else (k, high)
        if low >= 0 and high < count:
            k = (low + high) // 2
        else:
            k = max(high - stride, 0) if low < 0 else min(low + stride, count - 1)
            stride *= 2
    return high


def measure(paper, problem, L, search, start):
    """What one net needs on one problem, a dict of numbers, NaN where no width of the grid is enough.

    width: the smallest at which all seeds reach the target with one step size; lucky, unlucky: the smallest width at
    which some seed reaches it, and at which each has with a step size of its own; stays: whether the next two widths
    suffice as well; step: log10 of the largest step size at which all seeds do at four times the width, times
    m^POWER; steps: those that the slowest seed takes with it. start: the width at which the search begins.
    """
    widths, tried = search.widths, {}

    def reached(k):
        if k not in tried:
            tried[k] = np.isfinite(search.first(paper, problem, widths[k], L, search.powers))
        return tried[k]

    k = smallest(lambda k: reached(k).all(1).any(), len(widths), int(np.searchsorted(widths, start)))
    if k == len(widths):
        return dict.fromkeys(("width", "lucky", "unlucky", "stays", "step", "steps"), math.nan)
    least = k
    while least and reached(least - 1).any():
        least -= 1
    each = [min(j for j in range(least, k + 1) if reached(j)[:, s].any()) for s in range(len(search.seeds))]
    stays = all(reached(j).all(1).any() for j in range(k + 1, min(k + 3, len(widths))))
    found = {"width": widths[k], "lucky": widths[min(each)], "unlucky": widths[max(each)], "stays": float(stays)}
    return found | largest_step(paper, problem, 4 * widths[k], L, search)


def survey(cells, problems, search):
    """{cell: measure(..)} of cells (paper, key, L), the longest first, in as many threads as torch has.

    problems: {key: Problem}, keys being tuples. The search begins at the width n.
    """
    cells = sorted(cells, key=lambda cell: -cell[2] * len(problems[cell[1]].y) ** 2)

    def work(i):
        paper, key, L = cells[i]
        problem = problems[key]
        own = search.within(paper, *key, L)
        return measure(paper, problem, L, own, len(problem.y))

    return dict(zip(cells, in_threads(work, len(cells), torch.device("cpu")), strict=True))


def largest_step(paper, problem, m, L, search):
    """{step, steps} of `measure` at the width m: `top`, doubled while it is enough, or halved until it is; else NaN."""

    def slowest(power):
        return float(search.first(paper, problem, m, L, [power]).max())

    power, steps = search.top, slowest(search.top)
    while steps < math.inf and power < HIGHEST:
        above = slowest(power + 1)
        if above == math.inf:
            break
        power, steps = power + 1, above
    while steps == math.inf and power > min(search.powers):
        power -= 1
        steps = slowest(power)
    if steps == math.inf:
        return {"step": math.nan, "steps": math.nan}
    step = limit(paper, problem, m, L) * 2.0**power * float(m) ** POWER[paper]
    return {"step": math.log10(step), "steps": steps}


def at_demand(paper, problem, L, search, demand):
    """Share of the seeds that reach the target at the width and with the step size of an `requirements.Requirement`."""
    m = 2 * math.ceil(10**demand.width / 2)
    nets, x, loss = runs_of(paper, problem, m, L, search.seeds)
    history = gradient_descent(nets, x, loss, 10**demand.step, search.steps, allow_divergence=True)
    return float(search.met(paper, problem, history, loss).any(1).mean())
