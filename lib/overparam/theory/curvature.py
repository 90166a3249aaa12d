"""Curvature of a loss at a point, and the loss on lines and planes through it, for any loss over a parameter dict.

All functions work on one vector w (P,) of all parameters; `Flat` goes between the two. In "product" a function
v -> H v is meant, v of shape (P,).
"""

import torch


class Flat:
    """Parameters {name: tensor} as one vector (P,), and back: `flat(w)` are views of w under their names."""

    def __init__(self, parameters):
        self.shapes = {name: p.shape for name, p in parameters.items()}
        self.sizes = [p.numel() for p in parameters.values()]

    def vector(self, parameters):
        """The vector (P,) of parameters that have these names; other names are left out."""
        return torch.cat([parameters[name].detach().reshape(-1) for name in self.shapes])

    def __call__(self, w):
        return {name: p.view(s) for (name, s), p in zip(self.shapes.items(), w.split(self.sizes), strict=True)}


def value_and_gradient(loss, w):
    """(loss(w), its gradient (P,)) by autograd, both detached."""
    w = w.detach().requires_grad_()
    value = loss(w)
    return value.detach(), torch.autograd.grad(value, w)[0]


def difference_product(gradient, w, radius):
    """v -> (g(w + q v) - g(w - q v)) / (2 q), q = radius at unit v, linear in |v| > 0; g: w -> (P,)."""

    def product(v):
        size = v.norm()
        step = v * (radius / size)
        return (gradient(w + step) - gradient(w - step)) * (size / (2 * radius))

    return product


def smoothed_product(gradient, w, radius, displacements):
    """The mean of `difference_product` over w + u, u in displacements, (K, P) or K tensors (P,)."""
    products = [difference_product(gradient, w + u, radius) for u in displacements]
    return lambda v: sum(product(v) for product in products) / len(products)


def oja(product, v, steps, rate, done=0):
    """Approximately the eigenvector of the lowest eigenvalue, unit length (P,), by Oja's method.

    v <- v - rate/(1 + 2 t/steps) H v, normalised, for t = done..steps - 1; `product` gives H v up to a fresh error each
    time. v: the start (P,), or what `done` steps have left; rate: at most about 1/lambda_max. Source: Allen-Zhu et al.
    2019, below Figure 1, which names the method and neither step size nor number of steps.
    """
    v = v / v.norm()
    for t in range(done, steps):
        v = v - rate / (1 + 2 * t / steps) * product(v)
        v = v / v.norm()
    return v


def rayleigh(products, v):
    """(mean, standard error) of v.H v/|v|^2 over the given products, K at least 2."""
    values = torch.stack([(v @ product(v) / (v @ v)).double() for product in products])
    return values.mean(), values.std() / len(values) ** 0.5


def lanczos(product, v, steps):
    """(values (K,) ascending, lowest and highest Ritz vector (2, P)) after K <= steps steps from v (P,).

    Every new vector is orthogonalised against all former ones, twice. It ends early where these span an invariant
    subspace; with steps = P the values are all eigenvalues that v has a part in.
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


@torch.no_grad()
def surface(loss, w, x, y, at_x, at_y):
    """loss(w + a x + b y) for directions x, y (P,), a in at_x and b in at_y: float64 (len(at_y), len(at_x))."""
    return torch.stack([torch.stack([loss(w + a * x + b * y).double() for a in at_x]) for b in at_y])


@torch.no_grad()
def cut(loss, w, x, at):
    """loss(w + a x) for a direction x (P,) and a in at: float64 (len(at),)."""
    return torch.stack([loss(w + a * x).double() for a in at])
