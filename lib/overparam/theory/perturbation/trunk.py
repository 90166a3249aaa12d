"""The residual layers of a net by themselves."""

from ...models.deep_relu import ReLUNet


class Trunk(ReLUNet):
    """Layers 0..L - 1 of a residual net of depth L >= 2, all of them residual; shares its matrices.

    Source: Allen-Zhu et al. 2019, Appendix C.
    """

    def __init__(self, net):
        vars(self).update(vars(net))
        self.L, self.W = net.L - 1, net.W[:-1]

    def skips(self, l):
        """Every layer adds its input."""
        return True
