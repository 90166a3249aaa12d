"""All attacks on a deep ReLU net over many radii and seeds, and the radii at which their exponents can be measured.

Source: Allen-Zhu et al. 2019, Sections 8 and 14; windows and attacks are ours.
"""

import math

import numpy as np
import torch

from ..theory.fits import loglog_slope
from ..theory.perturbation import attacks
from ..theory.perturbation.changes import Start

NOISE = 500_000  # the stream of Gaussian changes, which is no layer's


def adversarial_window(m, count):
    """Radii omega (count,), evenly spaced on a logarithmic axis, at which the closed forms of one layer hold.

    From where the worst change flips 10 signs to 0.1, above which the density of the pre-activations is not flat.
    """
    return np.geomspace(math.sqrt(math.pi / 3) * (10 / m) ** 1.5, 0.1, count)


def gaussian_window(m, count):
    """The same for Gaussian changes: from where they flip 20 signs of their own layer to 0.5."""
    return np.geomspace(20 * 2 * math.sqrt(2) * math.pi / m, 0.5, count)


def over_seeds(make, x, radii, quantities, *, seeds, at_once=None):
    """{attack: {quantity: (S, T, n) or (S, T, n, L) float64 array}} of the nets make(seed) at the inputs x (n, p).

    radii: {name of an attack in `attacks`: its T radii}; quantities: of `Attack.responses`, or "across", the
    change of the kernel of the first two inputs by what is made for the first, (S, T, 1); at_once: how many radii are
    held in memory.
    """
    rows = [_of_net(make(seed), x, radii, quantities, seed, at_once) for seed in seeds]
    return {name: {q: np.stack([row[name][q] for row in rows]) for q in quantities} for name in radii}


def _of_net(net, x, radii, quantities, seed, at_once):
    """What `over_seeds` gives of one net, which is free to go when it returns."""
    start = Start(net, x)
    return {name: _responses(start, name, omegas, quantities, seed, at_once) for name, omegas in radii.items()}


def _responses(start, name, omegas, quantities, seed, at_once):
    step = at_once or len(omegas)
    parts = [_part(start, name, omegas[i : i + step], quantities, seed) for i in range(0, len(omegas), step)]
    return {q: torch.cat([part[q] for part in parts]).double().cpu().numpy() for q in quantities}


def _part(start, name, omegas, quantities, seed):
    make = getattr(attacks, name)
    options = {"seed": seed * 1_000_003 + NOISE} if name == "random" else {}
    attack = make(start, omegas, **options)
    found = attack.responses()
    if "across" in quantities:
        found["across"] = attack.across(0, 1).unsqueeze(-1)
    return {q: found[q] for q in quantities}


def mean(values):
    """The mean over seeds and inputs of (S, T, n, ...), (T, ...)."""
    return np.asarray(values).mean((0, 2))


def slope(omegas, values, above=0.0):
    """Log-log slope in omega >= above of the mean over seeds and inputs of values (S, T, n)."""
    omegas = np.asarray(omegas)
    return loglog_slope(omegas[omegas >= above], mean(values)[omegas >= above])


def constant(omegas, values, power):
    """Geometric mean over omega of the mean over seeds and inputs of values (S, T, n), over omega^power."""
    return float(np.exp(np.log(mean(values) / np.asarray(omegas) ** power).mean()))


def farthest(values, target):
    """Of some numbers the one farthest from `target`."""
    return max(values, key=lambda value: abs(value - target))


def largest(parts, measured, bound):
    """The largest of measured(found) over bound(omega, L, m), both (T,), over all attacks and radii of some nets.

    parts: of nets, (m, L, radii, {attack: found}); found: {quantity: array} as `over_seeds` gives it.
    """
    return max(
        float((measured(found) / bound(np.asarray(radii[name]), L, m)).max())
        for m, L, radii, attacks in parts
        for name, found in attacks.items()
    )
