"""Losses f(u - y) of each output whose derivative has Lipschitz constant 1, for Theorem 6 of Allen-Zhu et al. 2019."""

import torch

from ..errors import ParameterError
from ..training import Loss


def _squares(r):
    return r.square() / 2, r


def _sine(r):
    return (r.square() + 3 * r.sin().square()) / 8, (2 * r + 3 * (2 * r).sin()) / 8


def _power(p):
    """|r|^p / (p (p - 1)) up to |r| = 1, where its second derivative is 1, and a parabola from there on."""

    def f(r):
        size = r.abs()
        inner, beyond = size.clamp(max=1), (size - 1).clamp(min=0)
        value = inner**p / (p * (p - 1)) + beyond / (p - 1) + beyond.square() / 2
        return value, torch.sign(r) * (inner ** (p - 1) / (p - 1) + beyond)

    return f


def _bounded(r):
    square = r.square()
    return square / (1 + square) / 2, r / (1 + square).square()


_KINDS = {"squares": _squares, "pl": _sine, "quartic": _power(4), "power8": _power(8), "bounded": _bounded}


class SmoothLoss(Loss):
    """F = sum over examples and outputs of f(u - y), per run, with |f''| <= 1.

    kind: "squares", r^2/2; "pl", (r^2 + 3 sin^2 r)/8, not convex, with f'^2 >= 0.0439 f; "quartic" and "power8",
    r^4/12 and r^8/56 up to |r| = 1 and a parabola beyond, convex; "bounded", r^2/(1 + r^2)/2, not convex, below 1/2.
    y: targets (n, d), or (R, n, d) with `runs_axis`. Source: Allen-Zhu et al. 2019, Theorem 6, Appendix A; the
    examples are ours.
    """

    def __init__(self, y, kind, *, runs_axis=False):
        if kind not in _KINDS:
            raise ParameterError(f"the kind of loss must be one of {', '.join(_KINDS)}, not {kind!r}")
        super().__init__(y, runs_axis=runs_axis)
        self.kind = kind

    def __call__(self, u):
        value, derivative = _KINDS[self.kind](u - self.y)
        return value.sum((-2, -1)), derivative
