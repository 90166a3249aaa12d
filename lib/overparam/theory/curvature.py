"""Curvature of a loss at a point, and how far a line through it leads down.

For any loss over a parameter dict.
All functions work on one vector w (P,) of all parameters; `Flat` goes between the two. In "product"
a function v -> H v is meant, v of shape (P,).
"""

import math

import numpy as np
import torch
from scipy.optimize import minimize_scalar


class Flat:
    """Parameters {name: tensor} as one vector (P,), and back: `flat(w)` are views of w."""

    def __init__(self, parameters):
        self.shapes = {name: p.shape for name, p in parameters.items()}
        self.sizes = [p.numel() for p in parameters.values()]

    def vector(self, parameters):
        """The vector (P,) of parameters that have these names; other names are left out."""
        return torch.cat([parameters[name].detach().reshape(-1) for name in self.shapes])

    def __call__(self, w):
        return {
            name: p.view(s)
            for (name, s), p in zip(self.shapes.items(), w.split(self.sizes), strict=True)
        }


def value_and_gradient(loss, w):
    """(loss(w), its gradient (P,)) by autograd, both detached."""
    w = w.detach().requires_grad_()
    value = loss(w)
    return value.detach(), torch.autograd.grad(value, w)[0]


def difference_product(gradient, w, radius):
    """v -> (g(w + q v) - g(w - q v)) / (2 q), q = radius at unit v; g: w -> (P,).

    Linear in |v| > 0.
    """

    def product(v):
        size = v.norm()
        step = v * (radius / size)
        return (gradient(w + step) - gradient(w - step)) * (size / (2 * radius))

    return product


def smoothed_product(gradient, w, radius, displacements):
    """The mean of `difference_product` over w + u, u in displacements, (K, P) or K tensors (P,)."""
    products = [difference_product(gradient, w + u, radius) for u in displacements]
    return lambda v: sum(product(v) for product in products) / len(products)


def lanczos(product, v, steps):
    """(values (K,), lowest and highest Ritz vector (2, P)) after K <= steps steps from v (P,).

    Values ascend.
    Every new vector is orthogonalised against all former ones, twice. It ends early where these
    span an invariant subspace; with steps = P the values are all eigenvalues that v has a part in.
    """
    basis, diagonal, beside = [v / v.norm()], [], []
    for _ in range(steps):
        moved = product(basis[-1])
        diagonal.append((basis[-1] @ moved).double())
        span = torch.stack(basis)
        for _ in range(2):
            moved = moved - span.T @ (span @ moved)
        size = moved.norm()
        scale = torch.stack(diagonal).abs().max()
        if len(basis) == steps or size <= 1e3 * torch.finfo(v.dtype).eps * scale:
            break
        beside.append(size.double())
        basis.append(moved / size)
    tridiagonal = torch.diag(torch.stack(diagonal))
    if beside:
        off = torch.diag(torch.stack(beside), 1)
        tridiagonal = tridiagonal + off + off.T
    values, vectors = torch.linalg.eigh(tridiagonal)
    return values, (vectors[:, [0, -1]].T.to(v) @ torch.stack(basis))


def best_length(loss, shortest, longest, within=0.02):
    """(a, loss(a)): the a in [shortest, longest] where loss(a) is lowest, to the share `within`.

    Of lengths that double the best, and between its two neighbours golden sections and parabolas in
    log a (Brent's method). Where there are several minima, that of the best of the doubled lengths
    is found.
    """
    count = math.ceil(math.log2(longest / shortest)) + 1
    lengths = np.geomspace(shortest, longest, max(count, 2))
    values = [float(loss(a)) for a in lengths]
    best = int(np.argmin(values))
    around = np.log(lengths[[max(best - 1, 0), min(best + 1, len(lengths) - 1)]])
    options = {"bounds": around, "method": "bounded", "options": {"xatol": within / 4}}
    found = minimize_scalar(lambda a: float(loss(math.exp(a))), **options)
    return (
        (math.exp(found.x), found.fun)
        if found.fun < values[best]
        else (float(lengths[best]), values[best])
    )
