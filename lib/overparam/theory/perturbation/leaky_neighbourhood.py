"""The leaky net at weights near its own: activations, gradients and changes of given spectral norm.

A net is an open run of `LeakyMLP` (a `LeakyDescent` without run axis), which gives A, B, the slopes and the inputs; its
weights are handed in beside it, as a list [W_1, .., W_L] of (m, m). Source of the neighbourhood: Guo et al. 2024,
Appendix B.3.
"""

import torch


def weights(run):
    """A copy of the run's own weights [W_1, .., W_L]."""
    return [run.W1, *(W.clone() for W in run.W[1:])]


def forward(run, W):
    """Pre-activations [g_1, .., g_L] and activations [h_0, .., h_L], each (n, m), at the weights W."""
    h, g = [run.x @ run.A.mT], []
    for layer in W:
        g.append(h[-1] @ layer.mT)
        h.append(g[-1] * slopes(run, g[-1]))
    return g, h


def slopes(run, g):
    """The diagonals of D_{i,l} (n, m) of pre-activations g (n, m)."""
    return run.negative + run.jump * (g > 0)


def outputs(run, W):
    """Outputs (n, d) at the weights W."""
    return forward(run, W)[1][-1] @ run.B.mT


def sensitivities(run, W, v):
    """[Z_1, .., Z_L], each (n, m), Z_{i,l} = D_{i,l} W_{l+1}^T .. W_L^T D_{i,L} B^T v_i; v: (n, d).

    For one output and v = 1 the row Z_{i,l} is the backward operator B D_L W_L .. W_{l+1} D_l of input i.
    """
    g, _ = forward(run, W)
    delta, rows = v @ run.B, []
    for layer, pre in zip(reversed(W), reversed(g), strict=True):
        rows.append(delta * slopes(run, pre))
        delta = rows[-1] @ layer
    return rows[::-1]


def gradients(run, W, v):
    """[sum_i v_i . df(x_i)/dW_l], each (m, m); v: (n, d)."""
    _, h = forward(run, W)
    return [z.mT @ before for z, before in zip(sensitivities(run, W, v), h, strict=False)]


def spectral_norms(changes):
    """|W'_l|_2 of every layer, (L,)."""
    return torch.stack([torch.linalg.matrix_norm(change, 2) for change in changes])


def normalised(changes, each=False):
    """Changes of norm max_l |W'_l|_2 = 1, the paper's |W'|_2; each: every layer of spectral norm 1."""
    norms = spectral_norms(changes)
    norms = norms if each else norms.max().expand(len(changes))
    return [change / norm for change, norm in zip(changes, norms, strict=True)]


def gaussian(W, *, seed):
    """Independent Gaussian changes, every layer of spectral norm 1."""
    generator = torch.Generator().manual_seed(seed)
    return normalised([torch.randn(w.shape, generator=generator, dtype=torch.float64).to(w) for w in W], each=True)


def moved(W, changes, size):
    """[W_l + size W'_l]."""
    return [w.add(change, alpha=size) for w, change in zip(W, changes, strict=True)]
