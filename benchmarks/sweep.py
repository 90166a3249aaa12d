"""Deep leaky-ReLU nets (Guo et al. 2024).

A sweep against a torch module for each, a step against its products.
"""

from functools import partial

import torch
from harness import Comparison, default_products, main
from torch import nn

from overparam.models.leaky import LeakyMLP
from overparam.training import SquaredLoss, fast_products, gradient_descent

P, L, ETA = 5, 5, 1e-4


class Layer(nn.Module):
    """sigma(W h) of Guo et al. 2024, as a module would be written."""

    def __init__(self, W, alpha):
        super().__init__()
        self.W = nn.Parameter(W.clone())
        self.unit = nn.LeakyReLU(alpha)
        self.scale = (1 + alpha**2) ** -0.5

    def forward(self, h):
        return self.unit(h @ self.W.T) * self.scale


def sweep(runs, n, m, steps, device="cpu"):
    """Ours: one call for all runs.

    Peer: for each run a module, its loss by autograd, and torch's SGD. Floor: the products of the
    steps, of tiny nets all at once, of others one after another.
    """
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, P, generator=generator).to(device)
    y = torch.randn(n, 1, generator=generator).to(device)
    alphas = torch.linspace(-1, 0.5, runs).tolist()
    net, curves = LeakyMLP(P, m, 1, L, alphas=alphas, seeds=list(range(runs)), device=device), {}

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

    at_once = runs if m <= 64 else 1
    products = against_products(at_once, n, m, device)[1]

    def least():
        for _ in range(steps * runs // at_once):
            products()

    return ours, default_products(modules), difference, least


def against_products(runs, n, m, device="cpu"):
    """A step of all runs at once (of one, where runs = 1) against the matrix products that it
    consists of.

    Floor: these products, and one pass over the units of a layer for the activations, one for their
    derivatives.
    """
    fast_products()
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n, columns, generator=generator).to(device) for columns in (P, 1))
    net = LeakyMLP(P, m, 1, L, alphas=[-1.0] * runs, seeds=list(range(runs)), device=device)
    descent, loss = net.descent(x, None if runs > 1 else 0), SquaredLoss(y, "mean")
    W = [w.clone() for w in descent.W]
    v = torch.zeros_like(descent.forward())
    h, back = torch.zeros_like(descent.h[0]), torch.empty_like(descent.h[0])
    add = "baddbmm_" if runs > 1 else "addmm_"

    def step():
        derivative = loss(descent.forward())[1]
        descent.descend(derivative.mul_(1e-9))

    def products():
        torch.matmul(x, (descent.P @ descent.gramA).mT, out=back)
        for w in W[1:]:
            torch.matmul(h, w.mT, out=back)
            torch.matmul(h, w, out=back)
            getattr(w, add)(h.mT, h)
        return h @ descent.B.mT, v @ descent.B, h.mT @ x

    def least():
        found = products()
        for _ in range(L):
            torch.mul(h, h, out=back)
            torch.mul(h, h, out=back)
        return found

    def difference():
        """A step's change of W_2 against autograd's, in float32."""
        weights = [w.clone().requires_grad_() for w in descent.weights]
        out, c = x @ descent.A.mT, 2**-0.5
        for w in weights:
            g = out @ w.mT
            out = g.abs() * c  # alpha = -1
        ((out @ descent.B.mT - y).square().mean(dim=(-2, -1)).sum()).backward()
        before = weights[1].detach()
        descent.descend(loss(descent.forward())[1].clone())
        moved = descent.W[1] - before
        return float((moved + weights[1].grad).norm() / moved.norm()), 1e-3

    return step, products, difference, least


if __name__ == "__main__":
    # the last number: how much more than the floor is allowed
    alone = [(50, 50, 32, 1.5), (20, 100, 64, 1.5), (1, 1000, 256, 1.15), (1, 1000, 1024, 1.07)]
    sizes = [
        (50, 50, 32, 50, 2.0),
        (20, 100, 64, 50, 2.0),
        (20, 1000, 256, 4, 1.15),
        (5, 1000, 1024, 4, 1.15),
    ]
    main(
        [
            Comparison(
                f"sweep of {R} nets, n={n}, m={m}",
                "a module each",
                at_most,
                partial(sweep, R, n, m, steps),
            )
            for R, n, m, steps, at_most in sizes
        ]
        + [
            Comparison(
                f"step, runs={R}, n={n}, m={m}",
                "its own products",
                at_most,
                partial(against_products, R, n, m),
            )
            for R, n, m, at_most in alone
        ]
    )
