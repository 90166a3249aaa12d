"""Tangent kernels of finite width, by the trained weights: of open runs, at their current weights
and inputs.

A run (`LeakyDescent`, `GatedDescent`) gives `sensitivities` z and `inputs_of_layers` h: the
gradient of v . y(x_i) by W_l is z_{l,i} h_{l-1,i}^T. Gradient descent on half the mean squared
error of n inputs is stable up to the step size 2 n / lambda_max(K). Source: Noy et al. 2021,
Section 4.2, eq. (6).
"""

import torch

from ..errors import ParameterError


def layer_grams(run, p=0):
    """<dy_p(x_i)/dW_l, dy_p(x_j)/dW_l>, (..., L, n, n), after `run.forward()`; summed, p's
    kernel.
    """
    v = run.delta.new_zeros(*run.delta.shape[:-1], run.B.shape[-2])
    v[..., p] = 1
    pairs = zip(run.sensitivities(v), run.inputs_of_layers(), strict=True)
    return torch.stack([(z @ z.mT) * (h @ h.mT) for z, h in pairs], -3)


def kernel_product(run, v):
    """K v = J J^T v of a `GatedDescent`, v and result (..., n, d_y).

    K_{(i,p),(j,q)} = sum_k <F_{k+1,p}^i, F_{k+1,q}^j> <h_{k-1,i}, h_{k-1,j}>. J^T v, one matrix of
    rank n per layer, is not formed where n < m.
    """
    rows, t = run.sensitivities(v), None
    for W, gate, h, z in zip(run.W, run.gates, run.h, rows, strict=False):
        push = (h @ h.mT) @ z if h.shape[-2] < h.shape[-1] else h @ (h.mT @ z)
        t = (push if t is None else push.add_(t @ W.mT)).mul_(gate)
    return t @ run.B.mT


def lambda_max(run, iterations=30):
    """The largest eigenvalue of K at a descent's current weights and inputs, (...), by power
    iteration: from below.
    """
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(
        *run.x.shape[-2:-1], run.B.shape[-2], generator=generator, dtype=torch.float64
    )
    v = start.to(run.B).expand(*run.B.shape[:-2], *start.shape)
    for _ in range(iterations):
        v = v / v.norm(dim=(-2, -1), keepdim=True)
        product = kernel_product(run, v)
        value, v = (v * product).sum((-2, -1)), product
    return value


def initial_lambda_max(net, x, iterations=30):
    """lambda_max of every run of `GatedRuns` at its start, float64 (R,) on the CPU, once per
    seed.
    """
    first = list(range(net.runs)) if x.ndim == 3 else net.draws
    values = {
        run: lambda_max(net.descent(x, run), iterations).double().cpu()
        for run in dict.fromkeys(first)
    }
    return torch.stack([values[run] for run in first])


def jacobian_rows(run):
    """[F_2, .., F_{L+1}] of every input, each (..., n, d_y, m): sensitivities of single outputs.

    Source: eq. (10).
    """
    d_y = run.B.shape[-2]
    ones = torch.eye(d_y, dtype=run.B.dtype, device=run.B.device)
    per_output = [run.sensitivities(ones[p].expand(*run.delta.shape[:-1], d_y)) for p in range(d_y)]
    return [torch.stack(layer, -2) for layer in zip(*per_output, strict=True)]


def ntk_gram(run, largest=3000):
    """K now, (..., n d_y, n d_y), by input, then output; ParameterError where n d_y > `largest`."""
    n, d_y = run.delta.shape[-2], run.B.shape[-2]
    if n * d_y > largest:
        raise ParameterError(
            f"the kernel of {n} inputs and {d_y} outputs has {n * d_y} rows, more than {largest}"
        )
    total = 0
    for F, h in zip(jacobian_rows(run), run.h, strict=False):
        flat = F.flatten(-3, -2)
        inner = (h @ h.mT).repeat_interleave(d_y, -2).repeat_interleave(d_y, -1)
        total = (flat @ flat.mT).mul_(inner) + total
    return total
