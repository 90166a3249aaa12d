"""The nets and optimizers that the guide to alpha shows, taken from its page, against torch modules
with autograd.
"""

from types import SimpleNamespace

import nbformat
import pytest
import torch
from torch import nn

from ledger.paths import NOTEBOOKS
from overparam.models.leaky import LeakyMLP
from overparam.models.modules import LeakyUnit

N, N_TEST, P, M, L, STEPS = 12, 5, 5, 6, 3, 7
SEEDS, ALPHAS, ETAS = [3, 8], [-1.0, 0.5], [0.02, 0.1]


@pytest.fixture(scope="module")
def page():
    """What the page's cells define, for float64 and the sizes above."""
    cells = nbformat.read(NOTEBOOKS / "synthesis" / "alpha-guide.ipynb", 4).cells
    names = {
        "torch": torch,
        "LeakyMLP": LeakyMLP,
        "place": {"dtype": torch.float64, "device": "cpu"},
        "judging": SEEDS,
        "problems": {},
        "width": M,
        "n": N,
        "steps": STEPS,
        "floor": 0.0,
    }
    for cell in cells:
        if "def losses(" in cell.source or "def train(" in cell.source:
            exec(cell.source, names)
    return SimpleNamespace(**names)


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
            norm = nn.BatchNorm1d(M, eps=2e-5 / M, momentum=None, dtype=torch.float64)
            nn.init.constant_(norm.weight, (2 / M) ** 0.5)
            norm.bias.requires_grad_(biases)
            layers.append(norm)
        layers.append(LeakyUnit(alpha))
    layers.append(nn.Linear(M, d, bias=False))
    layers[-1].weight = nn.Parameter(draw.B[0], requires_grad=False)
    return nn.Sequential(*layers).double()


def plain_loss(u, y):
    return ((u - y) ** 2).sum() / (2 * len(u))


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("optimizer", ["gradient descent", "Adam"])
@pytest.mark.parametrize(
    ("biases", "batch_norm"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_training_is_that_of_torchs_layers_and_optimizers(
    page, classes, optimizer, biases, batch_norm
):
    draw = torch.Generator().manual_seed(5)
    x = torch.randn(2, N + N_TEST, P, generator=draw, dtype=torch.float64)
    y = torch.randn(2, N + N_TEST, classes, generator=draw, dtype=torch.float64)
    page.problems["toy"] = {"judging": (x, y)}
    words = {True: "with", False: "without"}
    combination = {"data": "toy", "depth": L, "optimizer": optimizer}
    combination |= {"biases": words[biases], "batch norm": words[batch_norm]}
    training, test = page.train(combination, "judging", ALPHAS, ETAS)
    method = torch.optim.Adam if optimizer == "Adam" else torch.optim.SGD
    for g, (alpha, eta) in enumerate(zip(ALPHAS, ETAS, strict=True)):
        for s, seed in enumerate(SEEDS):
            net = plain_net(seed, classes, alpha, biases, batch_norm)
            theirs = method([w for w in net.parameters() if w.requires_grad], lr=eta)
            start = plain_loss(net(x[s, :N]), y[s, :N]).item()
            for _ in range(STEPS):
                theirs.zero_grad()
                plain_loss(net(x[s, :N]), y[s, :N]).backward()
                theirs.step()
            zeros = torch.zeros_like(y[s])
            end = plain_loss(net(x[s, :N]), y[s, :N]).item()
            assert end < start  # else the page keeps the net of the start
            share = end / plain_loss(zeros[:N], y[s, :N]).item()
            assert training[g, s] == pytest.approx(share, rel=1e-8)
            if not batch_norm:  # whose moments are those of the training rows
                share = plain_loss(net(x[s, N:]), y[s, N:]) / plain_loss(zeros[N:], y[s, N:])
                assert test[g, s] == pytest.approx(share.item(), rel=1e-8)


def test_batch_norm_takes_the_moments_of_the_training_rows(page):
    draw = torch.Generator().manual_seed(5)
    x = torch.randn(2, N + N_TEST, P, generator=draw, dtype=torch.float64)
    y = torch.randn(2, N + N_TEST, 1, generator=draw, dtype=torch.float64)
    combination = {"depth": L, "biases": "with", "batch norm": "with"}
    h, net = page.start(combination, SEEDS, x, y, [0.5])
    training, test = page.losses(net, h, y)
    alone, _ = page.losses(net, h[:, :N], y[:, :N])
    torch.testing.assert_close(training, alone)
    first = [*range(N), N]
    _, of_first = page.losses(net, h[:, first], y[:, first])
    last = [*range(N), *range(N + 1, N + N_TEST)]
    _, of_rest = page.losses(net, h[:, last], y[:, last])
    torch.testing.assert_close(test * N_TEST, of_first + of_rest * (N_TEST - 1))
