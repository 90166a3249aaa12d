"""Points of the sphere at given distances from each other."""

import torch

from ..errors import ParameterError


def partners(x, distances, *, seed):
    """Points of the sphere at Euclidean distances (n,) from unit vectors x (n, d), in random ways.

    distances: at most 2.
    """
    generator = torch.Generator().manual_seed(seed)
    away = torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x)
    away = away - (away * x).sum(1, keepdim=True) * x
    angle = 2 * torch.asin(distances.to(x) / 2).unsqueeze(1)
    return x * angle.cos() + away / away.norm(dim=1, keepdim=True) * angle.sin()


def near_pair(n, p, delta, *, seed):
    """n unit inputs (n, p) with last coordinate 1/sqrt 2, the first two at distance delta; labels.

    Labels (n,) are +1 or -1, those of the first two opposite. The others are drawn at random, again
    where one is nearer than delta to one before it. float64. Raises ParameterError where so many do
    not fit. Source: Allen-Zhu et al. 2019, Assumption 2.1.
    """
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(1, p - 1, generator=generator, dtype=torch.float64) / 2**0.5
    first = first / first.norm()
    second = partners(first, torch.tensor([delta * 2**0.5]), seed=seed + 1)
    z = torch.cat([first, second]) / 2**0.5
    for more in torch.randn(1000 * n, p - 1, generator=generator, dtype=torch.float64):
        if len(z) >= n:
            break
        more = more[None] / more.norm() / 2**0.5
        if torch.cdist(more, z).min() >= delta:
            z = torch.cat([z, more])
    else:
        raise ParameterError(
            f"{n} points of a sphere in {p - 1} dimensions do not keep a distance of {delta}"
        )
    labels = torch.randint(2, (n,), generator=generator) * 2.0 - 1
    labels[1] = -labels[0]
    last = torch.full((n, 1), 0.5**0.5, dtype=torch.float64)
    return torch.cat([z, last], 1), labels.double()
