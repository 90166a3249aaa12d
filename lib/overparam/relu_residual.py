"""The residual layers of a net by themselves, and sign changes in the last of them that all the others prepare."""

import torch

from .nets.relu_net import ReLUNet
from .relu_attacks import _changed, _flips, _unit
from .relu_perturbation import Attack, unchanged


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


def trunk_flips(start, omegas, *, supports=(0.5, 1, 2, 4, 8), rounds=3):
    """Many sign changes in the last layer of a `Trunk`: the layers below push its smallest |g| to zero, it flips.

    start: a `Start` of a `Trunk`. supports: how many coordinates are pushed, in units of m omega^(2/3); the best is
    kept, for each radius and input. Greedy: the supremum of Allen-Zhu et al. 2019, Appendix C.1, from below; ours.
    """
    best = _pushed(start, omegas, supports[0], rounds)
    for factor in supports[1:]:
        attack = _pushed(start, omegas, factor, rounds)
        best = best.better(attack, _changed(attack) > _changed(best))
    return best


def _pushed(start, omegas, factor, rounds):
    g, last, tau = start.g[-1], start.net.L, start.net.tau
    radii = torch.as_tensor(omegas, dtype=g.dtype, device=g.device)[:, None, None]
    count = factor * g.shape[-1] * radii ** (2 / 3)
    target = -torch.sign(g) * (g.abs().argsort(-1).argsort(-1) < count)
    attack = unchanged(start, omegas)
    for _ in range(rounds):
        pulls = attack.pull(target)

        def choose(l, z, h, budget, pulls=pulls):
            if l < last:
                return budget * _unit(pulls[l - 1])
            return _flips(z / tau, torch.where((z >= 0) == (g >= 0), z.abs(), torch.inf), budget)

        attack = Attack(start, omegas, choose)
    return attack
