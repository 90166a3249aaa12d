"""A residual net near its start: Lemmas 4.2, B.3 to B.5 and Theorem 3.6 of Frei et al. 2019.

Changes of the weights are measured at several radii tau at once and without keeping the changed
nets: those functions take an axis of T radii first, then one of n inputs. The neighbourhood is
||W_l - W_l(0)||_F <= tau in every layer (Section 3); a direction is a list, or generator, D_1, ..,
D_{L+1} with ||D_l||_F = 1.
"""

import torch

from ...norms import spectral_norm
from ..finite_width_kernels import layer_kernels
from .attacks import PAST_ZERO, flips


def gaussian_directions(net, *, seed):
    """Independent Gaussian directions, layer by layer. The net's own seed gives its weights."""
    generator = torch.Generator().manual_seed(seed)
    for W in net.W:
        draw = torch.randn(W.shape, generator=generator, dtype=torch.float64).to(W)
        yield draw / draw.norm()


def gradient_directions(net, x, v):
    """The directions of sum_i v_i df(x_i)/dW_l, layer by layer; x: (n, d), v: (n,)."""
    for h, z in net.factors(x, v):
        gradient = h.mT @ z
        yield gradient / gradient.norm()


def moved(net, directions, tau=1.0):
    """The net with weights W_l + tau D_l."""
    return net.with_weights([W.add(D, alpha=tau) for W, D in zip(net.W, directions, strict=True)])


def along(net, x, directions, taus):
    """What happens to the nets with weights W_l + tau D_l, at T radii taus; x: (n, d).

    Returns {"flips": shares of the patterns that differ, (T, n, L + 1), "shifts": |x_l' - x_l|,
    (T, n, L + 1), "sums": what bounds them in Lemma B.4 with C_2 = 1, from norms by
    `spectral_norm`, (T, 1, L + 1), "h": its last, that of Lemma 4.2, (T, 1), "f": f(x), (n,),
    "moved f": (T, n), "linear": <grad f(x), D>, (n,)}.
    """
    start = net.forward(x)
    factors, directions = net.factors(x, forward=start), iter(directions)
    radii = _column(taus, x)
    norms, linear = [], []

    def change(l, h, z):
        D, (h0, z0) = next(directions), factors[l - 1]
        norms.append(spectral_norm(D))
        linear.append(((h0 @ D) * z0).sum(-1))
        return radii * (h @ D)

    after = net.forward(x.expand(len(taus), *x.shape), change)
    found = _responses(net, after, start, [radii[..., 0] * norm for norm in norms])
    found["f"] = start[0][-1] @ net.v
    found["moved f"] = after[0][-1] @ net.v
    found["linear"] = sum(linear)
    return found


def mirrored(net, x, taus, first=1):
    """(what the linearisation at the start misses where layers mirror z_j to -z_j, h), both (T, n).

    One change for each radius and input x (n, d), of norm tau at most in every layer from `first`
    on. A mirrored z_j bends f by b_j |z_j| with b the derivative of f by x_l; those with b_j > 0
    are taken, the least |z_j|/b_j first.
    """
    activations, patterns = net.forward(x)
    factors, linear, norms = net.factors(x, forward=(activations, patterns)), [], []
    b = [net.v.expand_as(activations[-1])]
    for l in range(net.L + 1, 1, -1):
        b.insert(0, net.product_transposed(patterns, l, l, b[0]))
    radii = _column(taus, x)

    def change(l, h, z):
        if l < first:
            norms.append(torch.zeros_like(z[..., 0]))
            return None
        size, (h0, z0) = h.norm(dim=-1, keepdim=True), factors[l - 1]
        price = (z.abs() / b[l - 1]).where(b[l - 1] > 0, torch.inf)
        z = z.expand(len(taus), *z.shape[-2:])
        delta = 2 * flips(z, price, radii * size / 2) / PAST_ZERO
        linear.append((h * h0).sum(-1) * (delta * z0).sum(-1) / size[..., 0] ** 2)
        norms.append(delta.norm(dim=-1) / size[..., 0])
        return delta

    after = net.forward(x.expand(len(taus), *x.shape), change)[0][-1]
    return (after - activations[-1]) @ net.v - sum(linear), _sums(net, norms)[..., -1]


