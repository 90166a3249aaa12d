"""A residual net near its start: Lemmas 4.2, B.3 to B.5 and the complexity of the neighbourhood of
Frei et al. 2019.

Changes of the weights are measured at several radii tau at once and without keeping the changed
nets: those functions take an axis of T radii first, then one of n inputs. The neighbourhood is
||W_l - W_l(0)||_F <= tau in every layer (Section 3); a direction is a list, or generator, D_1, ..,
D_{L+1} with ||D_l||_F = 1.
"""

import torch

from ...norms import spectral_norm
from .attacks import PAST_ZERO, flips


def partners(x, distances, *, seed):
    """Points of the sphere at Euclidean distances (n,), at most 2, from unit vectors x (n, d), in
    random directions.
    """
    generator = torch.Generator().manual_seed(seed)
    away = torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x)
    away = away - (away * x).sum(1, keepdim=True) * x
    angle = 2 * torch.asin(distances.to(x) / 2).unsqueeze(1)
    return x * angle.cos() + away / away.norm(dim=1, keepdim=True) * angle.sin()


def gaussian_directions(net, *, seed):
    """Independent Gaussian directions, layer by layer. The net's own seed gives its weights."""
    generator = torch.Generator().manual_seed(seed)
    for W in net.W:
        draw = torch.randn(W.shape, generator=generator, dtype=torch.float64).to(W)
        yield draw / draw.norm()


def gradient_directions(net, x, c):
    """The directions of sum_i c_i df(x_i)/dW_l, layer by layer; x: (n, d), c: (n,)."""
    for a, b in net.factors(x, c):
        gradient = a.mT @ b
        yield gradient / gradient.norm()


def moved(net, directions, tau=1.0):
    """The net with weights W_l + tau D_l."""
    return net.with_weights([W.add(D, alpha=tau) for W, D in zip(net.W, directions, strict=True)])


def along(net, x, directions, taus):
    """The nets with weights W_l + tau D_l, at T radii taus; x: (n, d).

    Returns {"flips": shares of the patterns that differ, (T, n, L + 1), "shifts": |x_l' - x_l|, (T,
    n, L + 1), "sums": what bounds them in Lemma B.4 with C_2 = 1, from norms by `spectral_norm`,
    (T, 1, L + 1), "h": its last, that of Lemma 4.2, (T, 1), "f": f(x), (n,), "moved f": (T, n),
    "linear": <grad f(x), D>, (n,)}.
    """
    start = net.forward(x)
    factors, directions = net.factors(x, forward=start), iter(directions)
    radii = torch.as_tensor(taus, dtype=x.dtype, device=x.device)[:, None, None]
    norms, linear = [], []

    def change(l, h, z):
        D, (a, b) = next(directions), factors[l]
        norms.append(spectral_norm(D))
        linear.append(((a @ D) * b).sum(-1))
        return radii * (h @ D)

    after = net.forward(x.expand(len(taus), *x.shape), change)
    return {
        **_compared(after, start),
        **_sums(net, [radii[..., 0] * norm for norm in norms]),
        **{"f": start[0][-1] @ net.v, "moved f": after[0][-1] @ net.v, "linear": sum(linear)},
    }


def mirrored(net, x, taus, first=1):
    """What the linearisation at the start misses where layers mirror z_j to -z_j for it, and h:
    both (T, n).

    One change for each radius and input x (n, d), of norm tau at most in every layer from `first`
    on. A mirrored z_j bends f by b_j |z_j| with b the derivative of f by x_l; those with b_j > 0
    are taken, the least |z_j|/b_j first.
    """
    activations, patterns = net.forward(x)
    factors, linear, norms = net.factors(x, forward=(activations, patterns)), [], []
    b = [net.v.expand_as(activations[-1])]
    for l in range(net.L + 1, 1, -1):
        b.insert(0, net.product_transposed(patterns, l, l, b[0]))
    radii = torch.as_tensor(taus, dtype=x.dtype, device=x.device)[:, None, None]

    def change(l, h, z):
        if l + 1 < first:
            norms.append(torch.zeros_like(z[..., 0]))
            return None
        size, (below, back) = h.norm(dim=-1, keepdim=True), factors[l]
        price = (z.abs() / b[l]).where(b[l] > 0, torch.inf)
        delta = 2 * flips(z.expand(len(taus), *z.shape[-2:]), price, radii * size / 2) / PAST_ZERO
        linear.append((h * below).sum(-1) * (delta * back).sum(-1) / size[..., 0] ** 2)
        norms.append(delta.norm(dim=-1) / size[..., 0])
        return delta

    after = net.forward(x.expand(len(taus), *x.shape), change)[0][-1]
    return (after - activations[-1]) @ net.v - sum(linear), _sums(net, norms)["h"]


def _compared(after, start):
    """Shares of the patterns that differ and |x_l' - x_l| of two forward passes, (T, n, L + 1)."""
    flipped = [(a != b).double().mean(-1) for a, b in zip(after[1], start[1], strict=True)]
    shifts = [(a - b).norm(dim=-1) for a, b in zip(after[0], start[0], strict=True)]
    return {"flips": torch.stack(flipped, -1), "shifts": torch.stack(shifts, -1)}


