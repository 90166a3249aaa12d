"""Stochastic gradient descent of torch modules by autograd, with momentum and weight decay.

Images may be augmented.
These nets do not go through the loop of `descent`: momentum and weight decay need the gradient
itself, normalization and dropout need modes and their own state, and what is looked at costs passes
of its own.
"""

from dataclasses import astuple, dataclass

import torch
from torch.nn.functional import cross_entropy, pad

from ..errors import ParameterError, TrainingDiverged
from .checkpoints import deferred_interrupts, seen_by, stop_if_asked, training_key


@dataclass(frozen=True)
class Recipe:
    """How to train: eta is multiplied by gamma after each of the epochs `drops`.

    padding, flip: of `augmented`.
    Allen-Zhu et al. 2019, Figure 1, have 164 epochs, drops after 81 and 122, eta = 0.1 and momentum
    0.9; the code that they cite (github.com/bearpaw/pytorch-classification) batches of 128, weight
    decay 5e-4, padding 4 and mirroring.
    """

    epochs: int
    eta: float
    batch: int
    drops: tuple = ()
    gamma: float = 0.1
    momentum: float = 0.0
    weight_decay: float = 0.0
    padding: int = 0
    flip: bool = False

    def step_size(self, epoch):
        """The step size in an epoch (from 0)."""
        return self.eta * self.gamma ** sum(epoch >= drop for drop in self.drops)


@dataclass
class Course:
    """What a training left behind.

    states: {epoch: {name: tensor on the CPU}}, what was looked at after so many epochs: parameters
    and running statistics; loss: (epochs,) float64, the mean over each epoch's own batches, while
    they are trained on.
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
    return pad(x, [padding] * 4)[image, :, rows[:, :, None], columns[:, None, :]].permute(
        0, 3, 1, 2
    )


def train(
    net, x, y, recipe, *, at, seed, scale=None, loss=cross_entropy, look=None, checkpoint=None
):
    """Train `net` in place on the mean loss, and keep its states after the epochs `at`: a `Course`.

    x: (n, ...), for scale (mean, std), each (c, 1, 1): images (n, c, h, w) in [0, 1], which are
    augmented, and then scaled, so that borders are black; y: (n,). Order, windows, mirroring and
    dropout are functions of the seed and the epoch. look: gives {name: tensor on the CPU} to be
    kept instead of the states. checkpoint: a `Checkpoint`.
    Raises TrainingDiverged.
    """
    if min(at) < 0 or max(at) > recipe.epochs:
        raise ParameterError(f"at must lie in 0..{recipe.epochs}, not {list(at)}")
    look = look or (
        lambda: {name: t.detach().cpu().clone() for name, t in net.state_dict().items()}
    )
    optimizer = torch.optim.SGD(
        net.parameters(), recipe.eta, recipe.momentum, weight_decay=recipe.weight_decay
    )
    weights = list(net.parameters())
    for weight in weights:  # a velocity of zero, there to be resumed
        optimizer.state[weight]["momentum_buffer"] = (
            torch.zeros_like(weight) if recipe.momentum else None
        )
    curve = torch.zeros(recipe.epochs, dtype=torch.float64, device=x.device)
    parts = [[type(part).__name__, vars(part)] for part in net.modules()]
    numbers, tensors = seen_by(look, loss, parts)
    settings, tensors = (
        [astuple(recipe), sorted(at), seed, numbers],
        [x, y, *(scale or ()), *tensors],
    )
    key = checkpoint and training_key(settings, tensors)
    first, saved = checkpoint.load(None, key) if checkpoint else (0, {})
    states = _looks(saved)
    if first < 0:
        return Course(states, saved["loss"])
    count = -(-len(x) // recipe.batch)  # batches of an epoch
    rng = torch.cuda if x.is_cuda else torch  # of dropout
    if saved:
        for name, t in {"loss": curve, **_state(net, optimizer)}.items():
            t.copy_(saved[name])
        rng.set_rng_state(saved["rng"])
    with deferred_interrupts():
        for k in range(first, recipe.epochs * count + 1):
            epoch, part = divmod(k, count)
            if part == 0:
                if epoch and not bool(curve[epoch - 1].isfinite()):
                    raise TrainingDiverged(
                        f"the loss is not finite in epoch {epoch - 1}; lower eta ({recipe.eta:g})"
                    )
                if epoch in at:
                    states[epoch] = look()
                if epoch == recipe.epochs:
                    break
            if part == 0 or k == first:
                batch = _epoch(x, y, recipe, scale, seed, epoch)
                optimizer.param_groups[0]["lr"] = recipe.step_size(epoch)
                net.train()
            if part == 0:
                torch.manual_seed(seed * 1_000_003 + epoch)
            inputs, labels = batch(part)
            value = loss(net(inputs), labels)
            for weight, gradient in zip(weights, torch.autograd.grad(value, weights), strict=True):
                weight.grad = gradient
            optimizer.step()
            curve[epoch] += value.detach().double() * len(labels)
            if part == count - 1:
                curve[epoch] /= len(x)
            if checkpoint and checkpoint.due(None):
                now = {
                    "loss": curve,
                    "rng": rng.get_rng_state(),
                    **_state(net, optimizer),
                    **_named(states),
                }
                checkpoint.save(None, key, k + 1, now)
            stop_if_asked()
    if checkpoint:
        checkpoint.save(None, key, -1, {"loss": curve, **_named(states)})
    return Course(states, curve.cpu())


def _epoch(x, y, recipe, scale, seed, epoch):
    """part -> (inputs, labels) of that batch of an epoch."""
    draw, n = torch.Generator().manual_seed(seed * 1_000_003 + epoch), len(x)
    order = torch.randperm(n, generator=draw).to(x.device)  # that of `epoch_order`
    offsets = torch.randint(0, 2 * recipe.padding + 1, (n, 2), generator=draw).to(x.device)
    flips = (torch.rand(n, generator=draw) < (0.5 if recipe.flip else 0)).to(x.device)

    def batch(part):
        rows = order[part * recipe.batch : (part + 1) * recipe.batch]
        if scale is None:
            return x[rows], y[rows]
        images = augmented(x[rows], offsets[rows], flips[rows], recipe.padding)
        return (images - scale[0]) / scale[1], y[rows]

    return batch


def _state(net, optimizer):
    """The tensors of an open training: weights, running statistics, velocities."""
    velocities = [
        kept["momentum_buffer"]
        for kept in optimizer.state.values()
        if kept["momentum_buffer"] is not None
    ]
    return {
        **{f"net/{name}": t for name, t in net.state_dict().items()},
        **{f"velocity/{i}": t for i, t in enumerate(velocities)},
    }


def _named(states):
    return {f"{epoch}/{name}": t for epoch, state in states.items() for name, t in state.items()}


def _looks(saved):
    """{epoch: state} of a checkpoint's tensors."""
    states = {}
    for name, t in saved.items():
        epoch, _, rest = name.partition("/")
        if epoch.isdigit():
            states.setdefault(int(epoch), {})[rest] = t
    return states


@torch.no_grad()
def error(net, state, x, y, *, scale, chunk=1000):
    """Share of the images x (n, c, h, w) that the net with a `Course`'s state gets wrong.

    By running statistics.
    """
    net.load_state_dict(state)
    net.eval()
    guesses = torch.cat([net((part - scale[0]) / scale[1]).argmax(1) for part in x.split(chunk)])
    return (guesses != y).double().mean().item()
