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
    padded = pad(x, [padding] * 4)
    return padded[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


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
    training = _Training(net, x, y, recipe, at, seed, scale, loss, look, checkpoint)
    first = training.resumed() if checkpoint else 0
    if first >= 0:  # it has not ended yet
        with deferred_interrupts():
            training.run(first)
    return Course(training.states, training.curve.cpu())


class _Training:
    """A training of `train`, from its first batch or from a checkpoint's."""

    def __init__(self, net, x, y, recipe, at, seed, scale, loss, look, checkpoint):
        self.net, self.x, self.y, self.recipe = net, x, y, recipe
        self.at, self.seed, self.scale, self.loss = sorted(at), seed, scale, loss
        self.look = look or self._state_of_net
        self.checkpoint = checkpoint
        self.weights = list(net.parameters())
        self.optimizer = torch.optim.SGD(
            self.weights, recipe.eta, recipe.momentum, weight_decay=recipe.weight_decay
        )
        for weight in self.weights:  # a velocity of zero, there to be resumed
            velocity = torch.zeros_like(weight) if recipe.momentum else None
            self.optimizer.state[weight]["momentum_buffer"] = velocity
        self.curve = torch.zeros(recipe.epochs, dtype=torch.float64, device=x.device)
        self.states = {}  # epoch -> what was looked at
        self.batches = -(-len(x) // recipe.batch)  # of an epoch
        self.rng = torch.cuda if x.is_cuda else torch  # of dropout
        if checkpoint:
            self.key = self._key(look)

    def _state_of_net(self):
        return {name: t.detach().cpu().clone() for name, t in self.net.state_dict().items()}

    def _key(self, look):
        parts = [[type(part).__name__, vars(part)] for part in self.net.modules()]
        numbers, seen = seen_by(look, self.loss, parts)
        settings = [astuple(self.recipe), self.at, self.seed, numbers]
        return training_key(settings, [self.x, self.y, *(self.scale or ()), *seen])

    def resumed(self):
        """The number of the next batch, of all epochs, from the checkpoint; -1 of an ended one."""
        first, saved = self.checkpoint.load(None, self.key)
        for name, tensor in saved.items():
            epoch, _, rest = name.partition("/")
            if epoch.isdigit():
                self.states.setdefault(int(epoch), {})[rest] = tensor
        if saved:
            self.curve.copy_(saved["loss"])
        if saved and first >= 0:
            for name, tensor in self._open_state().items():
                tensor.copy_(saved[name])
            self.rng.set_rng_state(saved["rng"])
        return first

    def run(self, first):
        """All batches from the number `first` on, and what is looked at between epochs."""
        batch = None
        for k in range(first, self.recipe.epochs * self.batches):
            epoch, part = divmod(k, self.batches)
            if part == 0:
                self._between_epochs(epoch)
                torch.manual_seed(self.seed * 1_000_003 + epoch)
            if batch is None or part == 0:
                batch = self._begin_epoch(epoch)
            self._step(epoch, *batch(part))
            if part == self.batches - 1:
                self.curve[epoch] /= len(self.x)
            self._save_if_due(k + 1)
            stop_if_asked()
        self._between_epochs(self.recipe.epochs)
        if self.checkpoint:
            self.checkpoint.save(None, self.key, -1, {"loss": self.curve, **self._looks()})

    def _between_epochs(self, epoch):
        if epoch and not bool(self.curve[epoch - 1].isfinite()):
            eta = self.recipe.eta
            raise TrainingDiverged(
                f"the loss is not finite in epoch {epoch - 1}; lower eta ({eta:g})"
            )
        if epoch in self.at:
            self.states[epoch] = self.look()

    def _begin_epoch(self, epoch):
        """part -> (inputs, labels) of that batch of an epoch; sets the step size of the epoch."""
        self.optimizer.param_groups[0]["lr"] = self.recipe.step_size(epoch)
        self.net.train()
        n, device, recipe = len(self.x), self.x.device, self.recipe
        draw = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        order = torch.randperm(n, generator=draw).to(device)  # that of `batches.epoch_order`
        offsets = torch.randint(0, 2 * recipe.padding + 1, (n, 2), generator=draw).to(device)
        flips = (torch.rand(n, generator=draw) < (0.5 if recipe.flip else 0)).to(device)

        def batch(part):
            rows = order[part * recipe.batch : (part + 1) * recipe.batch]
            if self.scale is None:
                return self.x[rows], self.y[rows]
            mean, std = self.scale
            images = augmented(self.x[rows], offsets[rows], flips[rows], recipe.padding)
            return (images - mean) / std, self.y[rows]

        return batch

    def _step(self, epoch, inputs, labels):
        value = self.loss(self.net(inputs), labels)
        gradients = torch.autograd.grad(value, self.weights)
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.grad = gradient
        self.optimizer.step()
        self.curve[epoch] += value.detach().double() * len(labels)

    def _save_if_due(self, k):
        if self.checkpoint and self.checkpoint.due(None):
            state = {"loss": self.curve, "rng": self.rng.get_rng_state()}
            state.update(self._open_state())
            state.update(self._looks())
            self.checkpoint.save(None, self.key, k, state)

    def _open_state(self):
        """The tensors of an open training: weights, running statistics, velocities."""
        found = {f"net/{name}": t for name, t in self.net.state_dict().items()}
        for i, kept in enumerate(self.optimizer.state.values()):
            if kept["momentum_buffer"] is not None:
                found[f"velocity/{i}"] = kept["momentum_buffer"]
        return found

    def _looks(self):
        """What was looked at, under names of a checkpoint's."""
        found = {}
        for epoch, state in self.states.items():
            for name, tensor in state.items():
                found[f"{epoch}/{name}"] = tensor
        return found


@torch.no_grad()
def error(net, state, x, y, *, scale, chunk=1000):
    """Share of the images x (n, c, h, w) that the net with a `Course`'s state gets wrong.

    By running statistics.
    """
    net.load_state_dict(state)
    net.eval()
    guesses = torch.cat([net((part - scale[0]) / scale[1]).argmax(1) for part in x.split(chunk)])
    return (guesses != y).double().mean().item()
