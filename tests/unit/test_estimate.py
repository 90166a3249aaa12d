"""Estimates from shapes against operations counted by hand, and their growth with the parameters."""

import pytest
import torch

from overparam.models.two_layer import TwoLayerReLU
from overparam.run import estimate
from overparam.training import SquaredLoss, gradient_descent

SWEEP = "arora2019-fig1-convergence-labels"


def on_shapes(work):
    meter = estimate._Meter()
    with meter, estimate._Shapes():
        result = work()
    return result, meter


def test_a_product_is_counted_and_its_memory_is_given_back():
    def work():
        x = torch.randn(300, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        return (x @ x.T).sum()

    _, meter = on_shapes(work)
    assert meter.flops == 2 * 300 * 40 * 300
    assert meter.peak == 8 * (300 * 40 + 300 * 300) + 8
    assert meter.now == 8  # the sum, which is still held


def test_nothing_is_allocated_and_what_reads_numbers_goes_on():
    def work():
        x = torch.ones(1_000_000, 1_000_000)  # 4 TB
        factor, failed = torch.linalg.cholesky_ex(x)
        chosen = x[x[:, 0] > 0]
        assert not failed
        assert (x.isfinite().all(), x[0, 0].item(), factor.cpu().device.type, len(chosen)) == (True, 1, "meta", 10**6)
        return x[:2, :3].numpy()

    result, meter = on_shapes(work)
    assert result.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert meter.peak >= 4e12


def test_training_on_shapes_counts_the_operations_of_training():
    def train():
        draw = torch.Generator().manual_seed(0)
        x = torch.nn.functional.normalize(torch.randn(60, 20, generator=draw, dtype=torch.float64))
        net = TwoLayerReLU(20, 64, 1.0, seeds=[0, 1], dtype=torch.float64)
        gradient_descent(net, x, SquaredLoss(x[:, 0].sign(), "halfsum"), 0.01, 5, batched=True, allow_divergence=True)

    with estimate._Meter() as real:
        train()
    products = 5 * 2 * 2 * (60 * 20 * 64) * 2  # steps, runs, forward and backward, multiply and add
    assert products < on_shapes(train)[1].flops == real.flops < 1.5 * products


def test_operations_grow_with_the_steps_and_memory_with_the_data():
    base = estimate.of(SWEEP, "smoke")
    steps = estimate.workflow.plan(SWEEP, "smoke")[1]["steps"]
    longer = estimate.of(SWEEP, "smoke", {"steps": 3 * steps})
    assert longer.flops / base.flops == pytest.approx(3, rel=0.1)
    assert longer.peak_bytes == pytest.approx(base.peak_bytes, rel=0.2)
    larger = estimate.of(SWEEP, "smoke", {"n": 2 * estimate.workflow.plan(SWEEP, "smoke")[1]["n"]})
    assert larger.peak_bytes > 1.7 * base.peak_bytes


def test_a_sample_of_the_work_counts_as_the_whole():
    """The table of Fig. 2's profile counts one slope nineteen times."""
    alphas = estimate.workflow.plan("guo2024-fig2-rate-vs-alpha", "paper")[1]["alphas"]
    sample = estimate.workflow.plan("guo2024-fig2-rate-vs-alpha", "paper")[2]["sample"]
    assert sample["times"] == len(alphas)
