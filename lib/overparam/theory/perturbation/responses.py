"""How a net near its start responds to changes of its input and its weights: Lemmas B.3-B.5, 4.2 of Frei et al. 2019.

Changes of the weights are measured at several radii tau at once and without keeping the changed nets: the functions
here take an axis of T radii first, then one of n inputs. Single changed nets are made by `neighbourhood`.
"""

import torch

from ...models.residual import ResidualReLU, theta_of
from .neighbourhood import PAST_ZERO


def at_depths(measure, d, m, depths, rule, *, seeds, dtype=torch.float64, device="cpu"):
    """{L: {name: (seeds, ...) float64 array}}: `measure(net, seed)`, a dict, of a fresh net at every depth and seed."""
    results = {}
    for L in depths:
        nets = (ResidualReLU(d, m, L, theta_of(rule, L), seed=seed, dtype=dtype, device=device) for seed in seeds)
        rows = [measure(net, seed) for net, seed in zip(nets, seeds, strict=True)]
        results[L] = {name: torch.stack([row[name] for row in rows]).double().cpu().numpy() for name in rows[0]}
    return results


def partners(x, distances, *, seed):
    """Points of the sphere at Euclidean distances (n,), at most 2, from unit vectors x (n, d), in random directions."""
    generator = torch.Generator().manual_seed(seed)
    away = torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x)
    away = away - (away * x).sum(1, keepdim=True) * x
    angle = 2 * torch.asin(distances.to(x) / 2).unsqueeze(1)
    return x * angle.cos() + away / away.norm(dim=1, keepdim=True) * angle.sin()


def to_inputs(net, x, others, first):
    """What Lemma B.3 bounds: {"jacobian": |dx_l/dx|_2 at the `first` inputs, (first, L + 1), "secant":
    |x_l - x_l'|/|x - x'| for the pairs of x and others (n, d), (n, L + 1), "output": |f(x)|, (n,)}.
    """
    (a, patterns), (b, _) = net.forward(x), net.forward(others)
    secants = torch.stack([(p - q).norm(dim=1) for p, q in zip(a, b, strict=True)], -1)
    return {
        "jacobian": net.input_jacobian_norms([pattern[:first] for pattern in patterns]),
        "secant": secants / (x - others).norm(dim=1, keepdim=True),
        "output": (a[-1] @ net.v).abs(),
    }


def gaussian_directions(net, *, seed):
    """Independent Gaussian directions of Frobenius norm 1, layer by layer. The net's own seed gives its weights."""
    generator = torch.Generator().manual_seed(seed)
    for W in net.W:
        draw = torch.randn(W.shape, generator=generator, dtype=torch.float64).to(W)
        yield draw / draw.norm()


def gradient_directions(net, x, c):
    """The directions of sum_i c_i df(x_i)/dW_l, of Frobenius norm 1, layer by layer; x: (n, d), c: (n,)."""
    activations, patterns = net.forward(x)
    for a, b in zip([x, *activations[:-1]], net.sensitivities(patterns, c), strict=True):
        gradient = a.mT @ b
        yield gradient / gradient.norm()


def along(net, x, directions, taus):
    """The nets with weights W_l + tau D_l, at all radii: directions yields D_1, .., D_{L+1}; x: (n, d); taus: T radii.

    Returns {"flips": shares of the patterns that differ, (T, n, L + 1), "shifts": |x_l' - x_l|, (T, n, L + 1),
    "h": h of Lemma 4.2, from norms by `spectral_norm`, (T, 1), "f": f(x), (n,), "moved f": (T, n), "linear":
    <grad f(x), D>, (n,)}.
    """
    activations, patterns = net.forward(x)
    sensitivities = net.sensitivities(patterns)
    radii = torch.as_tensor(taus, dtype=x.dtype, device=x.device)[:, None, None]
    h, flips, shifts, norms, linear = x.expand(len(taus), *x.shape), [], [], [], 0
    for l, (W, D) in enumerate(zip(net.W, directions, strict=True)):
        linear = linear + (((x if l == 0 else activations[l - 1]) @ D) * sensitivities[l]).sum(-1)
        z = h @ W + radii * (h @ D)
        flips.append(((z > 0) != patterns[l]).double().mean(-1))
        h = h.add(z.clamp(min=0), alpha=net.theta) if net.skips(l) else z.clamp(min=0)
        shifts.append((h - activations[l]).norm(dim=-1))
        norms.append(spectral_norm(D))
    measured = {
        "flips": torch.stack(flips, -1),
        "shifts": torch.stack(shifts, -1),
        "h": radii[:, 0] * weighted(net, norms),
    }
    return {**measured, "f": activations[-1] @ net.v, "moved f": h @ net.v, "linear": linear}


