"""The gated nets, their training and their kernel against autograd, brute force and each other."""

import itertools

import numpy as np
import pytest
import torch

from overparam.errors import ParameterError
from overparam.models.gated import GatedRuns, TabulatedRuns, pack, unpack
from overparam.norms import spectral_norm
from overparam.theory.finite_width_kernels import (
    full_tangent_kernel,
    initial_lambda_max,
    kernel_product,
    lambda_max,
)
from overparam.training import Checkpoint, Epochs, RegressionLoss, gradient_descent

D, M, DEPTH, OUT, N = 5, 24, 3, 2, 6
KINDS = ["grelu", "relu"]


def unit_inputs(n=N, d=D, seed=0):
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def targets(n=N, d=OUT, seed=9):
    return 3 * torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def runs_of(kind, seeds=(0,), m=M, L=DEPTH, d_y=OUT, **options):
    return GatedRuns(kind, D, m, L, d_y, seeds=list(seeds), **options)


def psi_of(net, run=0):
    like = torch.empty(0, dtype=torch.float64)
    return [net.psi(run, k, like) for k in range(1, net.L + 1)]


def by_hand(net, W, x, run=0):
    """The net as the paper writes it, column by column, for autograd."""
    B, C = net.outer(run, x)
    Psi, rows = psi_of(net, run), []
    for column in x:
        a = z = torch.relu(C @ column)
        for k in range(net.L):
            a, z = W[k] @ a, torch.relu(Psi[k] @ z)
            a = a * ((z if net.kind == "grelu" else a) > 0)
        rows.append(B @ a)
    return torch.stack(rows)


def leaves_of(net, x, run=0):
    return [W.clone().requires_grad_() for W in net.descent(x, run).W]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("form", ["halfsum", "halfmean"])
def test_training_is_autograds_gradient_descent(kind, batched, form):
    x, y, etas, steps = unit_inputs(), targets(), [2e-4, 5e-4, 2e-4], 6
    net = runs_of(kind, (4, 4, 7))

    def gradient(run):
        _, derivative = RegressionLoss(y, form)(run.forward())
        return torch.cat([g.flatten(-2) for g in run.gradients(derivative)], -1)

    log = {"change": lambda run: run.change_norms(200)[..., 0], "gradient": gradient}
    schedule = {"change": [0, steps], "gradient": range(steps)}
    history = gradient_descent(
        net, x, RegressionLoss(y, form), etas, steps, log=log, at=schedule, batched=batched
    )
    for run, eta in enumerate(etas):
        start = leaves_of(net, x, run)
        W, losses, gradients = start, [], []
        for _ in range(steps + 1):
            loss = (by_hand(net, W, x, run) - y).square().sum() / (
                2 if form == "halfsum" else 2 * N
            )
            losses.append(loss.item())
            gradients.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, W)]))
            flat = gradients[-1].split(M * M)
            moved, W = (
                W,
                [
                    (w - eta * g.view(M, M)).detach().requires_grad_()
                    for w, g in zip(W, flat, strict=True)
                ],
            )
        np.testing.assert_allclose(history.loss[run], losses, rtol=1e-11)
        torch.testing.assert_close(history.logs["gradient"][run], torch.stack(gradients[:steps]))
        distances = [
            torch.linalg.matrix_norm(w - w0, 2).item() for w, w0 in zip(moved, start, strict=True)
        ]
        np.testing.assert_allclose(history.logs["change"][run, 1], distances, rtol=1e-6)
        assert (history.logs["change"][run, 0] == 0).all()


def test_draws_have_their_variances_and_are_independent():
    net = GatedRuns("grelu", 50, 400, 2, 3, seeds=[0])
    run, Psi = net.descent(torch.zeros(1, 50, dtype=torch.float64), 0), psi_of(net)
    for matrix, variance in (
        (run.B, 2 / 3),
        (run.C, 2 / 50),
        *((W, 2 / 400) for W in (*run.W, *Psi)),
    ):
        assert matrix.square().mean().item() == pytest.approx(
            variance, rel=5 * (2 / matrix.numel()) ** 0.5
        )
    matrices = [*run.W, *Psi]
    for a, b in itertools.combinations(matrices, 2):
        assert abs((a * b).sum() / (a.norm() * b.norm())) < 5 / 400


