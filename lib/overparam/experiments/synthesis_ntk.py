"""What the tangent kernel of infinite width predicts of the five papers' nets, beside what finite ones do."""

from dataclasses import dataclass

import torch

from ..errors import ParameterError
from ..models.deep_relu import ReLUNet, ReLURuns
from ..models.gated import GatedRuns
from ..models.leaky import LeakyMLP
from ..models.residual import ResidualReLU, ResidualRuns
from ..models.two_layer import TwoLayerReLU, row_space
from ..theory.finite_kernels import layer_grams
from ..theory.kernels import gated_ntk, leaky_ntk, relu_gram, residual_ntk
from ..training import SquaredLoss, gradient_descent

PAPERS = {"arora": "Arora", "allenzhu": "Allen-Zhu", "frei": "Frei", "noy": "Noy", "guo": "Guo"}
MOST = 2**40  # steps, where no other limit is given


@dataclass(frozen=True)
class Net:
    """One of the papers' nets with one output and the layers trained that its paper trains.

    family: a key of PAPERS. depth: L as each paper counts it (without meaning for `arora`, the two-layer net); the
    residual weight of `frei` is 1/L. alpha: slope of `guo`. antisym: the control of `TwoLayerReLU` with outputs zero;
    its weights have standard deviation 1.
    """

    family: str
    depth: int = 1
    alpha: float = -1.0
    antisym: bool = False

    def __post_init__(self):
        if self.family not in PAPERS:
            raise ParameterError(f"unknown net {self.family!r}; there are {', '.join(PAPERS)}")

    @property
    def label(self):
        """What a legend calls it."""
        return PAPERS[self.family] + (rf", $\alpha$ = {self.alpha:g}" if self.family == "guo" else "")

    def limit(self, x, m):
        """The tangent kernel of infinite width in the units of width m, float64 (n, n); x: unit-norm inputs (n, p)."""
        if self.family == "arora":
            return relu_gram(x)
        if self.family == "allenzhu":
            return gated_ntk(x, self.depth, "relu") * (m / 2)
        if self.family == "frei":
            return residual_ntk(x, self.depth, 1 / self.depth) * m
        if self.family == "noy":
            return gated_ntk(x, self.depth) * (m**2 / x.shape[1])
        return leaky_ntk(x, self.depth, self.alpha) * (m / 2)

    def coordinates(self, x):
        """x (n, p), or for `guo`, whose training costs p^2, in an orthonormal basis of its span: the same law of nets.

        (Its A is Gaussian, with a variance that does not depend on p.)
        """
        return x @ row_space(x) if self.family == "guo" else x

    def start(self, x, m, seed):
        """Outputs (n,) and tangent kernel (n, n) at initialization, float64, at inputs x (n, p)."""
        options = {"seed": seed, "dtype": x.dtype, "device": x.device}
        if self.family == "arora":
            net = self.runs(x, m, [seed])
            outputs, kernel = net.outputs(x)[0], net.gram(x)[0]
        elif self.family == "allenzhu":
            net = ReLUNet(x.shape[1], m, 1, self.depth, **options)
            outputs, kernel = net.outputs(x)[:, 0], net.grams(x).sum(0)
        elif self.family == "frei":
            net = ResidualReLU(x.shape[1], m, self.depth, 1 / self.depth, **options)
            outputs, kernel = net.outputs(x), net.grams(x).sum(0)
        else:
            run = self.runs(x, m, [seed]).descent(x, 0)
            outputs, kernel = run.forward()[:, 0], layer_grams(run).sum(0)
        return outputs.double(), kernel.double()

    def runs(self, x, m, seeds, held_out=None):
        """The nets of some seeds for `gradient_descent`, of the dtype and on the device of x (n, p)."""
        p, options = x.shape[1], {"seeds": seeds, "dtype": x.dtype, "device": x.device}
        if self.family == "arora":
            return TwoLayerReLU(p, m, 1.0, antisym=self.antisym, **options)
        if self.family == "allenzhu":
            return ReLURuns(p, m, 1, self.depth, held_out=held_out, **options)
        if self.family == "frei":
            return ResidualRuns(p, m, self.depth, 1 / self.depth, **options)
        if self.family == "noy":
            return GatedRuns("grelu", p, m, self.depth, seeds=seeds)
        return LeakyMLP(p, m, 1, self.depth, alphas=[self.alpha] * len(seeds), **options)

    def predict(self, run, x_test):
        """Outputs (..., n') of a run in training at x_test (n', p), which `allenzhu` needs as `held_out` as well."""
        if self.family == "allenzhu":
            return run.everywhere()[..., -len(x_test) :, 0]
        outputs = run.predict(x_test)
        return outputs[..., 0] if self.family in ("noy", "guo") else outputs


