"""The training recipe of Allen-Zhu et al. 2019, Figure 1: SGD with momentum, weight decay, step sizes that drop.

The paper names the step sizes, the momentum and the code; weight decay, batches and augmentation are those of the code
(github.com/bearpaw/pytorch-classification, as of April 2018).
"""

from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy, pad

from ..errors import ParameterError, TrainingDiverged
from .checkpoints import training_key


@dataclass(frozen=True)
class Recipe:
    """eta is multiplied by gamma after each of the epochs `drops`; padding, flip: of `augmented` (0, False: none)."""

    epochs: int = 164
    drops: tuple = (81, 122)
    eta: float = 0.1
    gamma: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    batch: int = 128
    padding: int = 4
    flip: bool = True

    def step_size(self, epoch):
        """The step size in an epoch (from 0)."""
        return self.eta * self.gamma ** sum(epoch >= drop for drop in self.drops)


@dataclass
class Course:
    """What a training left behind.

    states: {epoch: {name: tensor on the CPU}}, parameters and running statistics after so many epochs; loss: (epochs,)
    float64, the mean over each epoch's own batches, augmented and while they are trained on.
    """

    states: dict
    loss: torch.Tensor


def augmented(x, offsets, flips, padding):
    """Windows of zero-padded images x (b, c, h, w), of their own size, some mirrored: (b, c, h, w).

    offsets: (b, 2), upper left corners in 0..2 padding; flips: (b,) booleans.
    """
    b, _, h, w = x.shape
    rows = torch.arange(h, device=x.device) + offsets[:, :1]
    along = torch.arange(w, device=x.device).expand(b, w)
    columns = torch.where(flips[:, None], w - 1 - along, along) + offsets[:, 1:]
    image = torch.arange(b, device=x.device)[:, None, None]
    return pad(x, [padding] * 4)[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def train(net, x, y, recipe, *, scale, at, seed, checkpoint=None):
    """Train `net` in place on the mean cross entropy, and keep its states after the epochs in `at`.

    x: (n, c, h, w) images in [0, 1]; y: (n,) class numbers; scale: (mean, std) per channel, (c, 1, 1), applied after
    the augmentation, so that borders are black. Order, windows and mirroring are functions of the seed and the epoch.
    checkpoint: a `Checkpoint`, to resume from at the granularity of epochs. Returns a Course. Raises TrainingDiverged.
    """
    if min(at) < 0 or max(at) > recipe.epochs:
        raise ParameterError(f"at must lie in 0..{recipe.epochs}, not {list(at)}")
    weights, flat = list(net.parameters()), _joined(net)
    velocity, curve = torch.zeros_like(flat), torch.full((recipe.epochs,), float("nan"), dtype=torch.float64)
    settings = [{k: list(v) if isinstance(v, tuple) else v for k, v in vars(recipe).items()}, sorted(at), seed]
    key = checkpoint and training_key(settings, [x, y, flat])
    first, saved = checkpoint.load(None, key) if checkpoint else (0, {})
    states = _kept(saved)
    if first < 0:
        return Course(states, saved["loss"])
    if saved:
        net.load_state_dict({k.removeprefix("now/"): v for k, v in saved.items() if k.startswith("now/")})
        velocity.copy_(saved["velocity"])
        curve.copy_(saved["loss"])
    net.train()
    for epoch in range(first, recipe.epochs + 1):
        if epoch in at:
            states[epoch] = {name: t.detach().cpu().clone() for name, t in net.state_dict().items()}
        if epoch == recipe.epochs:
            break
        curve[epoch] = _epoch(net, weights, flat, velocity, x, y, recipe, scale, seed, epoch)
        if not bool(curve[epoch].isfinite()):
            raise TrainingDiverged(f"the loss is not finite in epoch {epoch}; lower eta (now {recipe.eta:g})")
        if checkpoint and checkpoint.due(None):
            now = {f"now/{name}": t.clone() for name, t in net.state_dict().items()}  # views of one vector
            checkpoint.save(None, key, epoch + 1, {"velocity": velocity, "loss": curve, **now, **_named(states)})
    if checkpoint:
        checkpoint.save(None, key, -1, {"loss": curve, **_named(states)})
    return Course(states, curve)


@torch.no_grad()
def error(net, state, x, y, *, scale, chunk=1000):
    """Share of the images x (n, c, h, w) that the net with a `Course`'s state gets wrong, by running statistics."""
    net.load_state_dict(state)
    net.eval()
    guesses = torch.cat([net((part - scale[0]) / scale[1]).argmax(1) for part in x.split(chunk)])
    return (guesses != y).double().mean().item()


def _joined(net):
    """One vector whose parts are the parameters of the net from now on."""
    weights = list(net.parameters())
    flat = torch.cat([p.detach().reshape(-1) for p in weights])
    for p, part in zip(weights, flat.split([p.numel() for p in weights]), strict=True):
        p.data = part.view(p.shape)
    return flat


def _epoch(net, weights, flat, velocity, x, y, recipe, scale, seed, epoch):
    """One pass; the mean loss of its batches."""
    draw, n, eta = torch.Generator().manual_seed(seed * 1_000_003 + epoch), len(x), recipe.step_size(epoch)
    order = torch.randperm(n, generator=draw).to(x.device)
    offsets = torch.randint(0, 2 * recipe.padding + 1, (n, 2), generator=draw).to(x.device)
    flips = (torch.rand(n, generator=draw) < (0.5 if recipe.flip else 0)).to(x.device)
    total = torch.zeros((), dtype=torch.float64, device=x.device)
    for rows in order.split(recipe.batch):
        images = augmented(x[rows], offsets[rows], flips[rows], recipe.padding)
        value = cross_entropy(net((images - scale[0]) / scale[1]), y[rows])
        gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(value, weights)])
        with torch.no_grad():
            velocity.mul_(recipe.momentum).add_(gradient.add_(flat, alpha=recipe.weight_decay))
            flat.sub_(velocity, alpha=eta)
        total += value.detach().double() * len(rows)
    return total / n


def _named(states):
    return {f"{epoch}/{name}": t for epoch, state in states.items() for name, t in state.items()}


def _kept(saved):
    """{epoch: state} of a checkpoint's tensors."""
    states = {}
    for name, t in saved.items():
        epoch, _, rest = name.partition("/")
        if epoch.isdigit():
            states.setdefault(int(epoch), {})[rest] = t
    return states