def test_psi_of_low_rank_and_psi_that_is_given():
    net = GatedRuns("grelu", D, 200, 1, seeds=[0], psi_rank=50)
    h = torch.rand(3, 200, dtype=torch.float64)
    U, V = (net._drawn(part, 0, 1, h) for part in "UV")
    assert (U @ V).square().mean().item() == pytest.approx(2 / 200, rel=0.05)
    expected = h @ (U @ V).T > 0
    assert torch.equal(net.gates(0, h)[0] > 0, expected)
    for psi in ((U, V), U @ V, (U @ V)[None]):
        assert torch.equal(
            runs_of("grelu", m=200, L=1).with_psi([psi]).gates(0, h)[0] > 0, expected
        )


def test_a_relu_net_with_its_pattern_frozen_has_the_same_outputs():
    """Section 4.1: Psi_k <- W_k, at any time of the training."""
    net, x, loss = runs_of("relu"), unit_inputs(), RegressionLoss(targets())
    run = net.descent(x, 0)
    for _ in range(5):
        run.descend(loss(run.forward())[1] * 1e-3)
    frozen = net.twin("grelu").with_weights(run.W).with_psi(run.W).descent(x, 0)
    assert torch.equal(frozen.forward(), run.forward())
    assert frozen.W[0].data_ptr() != run.W[0].data_ptr()
    # Elsewhere as well, and no more after a step.
    other = unit_inputs(4, seed=5)
    assert torch.equal(frozen.predict(other), run.predict(other))


@pytest.mark.parametrize("kind", KINDS)
def test_prediction_gates_and_dead_units_at_other_inputs(kind):
    net, other = runs_of(kind, (0, 1)), unit_inputs(4, seed=5)
    both = net.descent(unit_inputs(), None)
    for r in range(2):
        alone, there = net.descent(unit_inputs(), r), net.descent(other, r)
        torch.testing.assert_close(alone.predict(other), there.forward())
        torch.testing.assert_close(both.predict(other)[r], there.forward())
        assert all(
            torch.equal(a.bool(), b.bool())
            for a, b in zip(alone.gates_at(other), there.gates, strict=True)
        )
        assert all(
            torch.equal(a[r].bool(), b.bool())
            for a, b in zip(both.gates_at(other), there.gates, strict=True)
        )
        dead = [1 - (gate.bool().sum(0) > 0).double().mean().item() for gate in there.gates]
        assert there.dead().tolist() == pytest.approx(dead)


@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_is_that_of_autograds_jacobian(kind):
    net, x = runs_of(kind, (0, 1)), unit_inputs()
    for r in range(2):
        leaves = leaves_of(net, x, r)
        J = torch.autograd.functional.jacobian(lambda *W, r=r: by_hand(net, W, x, r), tuple(leaves))
        rows = torch.cat([part.reshape(N * OUT, -1) for part in J], 1)
        run, v = net.descent(x, r), targets(seed=2)
        torch.testing.assert_close(full_tangent_kernel(run), rows @ rows.T)
        torch.testing.assert_close(kernel_product(run, v).flatten(), rows @ (rows.T @ v.flatten()))
        top = torch.linalg.eigvalsh(rows @ rows.T)[-1]
        assert lambda_max(run, 300).item() == pytest.approx(top.item(), rel=1e-6)
        assert initial_lambda_max(net, x, 300)[r].item() == pytest.approx(top.item(), rel=1e-6)
    many, v = (
        net.descent(unit_inputs(40), 0),
        targets(40),
    )  # n > m: the products associate the other way
    torch.testing.assert_close(
        kernel_product(many, v).flatten(), full_tangent_kernel(many) @ v.flatten()
    )
    together = net.descent(x, None)
    torch.testing.assert_close(
        full_tangent_kernel(together)[1], full_tangent_kernel(net.descent(x, 1))
    )
    torch.testing.assert_close(lambda_max(together, 20), initial_lambda_max(net, x, 20))
    with pytest.raises(ParameterError, match="rows, more than 11"):
        full_tangent_kernel(together, largest=11)


