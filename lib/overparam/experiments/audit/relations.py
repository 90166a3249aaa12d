"""Relations and orders as words, so that a recomputation says of itself whether and where it holds."""

import inspect
from fractions import Fraction

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr

_SMALL = ("delta", "lam0", "kappa", "eps", "gamma", "tau", "theta", "omega", "beta", "sigma")  # at most 1


def holds(ok, **at):
    """Words: "holds", or "fails at" the first point where ok is false. ok: an array; at: coordinates that broadcast."""
    ok = np.asarray(ok)
    if ok.all():
        return "holds"
    first = np.argmin(ok.ravel())
    point = (f"{name} = {np.broadcast_to(values, ok.shape).ravel()[first]:.3g}" for name, values in at.items())
    return "fails at " + ", ".join(point)


def bounded(values, most=1.5):
    """Words: "holds" if a ratio of what is bounded to its bound, along a sequence that runs to a limit, stops growing.

    values: (k,), the ratio at k points of the sequence; most: by how much the last may exceed the middle one.
    """
    values = np.asarray(values, dtype=float)
    middle, last = values[len(values) // 2], values[-1]
    return "holds" if last <= most * middle else f"fails: the ratio grows to {last:.2g}"


def order(formula):
    """The exponents of a product of powers, such as "n^2 m^(-1/2)"; formula: a function of its letters alone.

    Raises ValueError where it is no product of powers. A logarithm has a letter of its own, `logm`, or stays away.
    """
    letters = list(inspect.signature(formula).parameters)
    start = {a: 2.0**-3 if a in _SMALL else 2.0**6 for a in letters}
    base = formula(**start)
    powers = {}
    for a in letters:
        steps = [0.5, 0.25] if a in _SMALL else [2.0, 4.0]
        slopes = [np.log(formula(**{**start, a: start[a] * step}) / base) / np.log(step) for step in steps]
        if not np.isclose(*slopes, rtol=0, atol=1e-9):
            raise ValueError(f"no power of {a}: local exponents {slopes}")
        powers[a] = Fraction(float(slopes[0])).limit_denominator(100)
    return " ".join(_power(a, p) for a, p in powers.items() if p) or "O(1)"


def _power(letter, p):
    if p == 1:
        return letter
    return f"{letter}^{p}" if p.denominator == 1 and p > 0 else f"{letter}^({p})"


def both_positive(rho):
    """P(g > 0, h > 0) of standard normals with correlation rho, by quadrature over g; no closed form is used."""
    slope = rho / np.sqrt(1 - rho**2)
    return quad(lambda g: np.exp(-g * g / 2) * ndtr(slope * g), 0, np.inf, epsabs=1e-12)[0] / np.sqrt(2 * np.pi)
