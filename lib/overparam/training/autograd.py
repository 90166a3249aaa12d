"""Stochastic gradient descent by autograd, for nets that have no hand-written gradients, over slopes and draws."""

import torch

from ..errors import TrainingDiverged
from .checkpoints import Checkpoint, training_key
from .stochastic import _order


def module_curves(datasets, seeds, alphas, build, loss, *, eta, epochs, batch, at, dtype, device, checkpoint=None):
    """Train build(alpha, seed) for every slope and seed by SGD, and look at training and test set before the epochs at.

    datasets: an iterable of `DataSet`, one per seed; seeds: of the initial weights, the batches and dropout, the same
    for all slopes; build: makes a torch module in float64; loss(outputs, y): the mean over examples; checkpoint: path
    stem of the checkpoints.
    Returns float64 tensors train and test (A, S, len(at)), in evaluation mode. Raises TrainingDiverged.
    """
    rows, stem = [], checkpoint
    for data, seed in zip(datasets, seeds, strict=True):
        sets = [_on(part, dtype, device) for part in (data.x_train, data.y_train, data.x_test, data.y_test)]
        for alpha in alphas:
            module = build(alpha, seed).to(device, dtype)
            saved = stem and Checkpoint(f"{stem}-{seed}-{alpha:g}")
            rows.append(_train(module, sets, loss, eta, epochs, batch, seed, sorted(set(at)), saved))
            if not rows[-1][:, -1].isfinite().all():
                raise TrainingDiverged(f"slope {alpha}, seed {seed}: no finite loss at the end; lower eta ({eta:.3g})")
    curves = torch.stack(rows).reshape(len(seeds), len(alphas), 2, -1).transpose(0, 1)
    return {"train": curves[:, :, 0], "test": curves[:, :, 1]}


def _on(part, dtype, device):
    return part.to(device, dtype) if part.is_floating_point() else part.to(device)


def _train(module, sets, loss, eta, epochs, batch, seed, at, checkpoint):
    """(2, len(at)): the mean loss on training and test set before the epochs `at`."""
    x, y, x_test, y_test = sets
    state = module.state_dict()
    key = checkpoint and training_key([eta, epochs, batch, seed, at], [x, y, *state.values()])
    first, saved = checkpoint.load(None, key) if checkpoint else (0, {})
    curve = saved.pop("curve", torch.full((2, len(at)), float("nan"), dtype=torch.float64))
    if first < 0:
        return curve
    if saved:
        module.load_state_dict(saved)
    for epoch in range(first, epochs + 1):
        if epoch in at:
            curve[:, at.index(epoch)] = torch.stack(
                [_mean(module, loss, *s, batch) for s in ((x, y), (x_test, y_test))]
            )
        if epoch < epochs:
            torch.manual_seed(seed * 1_000_003 + epoch)  # of dropout: so that a run can resume
            module.train()
            for index in _order(len(x), seed, epoch).to(x.device).split(batch):
                _step(module, loss(module(x[index]), y[index]), eta)
            if checkpoint and checkpoint.due(None):
                checkpoint.save(None, key, epoch + 1, {**module.state_dict(), "curve": curve})
    if checkpoint:
        checkpoint.save(None, key, -1, {"curve": curve})
    return curve


def _step(module, value, eta):
    weights = list(module.parameters())
    with torch.no_grad():
        for weight, slope in zip(weights, torch.autograd.grad(value, weights), strict=True):
            weight.sub_(slope, alpha=eta)


@torch.no_grad()
def _mean(module, loss, x, y, batch):
    """Mean loss in evaluation mode, float64 on the CPU, batch by batch."""
    module.eval()
    sums = [loss(module(a), b).double() * len(a) for a, b in zip(x.split(batch), y.split(batch), strict=True)]
    return (torch.stack(sums).sum() / len(x)).cpu()