def starts(net, x, m, seeds):
    """`Net.start` of every seed: outputs (R, n) and kernels (R, n, n)."""
    outputs, kernels = zip(*(net.start(x, m, seed) for seed in seeds), strict=True)
    return torch.stack(outputs), torch.stack(kernels)


def train(net, x, y, m, eta, steps, *, seeds, x_test=None, checkpoint=None):
    """Gradient descent on half the squared error of one output, a run for every seed; a diverged one goes on as NaN.

    y: labels (n,), or (R, n) for every run its own; eta: one step size, or one per run.
    Returns the loss (R, steps + 1), and the changes of the outputs at x_test (n', p) over all steps, (R, n') or None.
    """
    labels = y.to(x).expand(len(seeds), len(x))
    column = net.family in ("allenzhu", "noy", "guo")
    loss = SquaredLoss(labels.unsqueeze(-1) if column else labels, "halfsum", runs_axis=True)
    log = {} if x_test is None else {"test": lambda run: net.predict(run, x_test)}
    runs = net.runs(x, m, seeds, x_test)
    options = {"log": log, "at": [0, steps], "allow_divergence": True, "checkpoint": checkpoint}
    history = gradient_descent(runs, x, loss, torch.as_tensor(eta), steps, **options)
    return history.loss, history.logs["test"].diff(dim=1)[:, 0] if log else None


def measured_steps(net, x, y, m, eta, *, seeds, share, first, most):
    """Steps until the loss is at most `share` of the first, int64 (R,); `most` where it is not after `most` steps.

    The trainings have `first` steps, and twice as many again as long as one of them is too short.
    """
    steps = min(first, most)
    while True:
        loss, _ = train(net, x, y, m, eta, steps, seeds=seeds)
        below = loss <= share * loss[:, :1]
        if steps == most or bool(below.any(1).all()):
            return torch.where(below.any(1), below.int().argmax(1), most)
        steps = min(2 * steps, most)


def predicted_loss(gram, residual, eta, steps):
    """|r(k)|^2 / 2 of r(k + 1) = (I - eta K) r(k), k = 0..steps, (R, steps + 1).

    gram: K (n, n), or (R, n, n); residual: r(0) = y - u(0), (R, n); eta: one step size, or (R,).
    Source: Arora et al. 2019, eq. (8), with the net's own outputs at the start.
    """
    powers, squares = _spectrum(gram, residual, eta)
    curve, current = [], squares
    for _ in range(steps + 1):
        curve.append(current.sum(-1) / 2)
        current = current * powers
    return torch.stack(curve, -1)


def predicted_steps(gram, residual, eta, share, most=MOST):
    """First k at which `predicted_loss` is at most `share` of the first, int64 (R,); `most` where it is not by then.

    Bisection: needs eta lambda_max <= 2, at which the loss does not rise. Raises ParameterError beyond.
    """
    powers, squares = _spectrum(gram, residual, eta)
    if not bool((powers <= 1 + 1e-9).all()):
        raise ParameterError("the step size exceeds 2 / lambda_max: the predicted loss grows")
    target = share * squares.sum(-1)
    low, high = (torch.full(target.shape, value, dtype=torch.int64, device=target.device) for value in (-1, most))
    for _ in range(int(most).bit_length()):
        middle = (low + high) // 2
        done = (powers ** middle.unsqueeze(-1) * squares).sum(-1) <= target
        low, high = torch.where(done, low, middle), torch.where(done, middle, high)
    return high


def predicted_change(gram, cross, residual, eta, steps):
    """K(x', X) K^-1 (I - (I - eta K)^steps) r(0): the change of the outputs at new inputs x', (R, n').

    gram: (n, n) or (R, n, n), positive definite; cross: K(x', X), (n', n) or (R, n', n); the rest as `predicted_loss`.
    Source: Arora et al. 2019, Section 5, and every paper's limit; the formula at a finite number of steps is standard.
    """
    values, vectors = torch.linalg.eigh(gram)
    factors = 1 - _eta(eta, values) * values
    weights = (1 - factors**steps) / values * (vectors.mT @ residual.unsqueeze(-1)).squeeze(-1)
    return (cross @ (vectors @ weights.unsqueeze(-1))).squeeze(-1)


def _spectrum(gram, residual, eta):
    """(1 - eta lambda_i)^2 and (v_i . r)^2, (R, n)."""
    values, vectors = torch.linalg.eigh(gram)
    squares = (vectors.mT @ residual.unsqueeze(-1)).squeeze(-1).square()
    return (1 - _eta(eta, values) * values).square().expand_as(squares), squares


def _eta(eta, values):
    return torch.as_tensor(eta, dtype=values.dtype, device=values.device).unsqueeze(-1)


