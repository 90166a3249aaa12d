"""Hand-written descents against autograd, exact reductions against plain weights, the run axis
against single runs.
"""

import pytest
import torch

from overparam.errors import ParameterError, TrainingDiverged
from overparam.models.leaky import LeakyMLP
from overparam.models.residual import ResidualReLU
from overparam.models.two_layer import TwoLayerReLU
from overparam.theory.finite_width_kernels import tangent_kernel
from overparam.training import (
    Checkpoint,
    SquaredLoss,
    fast_products,
    gradient_descent,
    halving_step,
    reaches,
)


def sphere(n, d, seed=0):
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def signs(n, seed=0):
    return (
        2.0 * torch.randint(0, 2, (n,), generator=torch.Generator().manual_seed(seed)).double() - 1
    )


def autograd_losses(parameters, forward, y, scale, eta, steps):
    losses = []
    for k in range(steps + 1):
        loss = scale * (forward(*parameters) - y).square().sum()
        losses.append(loss.item())
        if k == steps:
            return torch.tensor(losses, dtype=torch.float64), parameters
        grads = torch.autograd.grad(loss, parameters)
        parameters = [
            (p - eta * g).detach().requires_grad_() for p, g in zip(parameters, grads, strict=True)
        ]


# n < 2 rank trains the pre-activations (Gram), otherwise the weights in the span of the data
TWO_LAYER = pytest.mark.parametrize(
    ("n", "d", "form"), [(12, 10, "GramDescent"), (30, 6, "SpanDescent")]
)


@TWO_LAYER
@pytest.mark.parametrize("batched", [False, True])
def test_two_layer_descent_is_autograds(n, d, form, batched):
    x, y, m, eta, steps = sphere(n, d), signs(n), 33, 0.02, 25
    net = TwoLayerReLU(d, m, 0.5, seeds=[4, 0, 4], dtype=torch.float64)
    new = sphere(5, d, seed=9)
    log = {
        "moved": lambda s: s.weight_change().square().sum((-2, -1)).sqrt(),
        "flipped": lambda s: s.flipped(),
        "elsewhere": lambda s: s.predict(new),
        "gram": tangent_kernel,
    }
    loss = SquaredLoss(y, "halfsum")
    history = gradient_descent(net, x, loss, eta, steps, log=log, at=[0, 3, steps], batched=batched)
    assert type(net.descent(x, 0)).__name__ == form
    for run, draw in enumerate([1, 0, 1]):
        start, a = net.W[draw], net.a[draw]
        forward = lambda W, a=a: torch.relu(x @ W.T) @ a / m**0.5  # noqa: E731
        losses, (W,) = autograd_losses(
            [start.clone().requires_grad_()], forward, y, 0.5, eta, steps
        )
        assert torch.allclose(history.loss[run], losses, rtol=1e-11)
        assert torch.allclose(
            history.logs["moved"][run, -1], (W - start).norm().double(), rtol=1e-9
        )
        patterns = (x @ W.T > 0) != (x @ start.T > 0)
        assert history.logs["flipped"][run, -1] == patterns.double().mean()
        assert torch.allclose(
            history.logs["elsewhere"][run, -1],
            torch.relu(new @ W.T) @ a / m**0.5,
            rtol=1e-9,
            atol=1e-12,
        )
        active = (x @ W.T >= 0).double()
        assert torch.allclose(
            history.logs["gram"][run, -1], (x @ x.T) * (active @ active.T) / m, atol=1e-14
        )


@pytest.mark.parametrize("alpha", [0.0, -1.0, 0.05, -2.0])
@pytest.mark.parametrize("batched", [False, True])
def test_leaky_descent_is_autograds(alpha, batched):
    p, m, d, L, n, eta, steps = 4, 9, 3, 3, 11, 0.02, 8
    x = torch.stack([sphere(n, p, seed) for seed in (0, 1)])
    y = torch.stack([sphere(n, d, seed) for seed in (2, 3)])
    net = LeakyMLP(p, m, d, L, alphas=[alpha, 0.3], seeds=[5, 0], dtype=torch.float64)
    log = {f"W{l}": (lambda s, l=l: s.weights[l]) for l in range(L)}
    loss = SquaredLoss(y, "mean", runs_axis=True)
    history = gradient_descent(net, x, loss, [eta, 2 * eta], steps, log=log, batched=batched)
    for run, draw in enumerate([1, 0]):
        positive, negative = net.slopes[run]

        def forward(*weights, run=run, draw=draw, positive=positive, negative=negative):
            h = x[run] @ net.A[draw].T
            for W in weights:
                g = h @ W.T
                h = g * torch.where(g > 0, positive, negative)
            return h @ net.B[draw].T

        start = [W.clone().requires_grad_() for W in net.W[draw]]
        losses, weights = autograd_losses(
            start, forward, y[run], 1 / (n * d), eta * (1 + run), steps
        )
        assert torch.allclose(history.loss[run], losses, rtol=1e-11)
        for l, W in enumerate(weights):
            assert torch.allclose(history.logs[f"W{l}"][run, -1], W, rtol=0, atol=1e-12)


