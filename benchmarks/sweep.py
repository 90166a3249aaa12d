"""A sweep of deep leaky-ReLU nets over seeds and slopes (Guo et al. 2024) against one torch module after another."""

from functools import partial

import torch
from harness import Comparison, default_products, main
from torch import nn

from overparam.nets.deep_relu import LeakyMLP
from overparam.train import SquaredLoss, gradient_descent

P, L, ETA = 5, 5, 1e-4


class Layer(nn.Module):
    """sigma(W h) of Guo et al. 2024, as a module would be written."""

    def __init__(self, W, alpha):
        super().__init__()
        self.W, self.unit, self.scale = nn.Parameter(W.clone()), nn.LeakyReLU(alpha), (1 + alpha**2) ** -0.5

    def forward(self, h):
        return self.unit(h @ self.W.T) * self.scale


def sweep(runs, n, m, steps):
    """Ours: one call for all runs; peer: for each run a module, its loss by autograd, and torch's SGD."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, P, generator=generator)
    y = torch.randn(n, 1, generator=generator)
    alphas = torch.linspace(-1, 0.5, runs).tolist()
    net, curves = LeakyMLP(P, m, 1, L, alphas=alphas, seeds=list(range(runs))), {}

    def ours():
        curves["ours"] = gradient_descent(net, x, SquaredLoss(y, "mean"), ETA, steps).loss[:, :-1]

    def modules():
        curves["modules"] = torch.stack([alone(r) for r in range(runs)]).double()

    def alone(r):
        draw, losses = net.draw[r], []
        layers = nn.Sequential(*(Layer(W, alphas[r]) for W in net.W[draw]))
        A, B = net.A[draw], net.B[draw]
        optimizer = torch.optim.SGD(layers.parameters(), ETA)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = (layers(x @ A.T) @ B.T - y).square().mean()
            losses.append(loss.detach())
            loss.backward()
            optimizer.step()
        return torch.stack(losses)

    def difference():
        return float(((curves["ours"] - curves["modules"]) / curves["modules"]).abs().max()), 1e-3

    return ours, default_products(modules), difference


if __name__ == "__main__":
    sizes = [(50, 50, 32, 50, 0.22), (20, 100, 64, 50, 0.22), (20, 1000, 256, 4, 0.42), (5, 1000, 1024, 4, 0.42)]
    main(
        [
            Comparison(f"sweep of {R} nets, n={n}, m={m}", "a module each", at_most, partial(sweep, R, n, m, steps))
            for R, n, m, steps, at_most in sizes
        ]
    )
