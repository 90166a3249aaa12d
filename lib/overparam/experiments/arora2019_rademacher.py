"""The linearised two-layer net, and the Rademacher complexity of the nets near their start (Arora et al. 2019)."""

import torch

from ..errors import ParameterError
from ..models.two_layer import row_space


class Features:
    """Z(0), the (m d) x n matrix of the gradients of f at the initial weights, by its action: it is never formed.

    Its column i stacks m^{-1/2} a_r 1{w_r(0) . x_i >= 0} x_i over the neurons r. Weights are kept in an orthonormal
    basis Q (d, r) of the span of the data, in which everything here lives; norms are those of R^d.
    net: a `TwoLayerReLU` with S different initial weights, which lead every shape; x: inputs (n, d).
    Source: Section 3.4, eq. (6); the paper prints Z as m x n, but its entries are vectors.
    """

    def __init__(self, net, x):
        self.basis = row_space(x)
        self.x = x @ self.basis  # (n, r)
        self.signs = (net.a * net.m**-0.5).unsqueeze(-1)  # (S, m, 1)
        self.start = net.W @ x.T  # w_r(0) . x_i, (S, m, n)
        self.signed = self.signs * (self.start >= 0)

    def times(self, v):
        """Z(0) v as a matrix of weights (..., m, r), for v (..., n)."""
        return (self.signed * v.unsqueeze(-2)) @ self.x

    def transposed(self, weights):
        """Z(0)^T vec(W), (..., n), for weights (..., m, r): what the linearised net adds to its outputs."""
        return ((weights @ self.x.T) * self.signed).sum(-2)

    def gram(self):
        """H(0) = Z(0)^T Z(0), (S, n, n), eq. (5)."""
        return (self.signed.mT @ self.signed) * (self.x @ self.x.T)

    def gain(self, weights):
        """f_{W(0) + W} - f_{W(0)} at the data, (..., n), and its gradient's patterns (..., m, n), of the ReLU net."""
        now = self.start + weights @ self.x.T
        return (self.signs * (now.relu() - self.start.relu())).sum(-2), self.signs * (now >= 0)


def auxiliary_norms(features, y, eta, record):
    """|W~(k)|_F, (S, len(record)), of W~(k+1) = W~(k) - eta Z(0) (Z(0)^T W~(k) - y) from W~(0) = 0.

    y: (n,); eta: step sizes (S,); record: increasing list of steps k. Source: Arora et al. 2019, eq. (11).
    """
    weights = torch.zeros_like(features.times(y))
    norms = []
    for k in range(1, record[-1] + 1):
        weights -= features.times((features.transposed(weights) - y) * eta.unsqueeze(-1))
        if k in record:
            norms.append(weights.norm(dim=(-2, -1)))
    return torch.stack(norms, -1)


def auxiliary_closed_form(gram, y, eta, record):
    """What `auxiliary_norms` must be: (sum_i (v_i . y)^2 / lambda_i (1 - (1 - eta lambda_i)^k)^2)^{1/2}.

    gram: H(0) (S, n, n), positive definite; y: (n,); eta: (S,); record: steps k. Returns float64 (S, len(record)).
    Source: Arora et al. 2019, Section 5.2, the sum of the series.
    """
    values, vectors = torch.linalg.eigh(gram.double())
    weight = (vectors.mT @ y.double()).square() / values
    k = torch.as_tensor(record, dtype=torch.float64, device=values.device).unsqueeze(-1)
    decay = 1 - (1 - eta.double().unsqueeze(-1) * values).unsqueeze(-2) ** k
    return (weight.unsqueeze(-2) * decay**2).sum(-1).sqrt()


def largest_scale(norms, R, B):
    """The largest s with sum_r min(R, s norms_r)^2 <= B^2, (...), and infinity where there is none.

    norms: (..., m), not negative; R, B: positive numbers. Exact: sorted, the rows cut at R are the first ones.
    """
    v = norms.sort(dim=-1, descending=True).values
    rest = v.square().flip(-1).cumsum(-1).flip(-1)  # sum over the rows k.., if the first k are cut
    cut = torch.arange(v.shape[-1], device=v.device, dtype=v.dtype)
    s = ((B**2 - cut * R**2).clamp(min=0) / rest).sqrt()
    fits = s * v <= R * (1 + 4 * torch.finfo(v.dtype).eps)
    first = fits.int().argmax(-1, keepdim=True)
    scale = s.gather(-1, first).squeeze(-1)
    return torch.where((v.shape[-1] * R**2 <= B**2) | ~fits.any(-1), torch.inf, scale)


def project(weights, R, B):
    """The nearest weights whose rows have norm <= R and which have Frobenius norm <= B; weights: (..., m, r).

    By the conditions of Karush, Kuhn and Tucker it is the scaling by one s <= 1, then the cut of the rows at R.
    """
    norms = weights.norm(dim=-1)
    s = largest_scale(norms, R, B).clamp(max=1)
    return _scaled_and_cut(weights, norms, s, R)


def linear_maximiser(direction, R, B):
    """The weights in the set of `project` with the largest inner product with `direction` (..., m, r)."""
    norms = direction.norm(dim=-1)
    return _scaled_and_cut(direction, norms, largest_scale(norms, R, B), R)


def _scaled_and_cut(weights, norms, s, R):
    factor = torch.minimum(s.unsqueeze(-1), R / norms.clamp(min=torch.finfo(norms.dtype).tiny))
    return weights * factor.unsqueeze(-1)


def ascent(features, signs, R, B, steps=40):
    """Lower estimates of sup sum_i eps_i (f_W(x_i) - f_{W(0)}(x_i)) / n over |w_r - w_r(0)| <= R, |W - W(0)|_F <= B.

    Projected gradient ascent, from the maximiser of the linearised net, with steps of length B; the best point counts,
    so that the result is never below its start. signs: eps (n,) of +1, -1. Returns (S, 2) float64: at the start, best.
    Source of the supremum: Arora et al. 2019, Lemma 5.4; f_{W(0)}, whose expectation is 0, is subtracted (ours).
    """
    if not (R > 0 and B > 0):
        raise ParameterError(f"R and B must be positive, not {R} and {B}")
    weights, values = linear_maximiser(features.times(signs), R, B), []
    for step in range(steps + 1):
        gain, patterns = features.gain(weights)
        values.append((gain @ signs).double() / len(signs))
        if step < steps:
            slope = (patterns * signs) @ features.x
            weights = project(weights + slope * (B / slope.norm(dim=(-2, -1), keepdim=True)), R, B)
    return torch.stack([values[0], torch.stack(values).amax(0)], -1).cpu()


def linearised_suprema(gram, signs, B):
    """sup over |W|_F <= B of eps^T Z(0)^T vec(W) / n = B (eps^T H(0) eps)^{1/2} / n, (S, draws), the R not binding.

    gram: H(0) (S, n, n); signs: eps (draws, n). Source: Arora et al. 2019, Appendix D.2.
    """
    squares = ((signs @ gram) * signs).sum(-1)
    return B * squares.clamp(min=0).sqrt() / signs.shape[-1]
