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

N, N_TEST, P, M, L, BATCH, STEPS = 12, 5, 5, 6, 3, 4, 7
SEEDS, ALPHAS, ETAS = [3, 8], [-1.0, 0.5], [0.02, 0.1]


@pytest.fixture(scope="module")
def page():
    """What the page's cells define, for float64 and the sizes above."""
    cells = nbformat.read(NOTEBOOKS / "synthesis" / "alpha-guide.ipynb", 4).cells
    wanted = [
        cell.source
        for cell in cells
        if "def outputs(" in cell.source or "def train(" in cell.source
    ]
    names = {
        "torch": torch,
        "LeakyMLP": LeakyMLP,
        "place": {"dtype": torch.float64, "device": "cpu"},
    }
    names |= {
        "claim": SimpleNamespace(seeds=SEEDS, device="cpu"),
        "n": N,
        "seed": 0,
        "steps": STEPS,
        "batch": BATCH,
    }
    names |= {name: getattr(nn.functional, name) for name in ("log_softmax", "softplus")}
    for source in wanted:
        exec(source, names)
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


def plain_loss(kind, d):
    if kind == "squared":
        return lambda u, y: ((u - y) ** 2).sum() / (2 * len(u))
    if d == 1:
        return lambda u, y: torch.log1p(torch.exp(-u * y)).mean()
    return lambda u, y: nn.functional.cross_entropy(u, y.argmax(-1))


def passes(optimizer):
    """The rows of every step."""
    draw = torch.Generator().manual_seed(0)
    while True:
        yield from (
            [torch.arange(N)]
            if optimizer == "GD"
            else torch.randperm(N, generator=draw).split(BATCH)
        )


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("optimizer", ["GD", "SGD", "Adam"])
@pytest.mark.parametrize(
    ("biases", "batch_norm"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_training_is_that_of_torchs_layers_and_optimizers(
    page, classes, loss, optimizer, biases, batch_norm
):
    draw = torch.Generator().manual_seed(5)
    x = torch.randn(2, N + N_TEST, P, generator=draw, dtype=torch.float64)
    y = nn.functional.one_hot(
        torch.arange(2 * (N + N_TEST)).reshape(2, -1) % classes, classes
    ).double()
    if classes == 1:
        y = torch.where(x[..., :1] > 0, 1.0, -1.0).double()
    words = {True: "with", False: "without"}
    cell = {"width": M, "depth": L, "loss": loss, "optimizer": optimizer}
    cell |= {"biases": words[biases], "batch norm": words[batch_norm]}
    found = page.train(cell, x, y, ALPHAS, ETAS)
    error = plain_loss(loss, classes)
    for g, (alpha, eta) in enumerate(zip(ALPHAS, ETAS, strict=True)):
        for s, seed in enumerate(SEEDS):
            plain = plain_net(seed, classes, alpha, biases, batch_norm)
            start = error(plain(x[s, :N]), y[s, :N]).item()
            free = [w for w in plain.parameters() if w.requires_grad]
            theirs = (torch.optim.Adam if optimizer == "Adam" else torch.optim.SGD)(free, lr=eta)
            for _, rows in zip(range(STEPS), passes(optimizer), strict=False):
                theirs.zero_grad()
                error(plain(x[s, rows]), y[s, rows]).backward()
                theirs.step()
            end = error(plain(x[s, :N]), y[s, :N]).item()
            assert [part[g, s] for part in found[:2]] == pytest.approx([start, end], rel=1e-8)
            if not batch_norm:  # whose moments are those of the training rows
                assert found[2][g, s] == pytest.approx(
                    error(plain(x[s, N:]), y[s, N:]).item(), rel=1e-8
                )


def test_batch_norm_takes_the_moments_of_the_first_rows(page):
    cell = {"width": M, "depth": L, "biases": "with", "batch norm": "with"}
    A, net = page.start(cell, P, 1, [0.5])
    h = torch.randn(2, N, P, generator=torch.Generator().manual_seed(5), dtype=torch.float64) @ A.mT
    whole = page.outputs(net, h, 8)
    torch.testing.assert_close(whole[..., :8, :], page.outputs(net, h[:, :8], 8))
    torch.testing.assert_close(
        whole[..., [9], :], page.outputs(net, h[:, [*range(8), 9]], 8)[..., 8:, :]
    )