def largest(gram):
    """lambda_max of symmetric matrices (..., n, n), (...)."""
    return torch.linalg.eigvalsh(gram)[..., -1]


def condition(gram):
    """lambda_max / lambda_min of a positive definite matrix (n, n)."""
    values = torch.linalg.eigvalsh(gram)
    return float(values[-1] / values[0])


def best_rate(gram):
    """1 - q = 2 lambda_min / (lambda_min + lambda_max), where q is the least factor by which a step shrinks any error.

    It belongs to the step size 2 / (lambda_min + lambda_max) and does not depend on the scale of the kernel (n, n).
    """
    return 2 / (1 + condition(gram))


def mixed_labels(y, shares, seed):
    """Labels (len(shares), n): those of y with a share of them replaced by fair signs; nested, since drawn once."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(y), generator=generator)
    signs = 2 * torch.randint(0, 2, (len(y),), generator=generator).to(y) - 1
    rows = y.repeat(len(shares), 1)
    for row, share in zip(rows, shares, strict=True):
        chosen = order[: round(share * len(y))]
        row[chosen] = signs[chosen]
    return rows


def deviation(loss, predicted, share):
    """Largest |log(loss / predicted)| over the steps at which `predicted` exceeds `share` of its first value, (R,).

    loss, predicted: (R, steps + 1). NaN for a run that diverged on the way.
    """
    kept = predicted > share * predicted[:, :1]
    return torch.where(kept, (loss / predicted).log().abs(), 0).amax(1)


def r_squared(measured, predicted):
    """1 - sum (measured - predicted)^2 / sum (measured - mean)^2 over the last axis."""
    rest = (measured - predicted).square().sum(-1)
    return 1 - rest / (measured - measured.mean(-1, keepdim=True)).square().sum(-1)


def compare(net, x, y, x_test, m, *, share, level, seeds):
    """Training at the step size share / lambda_max of the limit kernel, beside what kernels predict.

    x, x_test: inputs (n, p), (n', p); y: labels (n,); the steps are those after which the limit kernel predicts at most
    `level` of the first loss for every seed. Returns {name: float64 (R, ..)}: loss, and its predictions `infinite` and
    `finite` (by the kernel at initialization), (R, steps + 1); their deviations and the R^2 of the predicted changes of
    the test outputs, "deviation infinite", "r2 finite" and so on, (R,).
    """
    n, labels, every = len(x), y.double(), net.coordinates(torch.cat([x, x_test]))
    outputs, kernels = starts(net, every, m, seeds)
    limit, residual = net.limit(every, m), labels - outputs[:, :n]
    eta = share / largest(limit[:n, :n])
    steps = int(predicted_steps(limit[:n, :n], residual, eta, level).max())
    loss, change = train(net, every[:n], y, m, eta, steps, seeds=seeds, x_test=every[n:])
    found = {"loss": loss}
    for name, kernel in (("infinite", limit), ("finite", kernels)):
        gram, cross = kernel[..., :n, :n], kernel[..., n:, :n]
        found[name] = predicted_loss(gram, residual, eta, steps).cpu()
        found[f"deviation {name}"] = deviation(loss, found[name], level)
        found[f"r2 {name}"] = r_squared(change, predicted_change(gram, cross, residual, eta, steps).cpu())
    return found


def both_steps(net, x, labels, m, *, share, level, seeds, most):
    """Steps to `level` of the first loss by the limit kernel, by every run's own, and measured, float64 (V, 3, R).

    Step sizes are share * 2 / lambda_max: of the limit kernel in its prediction, else of the run's own kernel at
    initialization, so that each goes at a share of its own largest stable step. labels: (V, n); most: where counting
    ends.
    """
    x, rows = net.coordinates(x), []
    outputs, kernels = starts(net, x, m, seeds)
    pairs = [(kernel, 2 * share / largest(kernel)) for kernel in (net.limit(x, m), kernels)]
    for y in labels.double():
        guesses = [predicted_steps(kernel, y - outputs, eta, level).clamp(max=most) for kernel, eta in pairs]
        first = int(1.5 * torch.stack(guesses).max()) + 5
        found = measured_steps(net, x, y, m, pairs[1][1], seeds=seeds, share=level, first=first, most=most)
        rows.append(torch.stack([*guesses, found.to(guesses[0])]))
    return torch.stack(rows).double().cpu()


def distances(net, x, m, seeds):
    """|K_m - K|_F / |K|_F of the kernels at initialization from the limit kernel, (R,)."""
    limit = net.limit(x, m)
    return torch.stack([(net.start(x, m, seed)[1] - limit).norm() / limit.norm() for seed in seeds]).cpu()
