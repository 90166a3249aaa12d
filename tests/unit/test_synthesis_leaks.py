"""The batched nets and optimizers against torch modules with autograd; the fraction by definition."""

import pytest
import torch
from torch import nn

from overparam.experiments import synthesis_alpha
from overparam.models.leaky import LeakyMLP
from overparam.models.modules import LeakyUnit

N, P, M, L = 12, 5, 6, 3


def drawn(seed):
    return torch.randn(N, P, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def plain_net(seed, d, alpha, biases, batch_norm):
    """The same net as a torch module: A, then layers, then B."""
    draw = LeakyMLP(P, M, d, L, alphas=[0.0], seeds=[seed], dtype=torch.float64)
    layers = [nn.Linear(P, M, bias=False)]
    layers[0].weight = nn.Parameter(draw.A[0], requires_grad=False)
    for W in draw.W[0]:
        linear = nn.Linear(M, M, bias=biases and not batch_norm, dtype=torch.float64)
        linear.weight = nn.Parameter(W.clone())
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)
        layers.append(linear)
        if batch_norm:
            norm = nn.BatchNorm1d(M, eps=synthesis_alpha.FLOOR * 2 / M, momentum=None, dtype=torch.float64)
            nn.init.constant_(norm.weight, (2 / M) ** 0.5)
            norm.bias.requires_grad_(biases)
            layers.append(norm)
        layers.append(LeakyUnit(alpha))
    layers.append(nn.Linear(M, d, bias=False))
    layers[-1].weight = nn.Parameter(draw.B[0], requires_grad=False)
    return nn.Sequential(*layers).double()


def plain_loss(kind, d):
    if kind == "squared":
        return lambda u, y: ((u - y) ** 2).sum() / (2 * len(u))
    if d == 1:
        return lambda u, y: torch.log1p(torch.exp(-u * y)).mean()
    return lambda u, y: nn.functional.cross_entropy(u, y.argmax(-1))


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("kind", ["squared", "logistic"])
@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize(("biases", "batch_norm"), [(False, False), (True, False), (False, True), (True, True)])
def test_training_is_that_of_torchs_layers_and_optimizers(classes, kind, optimizer, biases, batch_norm):
    seeds, alphas, etas, batches = [3, 8], [-1.0, 0.5], [0.02, 0.1], [[0, 3, 5, 7], [1, 2, 4, 11], [8, 6, 9, 10]]
    data = torch.stack([drawn(seed) for seed in seeds])
    y = torch.nn.functional.one_hot(torch.arange(2 * N).reshape(2, N) % classes, classes).double()
    if classes == 1:
        y = torch.where(data[..., :1] > 0, 1.0, -1.0).double()
    net = LeakyMLP(P, M, classes, L, alphas=[0.0] * 2, seeds=seeds, dtype=torch.float64)
    runs = synthesis_alpha.LeakRuns(net, alphas, biases=biases, batch_norm=batch_norm)
    ours, h = synthesis_alpha.Optimizer(runs.weights, etas, optimizer == "Adam"), data @ net.A[net.draw].mT
    for rows in batches:
        _, slope = synthesis_alpha.loss_and_derivative(kind, runs.forward(h[:, rows]), y[:, rows])
        ours.step(runs.gradients(slope))
    found, _ = synthesis_alpha.loss_and_derivative(kind, runs.forward(h), y)
    loss = plain_loss(kind, classes)
    for g, (alpha, eta) in enumerate(zip(alphas, etas, strict=True)):
        for s, seed in enumerate(seeds):
            plain = plain_net(seed, classes, alpha, biases, batch_norm)
            free = [w for w in plain.parameters() if w.requires_grad]
            theirs = (torch.optim.Adam if optimizer == "Adam" else torch.optim.SGD)(free, lr=eta)
            for rows in batches:
                theirs.zero_grad()
                loss(plain(data[s, rows]), y[s, rows]).backward()
                theirs.step()
            assert found[g, s].item() == pytest.approx(loss(plain(data[s]), y[s]).item(), rel=1e-8)


def test_batch_norm_takes_the_moments_of_the_first_rows():
    net = LeakyMLP(P, M, 1, L, alphas=[0.0], seeds=[0], dtype=torch.float64)
    h = drawn(0) @ net.A.mT
    runs = synthesis_alpha.LeakRuns(net, [0.5], batch_norm=True)
    whole = runs.forward(h, 8)
    torch.testing.assert_close(whole[..., :8, :], runs.forward(h[:, :8]))
    torch.testing.assert_close(whole[..., [9], :], runs.forward(h[:, [*range(8), 9]], 8)[..., 8:, :])


def test_without_biases_and_batch_norm_minus_one_is_an_even_function():
    net = LeakyMLP(P, M, 1, L, alphas=[0.0], seeds=[0], dtype=torch.float64)
    h = drawn(0) @ net.A.mT
    for biases, even in ((False, True), (True, False)):
        runs = synthesis_alpha.LeakRuns(net, [-1.0], biases=biases)
        for row in runs.shift or []:
            row += 0.1
        assert torch.equal(runs.forward(h), runs.forward(-h)) == even


def factors():
    return {"a": "xyz", "b": "xyz", "c": "xyz", "d": [1, 2], "e": [1, 2], "f": [1, 2], "g": [1, 2]}


def test_the_fraction_is_balanced_over_every_pair_of_factors():
    cells = synthesis_alpha.fraction(factors())
    assert len(synthesis_alpha.full(factors())) == 432
    assert len(cells) == 72
    assert len({tuple(cell.values()) for cell in cells}) == 72
    for one in factors():
        for other in factors():
            if one < other:
                counts = [
                    sum(cell[one] == i and cell[other] == j for cell in cells)
                    for i in factors()[one]
                    for j in factors()[other]
                ]
                assert len(set(counts)) == 1