def spectral_norm(matrix, iterations=30):
    """|matrix|_2 by power iteration from a fixed random vector: from below."""
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(matrix.shape[1], generator=generator, dtype=torch.float64).to(matrix)
    for _ in range(iterations):
        a = matrix.mT @ (matrix @ (a / a.norm()))
    return (matrix @ (a / a.norm())).norm()


def weighted(net, norms):
    """h = n_1 + theta sum_{l=2..L} n_l + n_{L+1} of norms n_l, a list of L + 1 tensors; theta = 1 for a plain net."""
    return sum(norm * (net.theta if net.skips(l) else 1) for l, norm in enumerate(norms))


class Attack:
    """Nets that flip as many patterns of one input each as changes of norm tau allow: T radii, n inputs x (n, d).

    As `neighbourhood.flip_patterns`, for all pairs of a radius and an input at once. The change of W_l is
    h_l delta_l^T/|h_l|^2 with h_l the activation of the changed net below; `inputs`, `deltas` and `patterns` hold
    h_l, delta_l and the patterns of every layer, each (T, n, width); `inputs` ends with the last activation.
    """

    def __init__(self, net, x, taus):
        self.net, (self._activations, self._start) = net, net.forward(x)
        radii = torch.as_tensor(taus, dtype=x.dtype, device=x.device)[:, None, None]
        self.inputs, self.deltas, self.patterns = [x.expand(len(taus), *x.shape)], [], []
        for l, W in enumerate(net.W):
            h = self.inputs[-1]
            z = h @ W
            delta = _cheapest_flips(z, radii * h.norm(dim=-1, keepdim=True), (z > 0) == self._start[l])
            z = z + delta
            self.deltas.append(delta)
            self.patterns.append(z > 0)
            self.inputs.append(h.add(z.clamp(min=0), alpha=net.theta) if net.skips(l) else z.clamp(min=0))

    def responses(self):
        """As `along` gives them: {"flips", "shifts" (T, n, L + 1), "h" (T, n)}, h being that of the changes."""
        flips = [(a != b).double().mean(-1) for a, b in zip(self.patterns, self._start, strict=True)]
        shifts = [(a - b).norm(dim=-1) for a, b in zip(self.inputs[1:], self._activations, strict=True)]
        norms = [d.norm(dim=-1) / h.norm(dim=-1) for d, h in zip(self.deltas, self.inputs, strict=False)]
        return {"flips": torch.stack(flips, -1), "shifts": torch.stack(shifts, -1), "h": weighted(self.net, norms)}

    def output_vectors(self):
        """Yields (l, g) with g = (H_l^{L+1})^T v of the changed nets, (T, n, m), for l = L + 1 down to 2.

        |v^T H_l^{L+1} a| is |g . a|. Source: Frei et al. 2019, Lemma B.5.
        """
        g = self.net.v.expand_as(self.deltas[-1])
        for l in range(self.net.L, 0, -1):
            masked, h = g * self.patterns[l], self.inputs[l]
            reach = (self.deltas[l] * masked).sum(-1, keepdim=True) / h.square().sum(-1, keepdim=True)
            step = masked @ self.net.W[l].mT + h * reach
            g = torch.add(g, step, alpha=self.net.theta) if self.net.skips(l) else step
            yield l + 1, g


