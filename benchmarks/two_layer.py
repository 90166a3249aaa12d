"""Gradient descent of the two-layer net (Arora et al. 2019).

Against its own matrix products and against autograd.
"""

from functools import partial

import torch
from harness import Absent, Comparison, default_products, main

from overparam.data import load
from overparam.errors import OverparamError
from overparam.models.two_layer import TwoLayerReLU
from overparam.training import SquaredLoss, fast_products, gradient_descent

N, ETA = 1000, 1e-3


def inputs(name):
    """1000 real examples of two classes, unit norm, labels of either sign."""
    try:
        data = load(
            name,
            n_train=N,
            n_test=10,
            classes=(0, 1),
            transform="unit",
            dtype=torch.float32,
            seed=0,
        )
    except OverparamError as error:
        raise Absent(str(error)) from error
    return data.x_train, data.y_train


def against_products(name, m):
    fast_products()
    x, y = inputs(name)
    descent = TwoLayerReLU(x.shape[1], m, 0.01, seeds=[0]).descent(x, 0)
    state = {key: value.clone() for key, value in descent.state.items()}

    def step():
        descent.descend((descent.forward() - y) * ETA)

    def products():
        if "W" in descent.state:
            torch.mm(descent.W, descent.x.T, out=descent.Z)
            descent.W.addmm_(descent.Z, descent.x, alpha=1e-12)
        else:
            torch.mm(descent.S, descent.inner, out=descent.Z)

    def difference():
        """The step's change of the outputs against autograd's step in float64."""
        for key, value in descent.state.items():
            value.copy_(state[key])
        net = TwoLayerReLU(x.shape[1], m, 0.01, seeds=[0], dtype=torch.float64)
        W = net.W[0].requires_grad_()
        exact = partial(outputs, W, net.a[0])
        before = exact(x.double())
        (slope,) = torch.autograd.grad(0.5 * (before - y).square().sum(), W)
        with torch.no_grad():
            W -= ETA * slope
            moved = exact(x.double()) - before
            start = descent.forward()
            descent.descend((start - y) * ETA)
            return float((descent.forward() - start - moved).norm() / moved.norm()), 1e-3

    return step, products, difference


def outputs(W, a, x):
    return torch.relu(x @ W.T) @ a / len(a) ** 0.5


def against_autograd(name, m, steps=3):
    x, y = inputs(name)
    net = TwoLayerReLU(x.shape[1], m, 0.01, seeds=[0])
    descent, curves = net.descent(x, 0), {"ours": [], "naive": []}
    W = net.W[0].clone().requires_grad_()

    def ours():
        fast_products()
        for _ in range(steps):
            residual = descent.forward() - y
            curves["ours"].append(residual.square().sum())
            descent.descend(residual.mul_(ETA))

    def naive():
        for _ in range(steps):
            loss = 0.5 * (outputs(W, net.a[0], x) - y).square().sum()
            curves["naive"].append(2 * loss.detach())
            W.grad = None
            loss.backward()
            with torch.no_grad():
                W.sub_(W.grad, alpha=ETA)

    def difference():
        a, b = (torch.stack(curves[key][:steps]).double() for key in curves)
        return float(((a - b) / b).abs().max()), 1e-4

    products = against_products(name, m)[1]

    def least():
        for _ in range(steps):
            products()

    return ours, default_products(naive), difference, least


def whole_training(name, m, steps=40):
    """The public call, with everything that it prepares, against the same training by autograd."""
    x, y = inputs(name)
    net, curves = TwoLayerReLU(x.shape[1], m, 0.01, seeds=[0]), {}

    def ours():
        curves["ours"] = gradient_descent(net, x, SquaredLoss(y, "halfsum"), ETA, steps).loss[
            0, :-1
        ]

    def naive():
        W, losses = net.W[0].clone().requires_grad_(), []
        for _ in range(steps):
            loss = 0.5 * (outputs(W, net.a[0], x) - y).square().sum()
            losses.append(loss.detach())
            W.grad = None
            loss.backward()
            with torch.no_grad():
                W.sub_(W.grad, alpha=ETA)
        curves["naive"] = torch.stack(losses).double()

    def difference():
        return float(((curves["ours"] - curves["naive"]) / curves["naive"]).abs().max()), 1e-4

    def least():
        """The products of the first outputs and of all steps, without what stands between."""
        descent = net.descent(x, 0)
        for _ in range(steps):
            torch.mm(descent.S, descent.inner, out=descent.Z)

    return ours, default_products(naive), difference, least


if __name__ == "__main__":
    mnist, cifar = ("mnist", 10_000), ("cifar10", 4000)
    main(
        [
            Comparison(
                "two-layer step, MNIST 0/1, m=10000",
                "its own products",
                1.10,
                partial(against_products, *mnist),
            ),
            Comparison(
                "two-layer step, CIFAR-10 0/1, m=4000",
                "its own products",
                1.10,
                partial(against_products, *cifar),
            ),
            Comparison(
                "two-layer step, MNIST 0/1, m=10000",
                "autograd",
                1.15,  # times the floor
                partial(against_autograd, *mnist),
            ),
            Comparison(
                "two-layer step, CIFAR-10 0/1, m=4000",
                "autograd",
                1.15,  # times the floor
                partial(against_autograd, *cifar),
            ),
            Comparison(
                "two-layer training, 40 steps, CIFAR-10 0/1, m=4000",
                "autograd",
                1.15,  # times the floor
                partial(whole_training, *cifar),
                alternations=5,
            ),
        ]
    )