def test_threads_do_not_change_the_numbers():
    x, y = sphere(110, 5), signs(110)[:, None]
    before, losses = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            net = LeakyMLP(5, 70, 1, 2, alphas=[0.0, -1.0, 0.1], seeds=[0, 0, 1])
            losses.append(
                gradient_descent(net, x.float(), SquaredLoss(y.float(), "mean"), 0.01, 20).loss
            )
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*losses)


@pytest.mark.parametrize("batched", [False, True])
def test_divergence_is_an_error_that_names_run_and_step(batched):
    x, y = sphere(20, 4), signs(20)
    net = TwoLayerReLU(4, 16, 1.0, seeds=[0, 1], dtype=torch.float64)
    with pytest.raises(
        TrainingDiverged, match=r"run 1: the loss is not finite at step \d+; lower eta"
    ):
        gradient_descent(net, x, SquaredLoss(y, "halfsum"), [0.01, 1e150], 300, batched=batched)
    history = gradient_descent(
        net,
        x,
        SquaredLoss(y, "halfsum"),
        [0.01, 1e150],
        300,
        batched=batched,
        allow_divergence=True,
    )
    assert history.diverged.tolist() == [False, True]


def test_bad_settings_are_refused():
    net = TwoLayerReLU(4, 16, 1.0, seeds=[0], dtype=torch.float64)
    with pytest.raises(ParameterError, match="steps"):
        gradient_descent(net, sphere(5, 4), SquaredLoss(signs(5), "sum"), 0.1, 0)
    with pytest.raises(ParameterError, match="another name"):
        gradient_descent(net, sphere(5, 4), SquaredLoss(signs(5), "sum"), 0.1, 3, log={"loss": len})
    with pytest.raises(ParameterError, match="at must lie"):
        gradient_descent(net, sphere(5, 4), SquaredLoss(signs(5), "sum"), 0.1, 3, at=[4])
    with pytest.raises(ParameterError, match="loss form"):
        SquaredLoss(signs(5), "median")


class Counted(SquaredLoss):
    """Counts how often it is looked at."""

    def __init__(self, y):
        super().__init__(y)
        self.looks = [0]

    def __call__(self, u):
        self.looks[0] += 1
        return super().__call__(u)


GOAL, STEPS = 0.1, 400
ETAS = [0.3, 0.001, 0.05, 1e6]  # soon there, never, later there, diverging


@pytest.mark.parametrize("batched", [False, True])
def test_a_goal_is_reached_where_the_whole_training_has_it(batched):
    x, loss = sphere(6, 4), SquaredLoss(signs(6))
    net = TwoLayerReLU(4, 200, 1.0, seeds=[0, 1, 2, 3], dtype=torch.float64)
    history = gradient_descent(net, x, loss, ETAS, STEPS, batched=batched, allow_divergence=True)
    whole = (history.loss <= GOAL).any(1)
    assert whole.tolist() == [True, False, True, False]
    assert reaches(GOAL, net, x, loss, ETAS, STEPS, batched=batched).equal(whole)


@pytest.mark.parametrize("batched", [False, True])
def test_a_training_ends_at_its_goal(batched):
    x, loss = sphere(6, 4), Counted(signs(6))
    net = TwoLayerReLU(4, 200, 1.0, seeds=[0, 0, 0], dtype=torch.float64)
    etas = [0.3, 0.05, 1e6]
    history = gradient_descent(net, x, SquaredLoss(signs(6)), etas, STEPS, allow_divergence=True)
    below = (history.loss <= GOAL).int()
    needed = [int(row.argmax()) + 1 for row in below[:2]]
    finite = int(history.loss[2].isfinite().sum()) + 1
    assert reaches(GOAL, net, x, loss, etas, STEPS, batched=batched).tolist() == [True, True, False]
    assert loss.looks[0] == (max(*needed, finite) if batched else sum(needed) + finite)


