"""Two inputs at a given distance among others, for Allen-Zhu et al. 2019."""

import torch

from ..errors import ParameterError
from ..theory.perturbation.residual import partners


def near_pair(n, p, delta, *, seed):
    """n unit inputs (n, p) with last coordinate 1/sqrt 2, the first two at distance delta, and
    labels (n,), +1 or -1.

    The first two have opposite labels. The others are drawn at random, again where one is nearer
    than delta to one before it. float64. Raises ParameterError where so many do not fit. Source:
    Allen-Zhu et al. 2019, Assumption 2.1.
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
        raise ParameterError(
            f"{n} points of a sphere in {p - 1} dimensions do not keep a distance of {delta}"
        )
    labels = torch.randint(2, (n,), generator=generator) * 2.0 - 1
    labels[1] = -labels[0]
    return torch.cat([z, torch.full((n, 1), 0.5**0.5, dtype=torch.float64)], 1), labels.double()
