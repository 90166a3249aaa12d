"""The locally connected ReLU net of Allen-Zhu et al. 2019, Appendix B: every position has weights of its own."""

import torch

from ..errors import ParameterError
from ..models.deep_relu import LAST, drawn

BIASES = 500_000  # the streams of the biases begin here


class LocalRuns:
    """h_{l,j} = relu(W_{l,j} h_{l-1,Q_j} + tau b_{l,j}) for l < L, from h_{0,j} = relu(A_j x_{Q_j}).

    h_L = relu(W_L h_{L-1}), y = B h_L. There are J positions with m channels each, of which position j sees the q
    positions Q_j below. W_L (J m, J m) and B (d, J m) are dense; W_1..W_L are trained. Entries, by their variances:
    A_j, W_{l,j}, b_{l,j} ~ N(0, 2/(q m)), W_L ~ N(0, 2/(J m)), B ~ N(0, 1/d); with init="printed", as in the paper,
    A_j ~ N(0, 2/sqrt(q m)) and W_L ~ N(0, 2/(q m)).
    neighbours: Q, (J, q) position numbers, as `ring` and `torus` give them; shared: all positions share one A, one W_l
    and one b_l, a true convolution, which the paper has not. seeds: one per run. place: dtype, device, draw_on.
    Source: Allen-Zhu et al. 2019, Appendix B.
    """

    def __init__(self, neighbours, m, d, L, *, tau=0.0, init="corrected", shared=False, seeds, **place):
        if init not in ("corrected", "printed"):
            raise ParameterError(f"init must be corrected or printed, not {init!r}")
        self.Q, self.channels, self.d, self.L, self.tau = neighbours.to(place.get("device", "cpu")), m, d, L, tau
        self.runs, self.seeds = len(seeds), list(seeds)
        self.J, self.q = neighbours.shape
        self.m = self.J * m  # what decides how runs are executed
        own = 1 if shared else self.J
        printed = init == "printed"
        local = 2 / (self.q * m)
        self._shapes = {
            0: ((own, m, self.q), 2 / (self.q * m) ** 0.5 if printed else local),
            **{l: ((own, m, self.q * m), local) for l in range(1, L)},
            **{BIASES + l: ((own, 1, m), local) for l in range(1, L)},
            L: ((self.m, self.m), local if printed else 2 / self.m),
            LAST: ((d, self.m), 1 / d),
        }
        self._place = place

    def layer(self, stream, run):
        """The draw of a layer for one run, or stacked for all (None)."""
        seed = self.seeds if run is None else self.seeds[run]
        return drawn(*self._shapes[stream], seed=seed, stream=stream, **self._place)

    def descent(self, x, run=None):
        """Open one run (int) or all (None) for training on x (n, J), or (R, n, J) for one data set per run."""
        return LocalDescent(self, run, x if x.ndim == 2 or run is None else x[run])


class LocalDescent:
    """Such a net in training; activations are held as (..., J, n, m)."""

    def __init__(self, nets, run, x):
        self.nets, self.run = nets, run
        self.h0 = (self._seen(x.mT.unsqueeze(-1)) @ nets.layer(0, run).mT).clamp_(min=0)
        self.W = [nets.layer(l, run) for l in range(1, nets.L + 1)]
        self.bias = [nets.tau * nets.layer(BIASES + l, run) for l in range(1, nets.L)]
        self.B = nets.layer(LAST, run)
        self.fixed = [nets.layer(0, run), nets.Q, nets.tau, self.B]

    @property
    def state(self):
        return {f"W{l}": W for l, W in enumerate(self.W, 1)}

    def _seen(self, h):
        """What the positions see, (..., J, n, q m), of h (..., J, n, m)."""
        return h[..., self.nets.Q, :, :].transpose(-3, -2).flatten(-2)

    def _unseen(self, delta):
        """The transpose of `_seen`: (..., J, n, m) of delta (..., J, n, q m)."""
        parts = delta.unflatten(-1, (self.nets.q, -1)).transpose(-3, -2).flatten(-4, -3)  # (..., J q, n, m)
        total = parts.new_zeros(*parts.shape[:-3], self.nets.J, *parts.shape[-2:])
        return total.index_add_(-3, self.nets.Q.flatten(), parts)

    def forward(self):
        """Outputs (..., n, d) at the current weights."""
        self.h, self.seen = [self.h0], []
        for W, b in zip(self.W, self.bias, strict=False):
            self.seen.append(self._seen(self.h[-1]))
            self.h.append((self.seen[-1] @ W.mT + b).clamp_(min=0))
        self.seen.append(self.h[-1].transpose(-3, -2).flatten(-2))  # (..., n, J m)
        self.h.append((self.seen[-1] @ self.W[-1].mT).clamp_(min=0))
        return self.h[-1] @ self.B.mT

    def descend(self, v):
        """Move the weights by -sum_i v_i . dy_i/dW; v (..., n, d). To be called after `forward`."""
        delta = (v @ self.B) * (self.h[-1] > 0)
        back = (delta @ self.W[-1]).unflatten(-1, (self.nets.J, -1)).transpose(-3, -2)
        self.W[-1] -= delta.mT @ self.seen[-1]
        for l in range(self.nets.L - 2, -1, -1):
            delta = back * (self.h[l + 1] > 0)
            if l:
                back = self._unseen(delta @ self.W[l])
            step = delta.mT @ self.seen[l]
            self.W[l] -= step.sum(-3, keepdim=True) if self.W[l].shape[-3] == 1 else step

    def norms(self):
        """|h_0|, .., |h_L| of every input, (..., n, L + 1). After `forward`."""
        hidden = [h.square().sum((-3, -1)).sqrt() for h in self.h[:-1]]
        return torch.stack([*hidden, self.h[-1].norm(dim=-1)], -1)

    def movement(self):
        """||W_l - W_l(0)||_F of every layer, (..., L), over all positions."""
        changes = [W - self.nets.layer(l, self.run) for l, W in enumerate(self.W, 1)]
        dims = [(-3, -2, -1)] * (len(changes) - 1) + [(-2, -1)]
        return torch.stack([c.square().sum(d).sqrt() for c, d in zip(changes, dims, strict=True)], -1)


def ring(positions, q):
    """Neighbours (positions, q) on a ring: the position itself and those about it, q odd."""
    return (torch.arange(positions)[:, None] + torch.arange(q) - q // 2) % positions


def torus(side, reach=1):
    """Neighbours (side^2, (2 reach + 1)^2) on a square grid whose opposite edges are joined."""
    steps = torch.arange(-reach, reach + 1)
    row, column = torch.arange(side**2) // side, torch.arange(side**2) % side
    rows = (row[:, None, None] + steps[:, None]) % side
    columns = (column[:, None, None] + steps[None, :]) % side
    return (rows * side + columns).flatten(1)
