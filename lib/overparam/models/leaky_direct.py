"""The leaky-ReLU net of Guo et al. 2024 for batches smaller than the input dimension: it keeps W_1 itself."""

import torch

from .leaky import LeakyDescent, LeakyMLP, _accumulate


class DirectMLP(LeakyMLP):
    """The net of `LeakyMLP` as a map of h_0 = A x, which `embed` computes once; all runs share one draw.

    A step is 3 L - 1 products of batch x m x m; `LeakyMLP` has one of m x p x p in place of two of them.
    Source: Guo et al. 2024, Algorithm 1.
    """

    def embed(self, x):
        """h_0 = A x, (n, m), of inputs x (n, p)."""
        (A,) = self.A
        return x @ A.T

    def descent(self, h, run=None):
        """Open one run (int) or all (None) for training on h = h_0 (n, m)."""
        draw, select = (self.draw, slice(None)) if run is None else (self.draw[run], run)
        return DirectDescent(self.W[draw].clone(), self.B[draw], self.slopes[select], h)


class DirectDescent(LeakyDescent):
    """Forward, backward and update of W_1, .., W_L in preallocated buffers; leading run axis or none."""

    def __init__(self, W, B, slopes, h):
        self.W, self.B = list(W.unbind(-3)), B
        self.negative = slopes[..., 1, None, None]
        self.jump = slopes[..., 0, None, None] - self.negative
        self.load(h)

    def load(self, h):
        """Take other inputs h_0 (n, m); buffers are kept where n stays the same."""
        shape = (*self.W[0].shape[:-2], *h.shape[-2:])
        self.x = h.expand(shape)
        if not hasattr(self, "delta") or self.delta.shape != shape:
            self.h, self.slope = ([h.new_empty(shape) for _ in self.W] for _ in range(2))
            self.delta, self.back = h.new_empty(shape), h.new_empty(shape)

    @property
    def state(self):
        return {f"W{l + 1}": W for l, W in enumerate(self.W)}

    @property
    def W1(self):
        """The first layer's weights (..., m, m)."""
        return self.W[0]

    def inputs_of_layers(self):
        """[h_0, .., h_{L-1}], each (..., n, m), at the current weights. After `forward`."""
        return [self.x, *self.h[:-1]]

    def forward(self):
        """Outputs (..., n, d) at the current weights."""
        for below, W, h, slope in zip(self.inputs_of_layers(), self.W, self.h, self.slope, strict=True):
            torch.matmul(below, W.mT, out=h)
            torch.gt(h, 0, out=slope)
            slope.mul_(self.jump).add_(self.negative)
            h.mul_(slope)
        return self.h[-1] @ self.B.mT

    def descend(self, v):
        """Move the weights by -sum_i v_i . df_i/dW; v (..., n, d). To be called after `forward`."""
        delta, back = torch.matmul(v, self.B, out=self.delta), self.back
        for l, below in reversed(list(enumerate(self.inputs_of_layers()))):
            delta.mul_(self.slope[l])
            if l > 0:
                torch.matmul(delta, self.W[l], out=back)
            _accumulate(self.W[l], delta.mT, below)
            delta, back = back, delta

    def predict(self, h):
        """Outputs (..., n, d) at other inputs h_0 (n, m)."""
        for W in self.W:
            g = h @ W.mT
            h = g * (self.negative + self.jump * (g > 0))
        return h @ self.B.mT