def _sums(net, norms):
    """{"sums": n_1 + theta sum_{r=2..l} n_r, + n_{L+1} at l = L + 1, (..., L + 1), "h": the last}
    of norms n_l.
    """
    weighted = [norm * (net.theta if net.skips(l) else 1) for l, norm in enumerate(norms)]
    sums = torch.stack(weighted, -1).cumsum(-1)
    return {"sums": sums, "h": sums[..., -1]}


class FlipAttack:
    """Nets that flip as many patterns of one input each as changes of norm tau allow: T radii, n
    inputs x (n, d).

    Layer by layer, among the neurons that still agree with the start the cheapest are flipped, by
    the change h_l delta_l^T/|h_l|^2 of W_l with h_l the activation of the changed net below.
    `inputs`, `deltas` and `patterns` hold h_l, delta_l and the patterns of every layer, each (T, n,
    width); `inputs` ends with the last activation.
    """

    def __init__(self, net, x, taus):
        self.net, self._start, self.deltas = net, net.forward(x), []
        radii = torch.as_tensor(taus, dtype=x.dtype, device=x.device)[:, None, None]

        def change(l, h, z):
            price = z.abs().where((z > 0) == self._start[1][l], torch.inf)
            self.deltas.append(flips(z, price, radii * h.norm(dim=-1, keepdim=True)))
            return self.deltas[-1]

        x = x.expand(len(taus), *x.shape)
        activations, self.patterns = net.forward(x, change)
        self.inputs = [x, *activations]

    def responses(self):
        """As `along` gives them: {"flips", "shifts", "sums" (T, n, L + 1), "h" (T, n)}, of the
        norms of the changes.
        """
        norms = [
            d.norm(dim=-1) / h.norm(dim=-1) for d, h in zip(self.deltas, self.inputs, strict=False)
        ]
        return {
            **_compared((self.inputs[1:], self.patterns), self._start),
            **_sums(self.net, norms),
        }

    def output_vectors(self):
        """Yields (l, (H_l^{L+1})^T v), l = L + 1..2, of the changed nets, (T, n, m).

        Source: Lemma B.5.
        """
        g = self.net.v.expand_as(self.deltas[-1])
        for l in range(self.net.L, 0, -1):
            masked, h = g * self.patterns[l], self.inputs[l]
            reach = (self.deltas[l] * masked).sum(-1, keepdim=True) / h.square().sum(
                -1, keepdim=True
            )
            step = masked @ self.net.W[l].mT + h * reach
            g = torch.add(g, step, alpha=self.net.theta) if self.net.skips(l) else step
            yield l + 1, g


def stretched(net, x, taus, rounds=4):
    """As `along` gives them, for nets whose last activation moves far for each input: {"flips",
    "shifts", "sums", "h"}.

    Every W_l changes by tau h_l u_l^T/|h_l|, h_l the activation of the changed net below. The unit
    vectors u_l pull x_{L+1} along the shift of the round before, at first along itself: power
    iteration on the net linear at the start.
    """
    radii = torch.as_tensor(taus, dtype=x.dtype, device=x.device)[:, None, None]
    start, after = net.forward(x), None
    for _ in range(rounds):
        away = (
            start[0][-1].expand(len(taus), *x.shape[:1], -1)
            if after is None
            else after[0][-1] - start[0][-1]
        )
        pulls = [pull / pull.norm(dim=-1, keepdim=True) for pull in _pulls(net, start[1], away)]
        push = lambda l, h, z, pulls=pulls: radii * h.norm(dim=-1, keepdim=True) * pulls[l]  # noqa: E731
        after = net.forward(x.expand(len(taus), *x.shape), push)
    return {
        **_compared(after, start),
        **_sums(net, [radii[..., 0].expand(-1, len(x))] * (net.L + 1)),
    }


def _pulls(net, patterns, q):
    """d(q . x_{L+1})/d(W_l^T x_{l-1}) of the layers l = 1..L + 1, up to theta, for given
    patterns.
    """
    pulls = []
    for l in reversed(range(net.L + 1)):
        pulls.append(q * patterns[l])
        if l:
            step = pulls[-1] @ net.W[l].mT
            q = torch.add(q, step, alpha=net.theta) if net.skips(l) else step
    return pulls[::-1]


def sparse_suprema(g, sparsities):
    """sup |g . a| over unit vectors a with at most s nonzero entries, (..., len(sparsities)):
    exact; g: (..., m).
    """
    squares = g.square().sort(dim=-1, descending=True).values.cumsum(-1)
    return squares[..., [s - 1 for s in sparsities]].sqrt()


def linear_complexities(net, x, signs):
    """||sum_i xi_i df(x_i)/dW_l||_F / n of every layer, (draws, L + 1), for the rows xi of signs
    (draws, n).

    tau times the sum over layers, averaged over xi, is the linear part I_2 of the Rademacher
    complexity of the tau-neighbourhood. The square is xi^T G xi with G of `net.grams`. Source: Frei
    et al. 2019, Appendix A.2.
    """
    squares = ((signs @ net.grams(x)) * signs).sum(-1).clamp(min=0)
    return squares.sqrt().mT / signs.shape[-1]
