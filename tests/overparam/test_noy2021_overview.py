"""The code on the overview of Noy et al. 2021 is the net of `models.gated`."""

import re

import torch

from ledger.paths import ROOT
from overparam.models.gated import GatedRuns
from overparam.training import RegressionLoss, gradient_descent

TEXT = (ROOT / "site" / "papers" / "noy2021.md").read_text(encoding="utf-8")


def test_ten_lines_of_torch_are_the_librarys_net():
    (code,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    page = {}
    torch.manual_seed(0)
    exec(compile(code, "site/papers/noy2021.md", "exec"), page)
    assert page["grelu"](
        torch.ones(2, 3), *(page[name] for name in ("B", "C", "W", "Psi"))
    ).shape == (2, 1)
    for name, variance in (("B", 2), ("C", 2 / 3), ("W", 2 / 64), ("Psi", 2 / 64)):
        drawn = page[name]
        entries = torch.cat(
            [part.detach().flatten() for part in (drawn if isinstance(drawn, list) else [drawn])]
        )
        assert abs(entries.square().mean().item() / variance - 1) < 5 / len(entries) ** 0.5
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(7, 5, generator=generator, dtype=torch.float64)
    y = torch.randn(7, 2, generator=generator, dtype=torch.float64)
    net = GatedRuns("grelu", 5, 24, 3, 2, seeds=[4])
    B, C = net.outer(0, x)
    W = [net.layer(0, k, x).requires_grad_() for k in (1, 2, 3)]
    Psi = [net.psi(0, k, x) for k in (1, 2, 3)]
    outputs = page["grelu"](x, B, C, W, Psi)
    torch.testing.assert_close(outputs, net.descent(x, 0).forward())
    slopes = torch.autograd.grad((outputs - y).square().sum() / 2, W)
    log = {"W": lambda run: torch.stack(run.W, -3)}
    trained = gradient_descent(net, x, RegressionLoss(y, "halfsum"), 1e-3, 1, log=log).logs["W"][
        0, 0
    ]
    moved = torch.stack([w.detach() - 1e-3 * slope for w, slope in zip(W, slopes, strict=True)])
    torch.testing.assert_close(trained, moved)
