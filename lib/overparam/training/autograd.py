"""Stochastic gradient descent of torch modules by autograd, with momentum and weight decay.

Images may be augmented. These nets do not go through the loop of `descent`: momentum and weight
decay need the gradient itself, normalization and dropout need modes and their own state, and what
is looked at costs passes of its own.
"""

from collections.abc import Callable
from dataclasses import astuple, dataclass

import torch
from torch.nn.functional import cross_entropy, pad

from ..errors import TrainingDiverged
from .batches import times_within
from .checkpoints import Checkpoint, deferred_interrupts, seen_by, stop_if_asked, training_key


@dataclass(frozen=True)
class Recipe:
    """How to train: the step size eta is multiplied by gamma after each of the epochs `drops`.

    batch: examples of a step; padding, flip: of `augmented`, where there is a scale.
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
    Raises TrainingDiverged; ParameterError where `at` is empty or beyond the recipe's epochs.
    """
    at = times_within(at, recipe.epochs)
    training = _Training(net, x, y, recipe, at, seed, scale, loss, look, checkpoint)
    first = training.resume() if checkpoint else 0
    if first >= 0:  # it has not ended yet
        with deferred_interrupts():
            training.run(first)
    states = {epoch: {} for epoch in at}
    for name, tensor in training.looks.items():
        epoch, _, rest = name.partition("/")
        states[int(epoch)][rest] = tensor
    return Course(states, training.curve.cpu())


@dataclass
class _Training:
    """An open training: what `train` was given, and what it moves."""

    net: torch.nn.Module
    x: torch.Tensor
    y: torch.Tensor
    recipe: Recipe
    at: list
    seed: int
    scale: tuple | None
    loss: Callable
    look: Callable | None
    checkpoint: Checkpoint | None

    def __post_init__(self):
        recipe = self.recipe
        self.weights = list(self.net.parameters())
        self.optimizer = torch.optim.SGD(
            self.weights, recipe.eta, recipe.momentum, weight_decay=recipe.weight_decay
        )
        if recipe.momentum:
            for weight in self.weights:  # a velocity of zero, there to be resumed
                self.optimizer.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
        self.curve = torch.zeros(recipe.epochs, dtype=torch.float64, device=self.x.device)
        self.looks = {}  # "<epoch>/<name>" -> tensor that was looked at
        self.batches = -(-len(self.x) // recipe.batch)  # of an epoch
        self.rng = torch.cuda if self.x.is_cuda else torch  # of dropout

    def resume(self):
        """The number of the next step, of all epochs, by the checkpoint; -1 of an ended training.

        Everything is then as it was when the checkpoint was saved.
        """
        self.key = self._key()
        first, saved = self.checkpoint.load(None, self.key)
        for name, tensor in self._open_tensors().items():
            if name in saved:  # of an ended training the loss alone is
                tensor.copy_(saved[name])
        if "rng" in saved:
            self.rng.set_rng_state(saved["rng"])
        for name, tensor in saved.items():
            if name.partition("/")[0].isdigit():
                self.looks[name] = tensor
        return first

    def _key(self):
        """A digest of what the training's course depends on."""
        parts = [[type(part).__name__, vars(part)] for part in self.net.modules()]
        numbers, tensors = seen_by(self.look, self.loss, parts)
        settings = [astuple(self.recipe), self.at, self.seed, numbers]
        return training_key(settings, [self.x, self.y, *(self.scale or ()), *tensors])

    def run(self, first):
        """Take all steps from the number `first` on, and look between epochs."""
        for epoch in range(first // self.batches, self.recipe.epochs):
            taken = max(first - epoch * self.batches, 0)  # steps of it before the training resumed
            if taken == 0:
                self._look_before(epoch)
            self._train_epoch(epoch, taken)
        self._look_before(self.recipe.epochs)
        if self.checkpoint:
            self.checkpoint.save(None, self.key, -1, {"loss": self.curve, **self.looks})

    def _look_before(self, epoch):
        """Look between epochs where that is asked for. Raises TrainingDiverged."""
        if epoch > 0 and not bool(self.curve[epoch - 1].isfinite()):
            wrong = f"the loss is not finite in epoch {epoch - 1}"
            raise TrainingDiverged(f"{wrong}; lower eta ({self.recipe.eta:g})")
        if epoch in self.at:
            look = self.look or self._state_of_net
            for name, tensor in look().items():
                self.looks[f"{epoch}/{name}"] = tensor

    def _state_of_net(self):
        return {name: t.detach().cpu().clone() for name, t in self.net.state_dict().items()}

    def _train_epoch(self, epoch, taken):
        """Take the steps of an epoch, but for the first `taken`."""
        seed = self.seed * 1_000_003 + epoch
        if taken == 0:
            torch.manual_seed(seed)
        order, offsets, flips = self._draws(seed)
        self.optimizer.param_groups[0]["lr"] = self.recipe.step_size(epoch)
        self.net.train()
        for k in range(taken, self.batches):
            rows = order[k * self.recipe.batch : (k + 1) * self.recipe.batch]
            inputs = self.x[rows]
            if self.scale is not None:
                mean, std = self.scale
                images = augmented(inputs, offsets[rows], flips[rows], self.recipe.padding)
                inputs = (images - mean) / std
            self.curve[epoch] += self._step(inputs, self.y[rows]) * len(rows)
            if k == self.batches - 1:
                self.curve[epoch] /= len(self.x)
            self._save_if_due(epoch * self.batches + k + 1)
            stop_if_asked()

    def _draws(self, seed):
        """Order (n,), offsets (n, 2) and mirroring (n,) of the examples in an epoch."""
        n = len(self.x)
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(n, generator=generator)  # that of `batches.epoch_order`
        offsets = torch.randint(0, 2 * self.recipe.padding + 1, (n, 2), generator=generator)
        flips = torch.rand(n, generator=generator) < (0.5 if self.recipe.flip else 0)
        return [drawn.to(self.x.device) for drawn in (order, offsets, flips)]

    def _step(self, inputs, labels):
        """Take a step; gives the loss before it."""
        value = self.loss(self.net(inputs), labels)
        gradients = torch.autograd.grad(value, self.weights)
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.grad = gradient
        self.optimizer.step()
        return value.detach().double()

    def _save_if_due(self, step):
        if self.checkpoint and self.checkpoint.due(None):
            tensors = self._open_tensors()
            tensors["rng"] = self.rng.get_rng_state()
            tensors.update(self.looks)
            self.checkpoint.save(None, self.key, step, tensors)

    def _open_tensors(self):
        """{name: tensor} of what steps move: losses, weights, running statistics, velocities."""
        tensors = {"loss": self.curve}
        for name, tensor in self.net.state_dict().items():
            tensors[f"net/{name}"] = tensor
        for i, kept in enumerate(self.optimizer.state.values()):
            tensors[f"velocity/{i}"] = kept["momentum_buffer"]
        return tensors
