"""The lowest eigenpair of a trained convolutional net by our Lanczos iteration, against its
peer.
"""

import bisect
from functools import cache, partial

import torch
from harness import Comparison, Quantity, main
from torch import nn
from torch.func import grad, linearize
from torch.nn.functional import cross_entropy

from overparam.data import load
from overparam.theory import curvature

N, STEPS, SEEDS = 512, 300, 3


@cache
def problem():
    """The loss of a net of 24k parameters on 512 digits with 20 % of the labels drawn anew, after
    some training.
    """
    torch.manual_seed(0)
    data = load("mnist-5k", n_train=N, n_test=1, transform="unit", dtype=torch.float32, flat=False)
    x, y = data.x_train * 28, data.y_train.clone()
    y[: N // 5] = torch.randint(0, 10, (N // 5,))
    net = nn.Sequential(
        nn.Conv2d(1, 8, 5, 2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 5, 2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 75),
        nn.ReLU(),
        nn.Linear(75, 10),
    )
    flat = curvature.Flat(dict(net.named_parameters()))

    def loss(w):
        return cross_entropy(torch.func.functional_call(net, flat(w), (x,)), y)

    w = flat.vector(dict(net.named_parameters()))
    for _ in range(STEPS):
        w = w - 0.1 * curvature.value_and_gradient(loss, w)[1]
    return loss, w, net, (x, y)


def random(w, seed):
    return torch.randn(w.shape, generator=torch.Generator().manual_seed(seed))


def products_needed(tolerance=1e-3):
    """Products until Lanczos' lowest vector has a cosine of 0.999 with the converged one, over the
    dimension of the smallest Krylov space that has such a vector, from SEEDS starts.

    No method that knows products with these vectors alone can do with fewer.
    """
    loss, w, *_ = problem()
    product = linearize(grad(loss), w)[1]
    exact = curvature.lanczos(product, random(w, 99), 200)[1][0]

    def reaches(start, steps):
        return abs(float(curvature.lanczos(product, start, steps)[1][0] @ exact)) >= 1 - tolerance

    ratios = []
    for seed in range(SEEDS):
        start = random(w, seed)
        ours = 10 + bisect.bisect_left(range(10, 100), True, key=partial(reaches, start))
        least = smallest_space(product, start, exact, 1 - tolerance)
        print(f"start {seed}: {ours} products, of {least} that are needed", flush=True)
        ratios.append(ours / least)
    return ratios


def smallest_space(product, start, exact, cosine):
    """The dimension of the smallest Krylov space of a start that has a vector so close."""
    basis, inside = [start / start.norm()], 0.0
    while True:
        inside += float(basis[-1] @ exact) ** 2
        if inside >= cosine**2:
            return len(basis)
        moved = product(basis[-1])
        for _ in range(2):
            span = torch.stack(basis)
            moved = moved - span.T @ (span @ moved)
        basis.append(moved / moved.norm())


def against_eigsh():
    """The lowest eigenpair to 1e-3, by 45 steps of ours and by scipy's `eigsh`."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    loss, w, *_ = problem()
    product, v, results = linearize(grad(loss), w)[1], random(w, 0), {}
    operator = LinearOperator(
        (len(w),) * 2, lambda u: product(torch.from_numpy(u)).numpy(), dtype="float32"
    )

    def ours():
        results["ours"] = float(curvature.lanczos(product, v, 45)[0][0])

    def scipy():
        results["scipy"] = float(eigsh(operator, k=1, which="SA", tol=1e-3, v0=v.numpy())[0][0])

    return ours, scipy, lambda: (abs(results["ours"] / results["scipy"] - 1), 1e-3)


if __name__ == "__main__":
    size = f"24k parameters, {N} images"
    main(
        [
            Quantity(
                f"lowest eigenpair, {size}",
                "the smallest Krylov space with a cosine of 0.999",
                1.2,
                "of its products",
                products_needed,
            ),
            Comparison(
                f"lowest eigenpair, {size}", "scipy eigsh", 1.0, against_eigsh, alternations=5
            ),
        ]
    )
