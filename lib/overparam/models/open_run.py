"""What all nets in training have in common."""

import torch

from ..norms import matrix_norms, product_norms


class OpenRun:
    """A net at its inputs and current weights: one run, or with a leading run axis all of them.

    Each paper's class of runs opens one by `descent(x, run)`, and gives it, by its own formulas:

    forward(): the outputs, (..., n, d), or (..., n) where the net has one output.
    descend(v): moves W by -sum_i v_i . dy_i/dW, in place; v like the outputs. After `forward`.
    factors(v): [(h_0, z_1), .., (h_{L-1}, z_L)] of the trained layers, each (..., n, m): layer l
        has the inputs h_{l-1}, and v_i . dy_i/dW_l = z_{l,i} h_{l-1,i}^T. After `forward`.
    changes(): W_l - W_l(0) of the trained layers, one after the other: each a matrix, or a pair
        (a, b) that stands for a^T b.
    predict(x): the outputs at other inputs.
    state: {name: tensor}, what `descend` moves; fixed: what the run was drawn as, beside its state.
    run: which run it is, None for all. flat: whether the one output has no axis of its own.
    """

    run = None
    flat = False

    def unit(self, j=0):
        """The v that picks output j of every input: `factors` of it are those of dy_j/dW."""
        outputs = self.forward()
        if self.flat:
            return torch.ones_like(outputs)
        v = torch.zeros_like(outputs)
        v[..., j] = 1
        return v

    def gradients(self, v):
        """[sum_i v_i . dy_i/dW_l] of the trained layers, each (..., m, m). After `forward`."""
        return [z.mT @ h for h, z in self.factors(v)]

    def gradient_norms(self, loss):
        """||dF/dW_l||_2 and ||dF/dW_l||_F of every layer, for a `Loss` F, (..., L, 2)."""
        _, v = loss.select(self.run)(self.forward())
        return torch.stack([product_norms(z, h) for h, z in self.factors(v)], -2)

    def change_norms(self, iterations=30):
        """||W_l - W_l(0)||_2 and ||W_l - W_l(0)||_F of every layer, (..., L, 2).

        Spectral norms of full matrices are by power iteration, from below.
        """
        norms = []
        for change in self.changes():
            if isinstance(change, tuple):
                norms.append(product_norms(*change))
            else:
                norms.append(matrix_norms(change, iterations))
        return torch.stack(norms, -2)
