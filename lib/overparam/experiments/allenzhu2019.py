"""The deep ReLU net of Allen-Zhu et al. 2019 at its random start: norms layer by layer, separation, Gram matrices."""

import numpy as np
import torch

from ..errors import ParameterError
from ..models.deep_relu import ReLUNet, unit
from ..theory.perturbation.residual import partners


def at_seeds(measure, *settings, seeds, **options):
    """{name: (S, ...) float64 array} of what measure(net, seed), a dict, gives of ReLUNet(*settings) with each seed."""
    rows = []
    for seed in seeds:
        found = measure(ReLUNet(*settings, seed=seed, **options), seed)
        rows.append({name: torch.as_tensor(value).double().cpu() for name, value in found.items()})
    return {name: torch.stack([row[name] for row in rows]).numpy() for name in rows[0]}


def norm_chain(m, L, trials, *, seed):
    """|h_0|, .., |h_L| of one input, (trials, L + 1), by their exact law. Source: Fact 7.2."""
    generator = np.random.default_rng(seed)
    active = generator.binomial(m, 0.5, size=(trials, L + 1))
    steps = generator.chisquare(np.maximum(active, 1)) * (active > 0) * (2 / m)
    return np.sqrt(np.cumprod(steps, axis=1))


def near_pair(n, p, delta, *, seed):
    """n unit inputs (n, p) with last coordinate 1/sqrt 2, the first two at distance delta, and labels (n,), +1 or -1.

    The first two have opposite labels. The others are drawn at random, again where one is nearer than delta to one
    before it. float64. Raises ParameterError where so many do not fit. Source: Allen-Zhu et al. 2019, Assumption 2.1.
    """
    generator = torch.Generator().manual_seed(seed)
    draw = lambda count: torch.randn(count, p - 1, generator=generator, dtype=torch.float64)  # noqa: E731
    first = draw(1) / 2**0.5
    first = first / first.norm() / 2**0.5
    second = partners(first * 2**0.5, torch.tensor([delta * 2**0.5]), seed=seed + 1) / 2**0.5
    z = torch.cat([first, second])
    for more in draw(1000 * n):
        if len(z) >= n:
            break
        more = more[None] / more.norm() / 2**0.5
        if torch.cdist(more, z).min() >= delta:
            z = torch.cat([z, more])
    else:
        raise ParameterError(f"{n} points of a sphere in {p - 1} dimensions do not keep a distance of {delta}")
    labels = torch.randint(2, (n,), generator=generator) * 2.0 - 1
    labels[1] = -labels[0]
    return torch.cat([z, torch.full((n, 1), 0.5**0.5, dtype=torch.float64)], 1), labels.double()


def last_gram(net, x):
    """H_ik = <dy(x_i)/dW_L, dy(x_k)/dW_L> of the first output, (n, n): |sum_i v_i dy(x_i)/dW_L|_F^2 = v^T H v."""
    g, h = net.forward(x)
    p = unit(x, net.d) @ net.B * (g[-1] >= 0)
    return (p @ p.T) * (h[-2] @ h[-2].T)


def gaussian_gap(alpha, delta, nodes=40):
    """E(relu(g_1) - relu(alpha g_1 + delta g_2))^2, g ~ N(0, 2), by quadrature. Source: Claim 7.6."""
    alpha, delta = np.broadcast_arrays(np.asarray(alpha, dtype=float), np.asarray(delta, dtype=float))
    turn = np.arctan2(-alpha, delta)  # alpha cos + delta sin is 0 here and half a circle on
    kinks = np.stack([np.full(turn.shape, -np.pi / 2), np.full(turn.shape, np.pi / 2), turn, turn + np.pi], -1)
    kinks = np.sort((kinks + np.pi / 2) % (2 * np.pi), axis=-1) - np.pi / 2
    ends = np.concatenate([kinks, kinks[..., :1] + 2 * np.pi], -1)
    points, weights = np.polynomial.legendre.leggauss(nodes)
    half = np.diff(ends)[..., None] / 2
    angle = ends[..., :-1, None] + half * (points + 1)
    gap = np.maximum(np.cos(angle), 0) - np.maximum(
        alpha[..., None, None] * np.cos(angle) + delta[..., None, None] * np.sin(angle), 0
    )
    return (2 / np.pi * (gap**2 * weights * half).sum((-2, -1)))[()]
