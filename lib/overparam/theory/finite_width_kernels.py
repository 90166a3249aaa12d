"""Tangent kernels of finite width, by the trained weights: of open runs, at their current weights.

A run (`models.open_run.OpenRun`) gives for each trained layer the factors h, z of its gradients
z h^T, and all kernels are made of these. Gradient descent on half the mean squared error of n
inputs is stable up to the step size 2 n / lambda_max(K). Those of infinite width are in
`infinite_width_kernels`. Source: Noy et al. 2021, Section 4.2, eq. (6).
"""

import torch

from .. import arguments
from ..errors import ParameterError


def layer_kernels(factors):
    """<v . dy(x_i)/dW_l, v . dy(x_k)/dW_l> of every layer, (..., L, n, n), for `factors` of v."""
    return torch.stack([(z @ z.mT) * (h @ h.mT) for h, z in factors], -3)


def tangent_kernel(run, j=0):
    """K_ik = sum_l <dy_j(x_i)/dW_l, dy_j(x_k)/dW_l> of output j, (..., n, n).

    Source: Arora et al. 2019, eq. (5); Noy et al. 2021, eq. (6).
    """
    if not hasattr(run, "factors"):
        raise ParameterError(f"run is a {type(run).__name__}: pass net.descent(x)")
    total = 0
    for h, z in run.factors(run.unit(j)):
        total = (z @ z.mT).mul_(h @ h.mT) + total
    return total


def jacobians(run):
    """[F_2, .., F_{L+1}], each (..., n, d_y, m): dy_j/dW_l = F_{l+1,j} h_{l-1}^T for all outputs j.

    Source: Noy et al. 2021, eq. (10).
    """
    outputs = [[z for _, z in run.factors(run.unit(j))] for j in range(run.forward().shape[-1])]
    return [torch.stack(layer, -2) for layer in zip(*outputs, strict=True)]


def full_tangent_kernel(run, largest=3000):
    """K of all outputs, (..., n d_y, n d_y), by input, then output.

    Raises ParameterError where n d_y > `largest`.
    """
    n, d_y = run.forward().shape[-2:]
    if n * d_y > largest:
        count = f"{n * d_y} rows, more than {largest}"
        raise ParameterError(f"the kernel of {n} inputs and {d_y} outputs has {count}")
    total = 0
    for F, (h, _) in zip(jacobians(run), run.factors(run.unit()), strict=True):
        flat = F.flatten(-3, -2)
        inner = (h @ h.mT).repeat_interleave(d_y, -2).repeat_interleave(d_y, -1)
        total = (flat @ flat.mT).mul_(inner) + total
    return total


def kernel_product(run, v):
    """K v = J J^T v of a `GatedDescent`, v and result (..., n, d_y), without K.

    J^T v, one matrix of rank n per layer, is not formed where n < m.
    """
    t = None
    for W, gate, (h, z) in zip(run.W, run.gates, run.factors(v), strict=True):
        push = (h @ h.mT) @ z if h.shape[-2] < h.shape[-1] else h @ (h.mT @ z)
        t = push if t is None else push.add_(t @ W.mT)
        t.mul_(gate)
    return t @ run.B.mT


def lambda_max(run, iterations=30):
    """The largest eigenvalue of K of a `GatedDescent`, (...), by power iteration: from below."""
    generator = torch.Generator().manual_seed(0)
    shape = run.x.shape[-2], run.B.shape[-2]
    start = torch.randn(*shape, generator=generator, dtype=torch.float64)
    v = start.to(run.B).expand(*run.B.shape[:-2], *shape)
    for _ in range(iterations):
        v = v / v.norm(dim=(-2, -1), keepdim=True)
        product = kernel_product(run, v)
        value, v = (v * product).sum((-2, -1)), product
    return value


def initial_lambda_max(net, x, iterations=30):
    """lambda_max of every run of `GatedRuns` at its start, float64 (R,), once per seed.

    Raises ParameterError for NaN or infinity in x, or where all inputs are zero.
    """
    arguments.finite(x, "x")
    first = list(range(net.runs)) if x.ndim == 3 else net.draws
    values = {}
    for run in dict.fromkeys(first):
        values[run] = lambda_max(net.descent(x, run), iterations).double().cpu()
    largest = torch.stack([values[run] for run in first])
    return arguments.finite(largest, "lambda_max at x, whose inputs may all be zero")


def sharpness(net, x, iterations=30):
    """lambda_max(K) / n of every run of `GatedRuns` at its start, as an array (R,), from below."""
    return (initial_lambda_max(net, x, iterations) / x.shape[-2]).numpy()