class FlipAttack:
    """Nets that flip as many patterns of one input each as changes of norm tau allow.

    T radii, n inputs x (n, d). Layer by layer, among the neurons that still agree with the start
    the cheapest are flipped, by the change h_l delta_l^T/|h_l|^2 of W_l with h_l the input of the
    layer in the changed net. `inputs`, `deltas` and `patterns` hold h_l, delta_l and the patterns
    of every layer, each (T, n, width); `inputs` ends with the last activation.
    """

    def __init__(self, net, x, taus):
        self.net, self._start, self.deltas = net, net.forward(x), []
        radii = _column(taus, x)

        def change(l, h, z):
            price = z.abs().where((z > 0) == self._start[1][l - 1], torch.inf)
            self.deltas.append(flips(z, price, radii * h.norm(dim=-1, keepdim=True)))
            return self.deltas[-1]

        x = x.expand(len(taus), *x.shape)
        activations, self.patterns = net.forward(x, change)
        self.inputs = [x, *activations]

    def responses(self):
        """{"flips", "shifts", "sums" (T, n, L + 1), "h" (T, n)} as of `along`."""
        norms = []
        for delta, h in zip(self.deltas, self.inputs, strict=False):
            norms.append(delta.norm(dim=-1) / h.norm(dim=-1))
        return _responses(self.net, (self.inputs[1:], self.patterns), self._start, norms)

    def output_vectors(self):
        """Yields (l, (H_l^{L+1})^T v), l = L + 1..2, of the changed nets, (T, n, m).

        Source: Frei et al. 2019, Lemma B.5.
        """
        g = self.net.v.expand_as(self.deltas[-1])
        for l in range(self.net.L + 1, 1, -1):
            h, delta = self.inputs[l - 1], self.deltas[l - 1]
            active = g * self.patterns[l - 1]
            reach = (delta * active).sum(-1, keepdim=True) / h.square().sum(-1, keepdim=True)
            g = self.net.joined(l, g, active @ self.net.W[l - 1].mT + h * reach)
            yield l, g


def stretched(net, x, taus, rounds=4):
    """{"flips", "shifts", "sums", "h"} as of `along`, of nets whose last activation moves far.

    One change for each input: every W_l changes by tau h_l u_l^T/|h_l|, h_l the layer's input in
    the changed net. The unit vectors u_l pull x_{L+1} along the shift of the round before, at first
    along itself: power iteration on the net linear at the start.
    """
    radii = _column(taus, x)
    start = net.forward(x)
    away = start[0][-1].expand(len(taus), *x.shape[:1], -1)
    for _ in range(rounds):
        pulls = [pull / pull.norm(dim=-1, keepdim=True) for pull in _pulls(net, start[1], away)]

        def push(l, h, z, pulls=pulls):
            return radii * h.norm(dim=-1, keepdim=True) * pulls[l - 1]

        after = net.forward(x.expand(len(taus), *x.shape), push)
        away = after[0][-1] - start[0][-1]
    norms = [radii[..., 0].expand(-1, len(x))] * (net.L + 1)
    return _responses(net, after, start, norms)


def _pulls(net, patterns, q):
    """d(q . x_{L+1})/d(W_l^T x_{l-1}), l = 1..L + 1, up to theta, for given patterns."""
    pulls = []
    for l in range(net.L + 1, 0, -1):
        pulls.append(q * patterns[l - 1])
        if l > 1:
            q = net.joined(l, q, pulls[-1] @ net.W[l - 1].mT)
    return pulls[::-1]


def _column(taus, x):
    return torch.as_tensor(taus, dtype=x.dtype, device=x.device)[:, None, None]


def _responses(net, after, start, norms):
    """{"flips", "shifts", "sums", "h"} of two forward passes and the norms of the changes."""
    flipped = [(a != b).double().mean(-1) for a, b in zip(after[1], start[1], strict=True)]
    shifts = [(a - b).norm(dim=-1) for a, b in zip(after[0], start[0], strict=True)]
    sums = _sums(net, norms)
    return {
        "flips": torch.stack(flipped, -1),
        "shifts": torch.stack(shifts, -1),
        "sums": sums,
        "h": sums[..., -1],
    }


def _sums(net, norms):
    """n_1 + theta sum_{r=2..l} n_r, and + n_{L+1} at l = L + 1, (..., L + 1), of norms n_l."""
    weighted = [norm * (net.theta if net.skips(l) else 1) for l, norm in enumerate(norms, 1)]
    return torch.stack(weighted, -1).cumsum(-1)


def sparse_suprema(g, sparsities):
    """sup |g . a| over unit vectors a with at most s nonzeros, (..., len(sparsities)): exact.

    g: (..., m).
    """
    squares = g.square().sort(dim=-1, descending=True).values.cumsum(-1)
    return squares[..., [s - 1 for s in sparsities]].sqrt()


def linear_complexities(net, x, signs):
    """||sum_i xi_i df(x_i)/dW_l||_F / n of every layer, (draws, L + 1).

    For the rows xi of signs (draws, n). tau times the sum over layers, averaged over xi, is the
    linear part I_2 of the Rademacher complexity of the tau-neighbourhood. The square is xi^T K_l xi
    with the layer's kernel K_l. Source: Frei et al. 2019, Appendix A.2.
    """
    kernels = layer_kernels(net.factors(x))
    squares = ((signs @ kernels) * signs).sum(-1).clamp(min=0)
    return squares.sqrt().mT / signs.shape[-1]