def _cheapest_flips(z, budget, among):
    """The changes of pre-activations z (..., m) that flip most signs at norms of at most budget (..., 1) each."""
    cost = (z * PAST_ZERO).square().where(among, torch.inf)
    values, order = cost.sort(dim=-1)
    chosen = torch.zeros_like(among).scatter(-1, order, values.cumsum(-1) <= budget**2)
    return torch.where(chosen, -z * PAST_ZERO, 0)


def sparse_suprema(g, sparsities):
    """sup |g . a| over unit vectors a with at most s nonzero entries, (..., len(sparsities)): exact; g: (..., m)."""
    squares = g.square().sort(dim=-1, descending=True).values.cumsum(-1)
    return squares[..., [s - 1 for s in sparsities]].sqrt()


def aligned_output_vector(net, x, tau, s):
    """g of the last layer, (n, m), for the change of W_{L+1} alone, of norm tau, that adds most to |g . a|, s nonzeros.

    The change is tau a u^T with u along Sigma_{L+1} v and a the maximiser at the start: it adds tau |u . v|, about
    tau sqrt(m/2), as long as few patterns follow.
    """
    activations, patterns = net.forward(x)
    masked, h = net.v * patterns[-1], activations[-2]
    g = masked @ net.W[-1].mT
    kept = g.abs() >= g.abs().topk(s, dim=-1).values[..., -1:]
    a, u = (t / t.norm(dim=-1, keepdim=True) for t in (g * kept, masked))
    change = tau * (h * a).sum(-1, keepdim=True) * u
    masked = net.v * (h @ net.W[-1] + change > 0)
    return masked @ net.W[-1].mT + tau * a * (u * masked).sum(-1, keepdim=True)


def last_layer(net, x, taus):
    """What `neighbourhood.flip_last_layer` does at each radius and input: {"residual": f of the changed net less its
    linearisation, "h": the norm of the change}, both (T, n).
    """
    h = net.forward(x)[0][-2]
    z, size = h @ net.W[-1], h.norm(dim=-1, keepdim=True)
    radii = torch.as_tensor(taus, dtype=x.dtype, device=x.device)[:, None, None]
    positive = (net.v > 0).expand(len(taus), *z.shape)
    delta = 2 * _cheapest_flips(z.expand_as(positive), radii * size / 2, positive) / PAST_ZERO
    beyond = (z + delta).clamp(min=0) - z.clamp(min=0) - (z > 0) * delta
    return {"residual": beyond @ net.v, "h": (delta.norm(dim=-1, keepdim=True) / size)[..., 0]}


def residuals(taus, at):
    """f of the changed nets less its linearisation, (T, n); at: what `along` measured at the radii taus."""
    return at["moved f"] - at["f"] - torch.as_tensor(taus).to(at["f"])[:, None] * at["linear"]


def loss_excess(loss, taus, at):
    """The loss of the changed nets less its linearisation, (T,); at: what `along` measured at the radii taus."""
    (before, slope), after = loss(at["f"]), torch.stack([loss(f)[0] for f in at["moved f"]])
    return after - before - torch.as_tensor(taus).to(after) * (slope * at["linear"]).sum()


def near_zero(net, x, betas):
    """Shares of each layer's neurons with |w_{l,j}^T x_{l-1}| <= beta, (len(betas), n, L + 1), and the norms
    |x_{l-1}|, (n, L + 1). Source: Frei et al. 2019, Lemma C.2.
    """
    inputs = [x, *net.forward(x)[0][:-1]]
    sizes = [(h @ W).abs() for h, W in zip(inputs, net.W, strict=True)]
    shares = torch.stack([torch.stack([(z <= beta).double().mean(-1) for z in sizes], -1) for beta in betas])
    return shares, torch.stack([h.norm(dim=-1) for h in inputs], -1)
