"""Everything that an open run can do, for every net, against autograd through the net by hand."""

import pytest
import torch

from overparam.models.deep_relu import ReLURuns
from overparam.models.gated import GatedRuns, TabulatedRuns
from overparam.models.leaky import LeakyMLP
from overparam.models.residual import ResidualRuns
from overparam.models.two_layer import TwoLayerReLU
from overparam.theory.finite_width_kernels import (
    full_tangent_kernel,
    jacobians,
    layer_kernels,
    tangent_kernel,
)
from overparam.training import SquaredLoss

N, P, M, D, L, SEEDS = 5, 4, 8, 2, 3, [3, 8]
DOUBLE = {"dtype": torch.float64}
LEAKY = {"alphas": [-0.5, 0.2], "seeds": SEEDS, **DOUBLE}


def normal(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


X, ELSEWHERE = normal(N, P, seed=1), normal(3, P, seed=2)
MANY = normal(2 * P + 1, P, seed=3)  # so many that the two-layer net trains in the inputs' span
TABLE = torch.cat([X, ELSEWHERE])


# Each net with its inputs, and itself by hand: (an open run, inputs) -> (W, function of W).
def two_layer(run, x):
    m, a = M, run.a

    def outputs(W):
        return (a.unsqueeze(-2) @ torch.relu(W[0] @ x.T)).squeeze(-2) / m**0.5

    return [run.W0], outputs


def leaky(run, x):
    slopes = run.slopes[..., None, None, :]

    def outputs(W):
        h = x if run.A is None else x @ run.A.mT
        for l, layer in enumerate(W):
            g = h @ layer.mT
            if run.biases:
                g = g + run.biases[l].unsqueeze(-2)
            h = torch.where(g > 0, slopes[..., 0] * g, slopes[..., 1] * g)
        return h @ run.B.mT

    return run.weights, outputs


def deep(run, x):
    net = run.start
    first = net.W[0]
    if net.L == 1:  # the smallest W_1 that gives the pre-activations that were drawn
        first = (torch.linalg.pinv(run.h0) @ run.first).mT

    def outputs(W):
        h = torch.relu(x @ net.A.mT)
        for l, layer in enumerate(W, 1):
            g = h @ layer.mT
            skips = net.tau is not None and l < net.L
            h = torch.relu(h + net.tau * g if skips else g)
        return h @ net.B.mT

    return [first, *(net.W[l] for l in range(1, net.L))], outputs


def residual(run, x):
    net = run.net

    def outputs(W):
        h = torch.relu(x @ W[0].mT)
        for layer in W[1:-1]:
            update = torch.relu(h @ layer.mT)
            h = update if net.theta is None else h + net.theta * update
        return torch.relu(h @ W[-1].mT) @ net.v

    return [W.mT for W in net.W], outputs


def gated(run, x):
    x = TABLE[x[:, 0]] if x.dtype == torch.int64 else x

    def outputs(W):
        h = torch.relu(x @ run.C.mT)
        gates = run.net.gates(run.run, h) if run.kind == "grelu" else None
        for k, layer in enumerate(W):
            g = h @ layer.mT
            h = torch.relu(g) if gates is None else g * gates[k]
        return h @ run.B.mT

    return run.W, outputs


def tabulated(kind):
    return TabulatedRuns(kind, TABLE, M, L, D, seeds=SEEDS)


NETS = {
    "two-layer, few": (two_layer, X, lambda: TwoLayerReLU(P, M, 0.7, seeds=SEEDS, **DOUBLE)),
    "two-layer, many": (two_layer, MANY, lambda: TwoLayerReLU(P, M, 0.7, seeds=SEEDS, **DOUBLE)),
    "leaky": (leaky, X, lambda: LeakyMLP(P, M, D, L, **LEAKY)),
    "leaky, biases": (leaky, X, lambda: LeakyMLP(P, M, D, L, biases=True, **LEAKY)),
    "leaky, W_1": (
        leaky,
        normal(N, M, seed=4),
        lambda: LeakyMLP(P, M, D, L, keep_W1=True, **LEAKY | {"seeds": [3, 3]}),
    ),
    "deep": (deep, X, lambda: ReLURuns(P, M, D, L, seeds=SEEDS)),
    "deep, one layer": (deep, X, lambda: ReLURuns(P, M, D, 1, seeds=SEEDS)),
    "deep, residual": (deep, X, lambda: ReLURuns(P, M, D, L, seeds=SEEDS, tau=0.3)),
    "residual": (residual, X, lambda: ResidualRuns(P, M, L, 0.4, seeds=SEEDS)),
    "plain": (residual, X, lambda: ResidualRuns(P, M, L, None, seeds=SEEDS)),
    "grelu": (gated, X, lambda: GatedRuns("grelu", P, M, L, D, seeds=SEEDS)),
    "relu": (gated, X, lambda: GatedRuns("relu", P, M, L, D, seeds=SEEDS)),
    "grelu, Psi of low rank": (
        gated,
        X,
        lambda: GatedRuns("grelu", P, M, L, D, seeds=SEEDS, psi_rank=2),
    ),
    "grelu, table": (gated, tabulated("grelu").rows(0, N), lambda: tabulated("grelu")),
    "relu, table": (gated, tabulated("relu").rows(0, N), lambda: tabulated("relu")),
}
SEVERAL_OUTPUTS = [name for name in NETS if NETS[name][0] not in (two_layer, residual)]
PREDICTING = [name for name in NETS if NETS[name][0] is not deep]
each_net = pytest.mark.parametrize("name", NETS)
each_run = pytest.mark.parametrize("run", [0, 1, None])


class Case:
    """An open run, and the same net by hand at its start."""

    def __init__(self, name, run):
        self.by_hand, self.x, made = NETS[name]
        self.opened = made().descent(self.x, run)
        start, self.outputs = self.by_hand(self.opened, self.x)
        self.W = [W.detach().clone().requires_grad_() for W in start]
        self.v = normal(*self.opened.forward().shape, seed=5)

    def gradients(self, value):
        return torch.autograd.grad(value, self.W, retain_graph=True)

    def step(self, eta):
        """A step by both; afterwards W holds the new weights."""
        gradients = self.gradients((self.outputs(self.W) * self.v).sum())
        moved = zip(self.W, gradients, strict=True)
        self.W = [(W - eta * g).detach().requires_grad_() for W, g in moved]
        self.opened.forward()
        self.opened.descend(eta * self.v)


@pytest.fixture
def case(name, run):
    return Case(name, run)


@each_net
@each_run
def test_outputs_and_gradients(case):
    outputs = case.outputs(case.W)
    torch.testing.assert_close(case.opened.forward(), outputs.detach())
    gradients = case.opened.gradients(case.v)
    expected = case.gradients((outputs * case.v).sum())
    torch.testing.assert_close(gradients, list(expected))


@each_net
@each_run
def test_factors_are_those_of_single_gradients(case):
    case.opened.forward()
    factors = case.opened.factors(case.v)
    products = (case.outputs(case.W) * case.v).reshape(case.v.shape)
    inputs = products.ndim - 1 if case.opened.flat else products.ndim - 2
    for i in range(products.shape[inputs]):
        expected = case.gradients(products.select(inputs, i).sum())
        for (h, z), gradient in zip(factors, expected, strict=True):
            outer = z[..., i, :, None] * h[..., i, None, :]
            torch.testing.assert_close(outer.expand_as(gradient), gradient)


@each_net
@each_run
def test_a_step_and_what_it_changes(case):
    start = [W.detach().clone() for W in case.W]
    case.step(0.05)
    case.step(0.02)
    torch.testing.assert_close(case.opened.forward(), case.outputs(case.W).detach())
    norms = case.opened.change_norms(iterations=200)
    changes = [W.detach() - W0 for W, W0 in zip(case.W, start, strict=True)]
    spectral = torch.stack([torch.linalg.matrix_norm(change, 2) for change in changes], -1)
    frobenius = torch.stack([torch.linalg.matrix_norm(change) for change in changes], -1)
    torch.testing.assert_close(norms[..., 1], frobenius)
    torch.testing.assert_close(norms[..., 0], spectral, rtol=1e-3, atol=0)
    assert bool((norms[..., 0] <= spectral * (1 + 1e-9)).all())  # from below


@each_net
@each_run
def test_norms_of_the_gradient_of_a_loss(case):
    case.step(0.05)
    loss = SquaredLoss(torch.ones_like(case.v), "halfsum", runs_axis=case.opened.run is None)
    if case.opened.run is not None:  # a loss of all runs, of which the run takes its own
        y = torch.stack([torch.zeros_like(case.v)] * 2)
        y[case.opened.run] = 1
        loss = SquaredLoss(y, "halfsum", runs_axis=True)
    value = (case.outputs(case.W) - 1).square().sum() / 2
    gradients = case.gradients(value)
    spectral = torch.stack([torch.linalg.matrix_norm(g, 2) for g in gradients], -1)
    frobenius = torch.stack([torch.linalg.matrix_norm(g) for g in gradients], -1)
    expected = torch.stack([spectral, frobenius], -1)
    torch.testing.assert_close(case.opened.gradient_norms(loss), expected)


@each_net
@pytest.mark.parametrize("run", [0, 1])
def test_kernels_are_gram_matrices_of_gradients(case):
    case.step(0.05)
    outputs = case.outputs(case.W)
    last = outputs if case.opened.flat else outputs[..., -1]
    single = [case.gradients(value) for value in last]
    layers = []
    for l in range(len(case.W)):
        rows = torch.stack([gradients[l].flatten() for gradients in single])
        layers.append(rows @ rows.T)
    torch.testing.assert_close(tangent_kernel(case.opened, -1), sum(layers))
    found = layer_kernels(case.opened.factors(case.opened.unit(-1)))
    torch.testing.assert_close(found, torch.stack(layers))


@pytest.mark.parametrize("name", SEVERAL_OUTPUTS)
@pytest.mark.parametrize("run", [1])
def test_the_kernel_of_all_outputs(case):
    values = case.outputs(case.W).flatten()
    rows = []
    for value in values:
        gradients = case.gradients(value)
        rows.append(torch.cat([gradient.flatten() for gradient in gradients]))
    J = torch.stack(rows)
    torch.testing.assert_close(full_tangent_kernel(case.opened), J @ J.T)
    assert [F.shape for F in jacobians(case.opened)] == [(N, D, M)] * len(case.W)


@each_net
def test_all_runs_at_once_are_the_single_runs(name):
    together = Case(name, None)
    together.step(0.05)
    for run in range(2):
        alone = Case(name, run)
        alone.v = together.v[run]
        alone.step(0.05)
        of_all = together.opened.forward()[run]
        torch.testing.assert_close(of_all, alone.opened.forward())
        torch.testing.assert_close(together.opened.change_norms()[run], alone.opened.change_norms())
        for (h, z), (h1, z1) in zip(
            together.opened.factors(together.v), alone.opened.factors(alone.v), strict=True
        ):
            torch.testing.assert_close(z[run], z1)
            torch.testing.assert_close(h[run] if h.ndim == 3 else h, h1)


@pytest.mark.parametrize("name", PREDICTING)
@each_run
def test_predictions_elsewhere(case):
    """The deep net is followed at held-out inputs instead: test_relu_net.py."""
    case.step(0.05)
    x = ELSEWHERE
    if case.x.shape[-1] == M:
        x = normal(3, M, seed=6)
    if case.x.dtype == torch.int64:
        x = torch.arange(N, N + 3).unsqueeze(1)
    _, outputs = case.by_hand(case.opened, x)
    torch.testing.assert_close(case.opened.predict(x), outputs(case.W).detach())