def test_a_training_to_another_goal_is_another_training(tmp_path):
    x, loss = sphere(6, 4), SquaredLoss(signs(6))
    net = TwoLayerReLU(4, 200, 1.0, seeds=[0], dtype=torch.float64)
    answers = []
    for goal in (1.0, 1e-3, 1.0):
        checkpoint = Checkpoint(tmp_path / "net", finished=tmp_path / "runs")
        answers += reaches(goal, net, x, loss, 0.05, 60, checkpoint=checkpoint).tolist()
    assert answers == [True, False, True]
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_a_goal_that_is_no_loss_is_refused():
    x, net = sphere(6, 4), TwoLayerReLU(4, 20, 1.0, seeds=[0], dtype=torch.float64)
    with pytest.raises(ParameterError, match="goal must be a finite loss, not nan"):
        reaches(float("nan"), net, x, SquaredLoss(signs(6)), 0.1, 5)


def test_squared_loss_is_half_the_sum_where_no_form_is_given():
    u, y = torch.tensor([[3.0, -1.0], [0.0, 2.0]]), torch.tensor([1.0, -1.0])
    value, derivative = SquaredLoss(y)(u.clone())
    assert value.tolist() == [2.0, 5.0]
    assert torch.equal(derivative, u - y)


@pytest.mark.parametrize("form", ["sum", "halfsum", "mean"])
def test_loss_derivative_is_autograds(form):
    u = torch.randn(
        3, 7, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True
    )
    y = torch.randn(7, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    value, derivative = SquaredLoss(y, form)(u.detach().clone())
    scale = {"sum": 1, "halfsum": 0.5, "mean": 1 / 14}[form]
    expected = scale * (u - y).square().sum((1, 2))
    assert torch.allclose(value, expected)
    assert torch.allclose(derivative, torch.autograd.grad(expected.sum(), u)[0])


def test_halving_step():
    assert halving_step(torch.tensor([[8.0, 6.0, 4.0, 1.0], [8.0, 7.0, 6.0, 5.0]])).tolist() == [
        2,
        3,
    ]


@pytest.mark.parametrize("theta", [None, 0.25, 1.0])
def test_layer_products_are_the_explicit_ones(theta):
    """f = v^T H_2^{L+1} x_1.

    And the power iteration finds the largest singular value of the explicit product.
    """
    net, x = ResidualReLU(4, 10, 5, theta, seed=0), sphere(3, 4)
    activations, patterns = net.forward(x)
    assert torch.allclose(net.product(patterns, 2, 6, activations[0]), activations[-1], atol=1e-13)
    norms = net.product_norm(patterns, 2, 5, seed=0, iterations=400)
    for i in range(3):
        H = torch.eye(10, dtype=torch.float64)
        for l in range(1, 5):
            factor = patterns[l][i].double()[:, None] * net.W[l].T
            H = (
                factor if theta is None else torch.eye(10, dtype=torch.float64) + theta * factor
            ) @ H
        a, b = torch.randn(2, 10, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        one = [p[i : i + 1] for p in patterns]
        assert torch.allclose(net.product(one, 2, 5, a[None])[0], H @ a, atol=1e-12)
        assert torch.allclose(net.product_transposed(one, 2, 5, b[None])[0], H.T @ b, atol=1e-12)
        assert norms[i] == pytest.approx(torch.linalg.matrix_norm(H, 2).item(), rel=1e-6)


def test_fast_products_are_as_exact_as_float32():
    """Whichever kernels multiply after the switch, a product of 784-long rows keeps float32
    accuracy.
    """
    before = torch.backends.mkldnn.matmul.fp32_precision
    try:
        fast_products.cache_clear()
        switched = fast_products()
        assert (torch.backends.mkldnn.matmul.fp32_precision == "bf16") == switched
        a, b = (torch.randn(300, 784, generator=torch.Generator().manual_seed(s)) for s in (0, 1))
        exact = a.double() @ b.double().T
        assert ((a @ b.T).double() - exact).norm() / exact.norm() < 1e-6
    finally:
        torch.backends.mkldnn.matmul.fp32_precision = before
        fast_products.cache_clear()
