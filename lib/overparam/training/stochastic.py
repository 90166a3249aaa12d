"""Stochastic gradient descent over a run axis."""

import torch

from ..errors import ParameterError, TrainingDiverged
from .checkpoints import training_key
from .descent import History, over_runs
from .precision import fast_products


def stochastic_gradient_descent(
    net, x, loss, eta, epochs, *, batch, seed, log=None, at=None, batched=None, allow_divergence=False, checkpoint=None
):
    """Gradient descent on batches of `batch` examples, `epochs` times through the data in an order of its own each.

    net: has `runs` and `descent(x, run)`, whose descents take other inputs by `load(x)`; x: (n, p); loss: over all
    examples, with `rows(index)` for some of them: a mean is then that over the batch, a sum is not rescaled. eta: one
    step size, or a list of one per run. All runs see the same batches, drawn from `seed`; the last batch of an epoch
    may be smaller.
    log: {name: callable of a run's descent}, measured before each epoch in `at` (from 0 to `epochs`; default: the end).
    Returns a History whose `loss` (R, epochs + 1) is that of all examples before each epoch. Otherwise as
    `gradient_descent`.
    """
    if epochs < 1 or not 1 <= batch <= x.shape[-2]:
        raise ParameterError(
            f"epochs = {epochs} and batch = {batch} must be at least 1, and batch at most {x.shape[-2]}"
        )
    log, at = log or {}, [epochs] if at is None else sorted(set(at))
    if at[0] < 0 or at[-1] > epochs:
        raise ParameterError(f"at must lie in 0..{epochs}, not {at}")
    etas = torch.as_tensor(eta, dtype=torch.float64).expand(net.runs)
    if x.dtype == torch.float32 and x.device.type == "cpu" and batch * net.m > 10_000:
        fast_products()

    def work(run):
        chosen = etas if run is None else etas[run]
        return _descend(net, x, loss, chosen, run, epochs, batch, seed, log, at, checkpoint)

    together, curves = over_runs(work, net, x[..., :batch, :], batched)
    joined = {name: torch.stack([row[name] for row in curves]) for name in curves[0]}
    if together:
        joined = {name: stacked[0] for name, stacked in joined.items()}
    history = History(joined.pop("loss"), joined)
    if history.diverged.any() and not allow_divergence:
        run = int(history.diverged.int().argmax())
        raise TrainingDiverged(f"run {run}: the loss is not finite after {epochs} epochs; lower eta ({etas[run]:.3g})")
    return history


def _order(n, seed, epoch):
    """The order of the examples in an epoch: a function of the seed and the epoch alone, so that a run can resume."""
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch))


def _descend(net, x, loss, eta, run, epochs, batch, seed, log, at, checkpoint):
    """{"loss": (epochs + 1,), and the logs (len(at), ...)} of one run; all with a leading run axis for run=None."""
    descent, loss = net.descent(x[..., :batch, :], run), loss.select(run)
    lead = () if run is not None else (net.runs,)
    curve = torch.full((epochs + 1, *lead), float("nan"), dtype=x.dtype, device=x.device)
    tensors, logged = {"loss": curve, **descent.state}, {}
    settings = [type(descent).__name__, eta.tolist(), epochs, batch, seed, loss.scale, sorted(log), at]
    key = checkpoint and training_key(settings, [x, loss.y, *tensors.values()])
    first, saved = checkpoint.load(run, key) if checkpoint else (0, {})
    if first < 0:
        return saved
    logged.update({name: t for name, t in saved.items() if "@" in name})
    for name, t in tensors.items():
        t.copy_(saved.get(name, t))
    for epoch in range(first, epochs + 1):
        curve[epoch] = loss(descent.predict(x))[0]
        if epoch in at:
            logged.update({f"{name}@{epoch}": value(descent).double().cpu() for name, value in log.items()})
        if epoch < epochs and bool(curve[epoch].isfinite().any()):
            for index in _order(x.shape[-2], seed, epoch).to(x.device).split(batch):
                descent.load(x[..., index, :])
                _, derivative = loss.rows(index)(descent.forward())
                descent.descend(derivative.mul_(eta.to(x).reshape(*lead, *[1] * (derivative.ndim - len(lead)))))
            if checkpoint and checkpoint.due(run):
                checkpoint.save(run, key, epoch + 1, {**tensors, **logged})
    result = {name: torch.stack([logged[f"{name}@{j}"] for j in at], len(lead)) for name in log}
    result["loss"] = curve.double().cpu().movedim(0, -1).contiguous()
    if checkpoint:
        checkpoint.save(run, key, -1, result)
    return result
