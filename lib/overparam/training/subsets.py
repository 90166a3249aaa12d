"""Stochastic gradient descent whose batches are independent random subsets, over a run axis."""

import torch

from ..errors import ParameterError
from .checkpoints import training_key
from .descent import over_runs


def subset_descent(net, x, loss, eta, steps, *, batch, seed, at=None, checkpoint=None):
    """W <- W - eta (n / batch) sum_{i in S_t} dF_i/dW with S_t a uniform subset of `batch` examples, for all runs.

    net: has `runs` and `descent(x, run)`, whose `forward(rows)` takes the numbers of some examples; loss: a sum over
    the examples, with `rows`; eta: one step size, or a list of one per run. S_t is a function of `seed` and t, and the
    same for all runs. checkpoint: a `Checkpoint` to resume from and save to.
    Returns the loss of all examples before the steps `at` (by default 0..steps), (R, len(at)) float64 on the CPU, not
    finite where a run has diverged. Source: Allen-Zhu et al. 2019, Theorem 2.
    """
    n = x.shape[-2]
    if steps < 1 or not 1 <= batch <= n:
        raise ParameterError(f"steps = {steps} and batch = {batch} must be at least 1, and batch at most {n}")
    at = range(steps + 1) if at is None else sorted(set(at))
    if at[0] < 0 or at[-1] > steps:
        raise ParameterError(f"at must lie in 0..{steps}, not {list(at)}")
    etas = torch.as_tensor(eta, dtype=torch.float64).expand(net.runs) * n / batch

    def work(run):
        chosen = (etas if run is None else etas[run]).to(x)
        return _descend(net, x, loss.select(run), chosen, run, steps, batch, seed, at, checkpoint)

    together, curves = over_runs(work, net, x)
    return curves[0] if together else torch.stack(curves)


def subset(n, batch, seed, step):
    """`batch` different numbers below n, (batch,), in random order."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    return torch.randperm(n, generator=generator)[:batch]


def _descend(net, x, loss, eta, run, steps, batch, seed, at, checkpoint):
    """(len(at),) of one run, or (R, len(at)) for run=None."""
    descent = net.descent(x, run)
    lead = () if run is not None else (net.runs,)
    curve = torch.full((len(at), *lead), float("nan"), dtype=x.dtype, device=x.device)
    tensors = {"loss": curve, **descent.state}
    settings = ["subsets", eta.tolist(), steps, batch, seed, loss.scale, list(at)]
    key = checkpoint and training_key(settings, [x, loss.y, *tensors.values()])
    first, saved = checkpoint.load(run, key) if checkpoint else (0, {})
    if first < 0:
        return saved["loss"]
    for name, t in tensors.items():
        t.copy_(saved.get(name, t))
    places = {step: place for place, step in enumerate(at)}
    for step in range(first, steps + 1):
        if step in places:
            curve[places[step]] = loss(descent.forward())[0]
        if step < steps:
            rows = subset(x.shape[-2], batch, seed, step).to(x.device)
            _, v = loss.rows(rows)(descent.forward(rows))
            descent.descend(v.mul_(eta.reshape(*lead, *[1] * (v.ndim - len(lead)))))
            if checkpoint and checkpoint.due(run):
                checkpoint.save(run, key, step + 1, tensors)
    result = curve.double().cpu().movedim(0, -1).contiguous()
    if checkpoint:
        checkpoint.save(run, key, -1, {"loss": result})
    return result
