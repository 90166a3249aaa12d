"""Inference that reads the open part of a layer alone, with gates that are equal in blocks of units.

Source: Noy et al. 2021, Section 4.4.
"""

from itertools import pairwise

import torch


def open_spans(gate, block):
    """[(start, end), ..] of the open stretches, in units, for positive or zero gates of blocks of `block` units."""
    found = []
    for i, open_ in enumerate((gate > 0).tolist()):
        if open_ and found and found[-1][1] == i * block:
            found[-1] = (found[-1][0], (i + 1) * block)
        elif open_:
            found.append((i * block, (i + 1) * block))
    return found


def open_product(W, h, rows, columns, out):
    """The entries of W h in the open stretches `rows`, into `out`, h zero outside those of `columns`.

    The other entries of `out` stay as they are. Reads the open parts of W alone, in place.
    """
    for start, end in rows:
        part = out[start:end]
        part.zero_()
        for left, right in columns:
            part.addmv_(W[start:end, left:right], h[left:right])
    return out


class BlockInference:
    """A GReLU net whose gates are equal within blocks, for one input at a time, computing what is open alone.

    run: a descent of one run, opened with factors (U_k, V_k) of Psi_k, U_k the same for all units of a block. The gate
    net is constant on blocks: it is one of width r, the number of blocks, with the matrices V_k U_{k-1}, (r, r). So a
    layer takes about m^2/4 + r^2 multiplications, and m^2 in a ReLU net.
    """

    def __init__(self, run, factors):
        self.B, self.C, self.W, self.block = run.B, run.C, run.W, run.net.m // factors[0][0].shape[1]
        self.first = factors[0][1]
        self.gates = [V @ U for (U, _), (_, V) in pairwise(factors)]
        self.h = [torch.zeros_like(self.C[:, 0]) for _ in range(2)]

    def __call__(self, x):
        """Outputs (d_y,) at one input x (d_x,)."""
        h, out = (self.C @ x).clamp_(min=0), self.h[0]
        s, columns = self.first @ h, [(0, len(h))]
        for k, W in enumerate(self.W):
            s = (self.gates[k - 1] @ s if k else s).clamp_(min=0)
            rows = open_spans(s, self.block)
            open_product(W, h, rows, columns, out)
            h, out, columns = out, self.h[1 - k % 2], rows
        result = torch.zeros_like(self.B[:, 0])
        for start, end in columns:
            result += self.B[:, start:end] @ h[start:end]
        return result