def test_packed_bits_come_back():
    for m in (8, 13):
        bits = torch.rand(3, 5, m) > 0.5
        assert torch.equal(unpack(pack(bits), m), bits)
        assert torch.equal(
            pack(bits), torch.from_numpy(np.packbits(bits.numpy(), axis=-1, bitorder="little"))
        )
        assert torch.equal(unpack(pack(bits.double()), m, torch.float64), bits.double())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batched", [False, True])
def test_batches_by_row_numbers_are_autograds_stochastic_descent(kind, batched):
    x, y, eta, epochs = unit_inputs(10), targets(8), 4e-4, 3
    net = TabulatedRuns(kind, x, M, DEPTH, OUT, seeds=[0, 1])
    train, test = net.rows(0, 8), net.rows(8)
    log = {
        "test": lambda run: run.predict(test),
        "gates": lambda run: torch.stack(run.gates_at(train), -3),
    }
    loss = RegressionLoss(y)
    options = {"batches": Epochs(3, seed=5), "log": log, "batched": batched}
    history = gradient_descent(net, train, loss, eta, epochs, **options)
    for r in range(2):
        W, losses = leaves_of(runs_of(kind, (0, 1)), x, r), []
        for epoch in range(epochs + 1):
            losses.append((by_hand(net, W, x[:8], r) - y).square().sum().item() / 16)
            order = torch.randperm(
                8, generator=torch.Generator().manual_seed(5 * 1_000_003 + epoch)
            )
            for index in order.split(3) if epoch < epochs else ():
                value = (by_hand(net, W, x[index], r) - y[index]).square().sum() / (2 * len(index))
                grads = torch.autograd.grad(value, W)
                W = [(w - eta * g).detach().requires_grad_() for w, g in zip(W, grads, strict=True)]
        np.testing.assert_allclose(history.loss[r], losses, rtol=1e-11)
        expected = by_hand(net, W, x[8:], r).detach().numpy()
        np.testing.assert_allclose(history.logs["test"][r, 0], expected, rtol=1e-9)
    if kind == "grelu":
        plain = runs_of(kind, (0, 1)).descent(x[:8], 1).gates
        np.testing.assert_array_equal(history.logs["gates"][1, 0], torch.stack(plain))


def test_a_loss_of_runs_with_targets_of_their_own():
    y, u = torch.stack([targets(), 1e6 * targets()]), targets(seed=1)
    loss = RegressionLoss(y, runs_axis=True)
    value, derivative = loss(u.expand(2, *u.shape))
    assert value[0].item() == pytest.approx(((u - y[0]) ** 2).sum().item() / (2 * N))
    torch.testing.assert_close(derivative[0], (u - y[0]) / N)
    assert value[1].isnan()
    assert derivative[1].isnan().all()
    torch.testing.assert_close(
        loss.rows(torch.tensor([1, 4])).select(0)(u[[1, 4]])[1], (u - y[0])[[1, 4]] / 2
    )


def test_spectral_norm_of_matrices_and_of_zero():
    matrices = torch.randn(2, 9, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(spectral_norm(matrices, 500), torch.linalg.matrix_norm(matrices, 2))
    assert spectral_norm(torch.zeros(3, 3)) == 0


def test_a_checkpoint_of_other_gates_or_inputs_is_refused(tmp_path, caplog):
    """x, targets, weights and step size are the same.

    Only the kind, Psi or the table of inputs differ.
    """
    x, loss = unit_inputs(), RegressionLoss(targets())
    table = [TabulatedRuns("relu", inputs, M, DEPTH, OUT, seeds=[0]) for inputs in (x, 2 * x)]
    plain = runs_of("grelu")
    kinds = [(plain, x), (runs_of("relu"), x), (plain.with_psi(plain.descent(x, 0).W), x)]
    for nets, train in (
        (kinds, gradient_descent),
        ([(net, net.rows()) for net in table], _one_epoch),
    ):
        losses = [
            train(net, rows, loss, 1e-3, 2, checkpoint=Checkpoint(tmp_path / "same")).loss
            for net, rows in nets
        ]
        assert not any(torch.equal(a, b) for a, b in itertools.combinations(losses, 2))
    assert len(caplog.records) == len(kinds) + len(table) - 1


def _one_epoch(*args, **options):
    return gradient_descent(*args, **options, batches=Epochs(3, seed=0))
