"""One step of every model and loop with fake tensors on cuda:0.

Which have no content and refuse a mix of devices.

Not the modules that autograd trains: torch ends by force where it differentiates such tensors
without CUDA.
"""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from overparam import memory, training
from overparam.models.deep_relu import ReLURuns
from overparam.models.gated import GatedRuns, TabulatedRuns
from overparam.models.leaky import LeakyMLP
from overparam.models.residual import ResidualRuns
from overparam.models.two_layer import TwoLayerReLU
from overparam.theory import infinite_width_kernels as kernels
from overparam.training.losses import ExponentialExcess

GPU = torch.device("cuda:0")


class Hook(TorchFunctionMode):
    """What a machine without CUDA cannot fake of itself.

    Moves to the GPU, lists as indices, the value of a tensor.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(function, "__name__", "")
        if name in ("to", "cuda"):
            given = [*args[1:], *kwargs.values()]
            given += [
                part
                for like in given
                if isinstance(like, torch.Tensor)
                for part in (like.device, like.dtype)
            ]
            devices = [torch.device(g) for g in given if isinstance(g, torch.device | str)]
            dtypes = [g for g in given if isinstance(g, torch.dtype)] or [args[0].dtype]
            if GPU.type in [device.type for device in devices]:
                return torch.empty(args[0].shape, device=GPU, dtype=dtypes[0])
        if name in ("item", "__bool__", "__int__", "__float__", "allclose"):
            return {"__bool__": True, "allclose": True, "__int__": 1, "__float__": 1.0}.get(name, 1)
        if name == "__getitem__" and args[0].device.type == "cuda":
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            index = [
                torch.empty(len(i), dtype=torch.long) if isinstance(i, list) else i for i in index
            ]
            index = tuple(
                torch.empty_like(i, device="meta") if isinstance(i, torch.Tensor) else i
                for i in index
            )
            return args[0].new_empty(torch.empty_like(args[0], device="meta")[index].shape)
        if name == "copy_":
            return args[0]
        if name == "__setitem__" and args[0].device.type == "cuda":
            value = args[2]
            assert (
                not isinstance(value, torch.Tensor)
                or value.ndim == 0
                or value.device == args[0].device
            )
            return None
        return function(*args, **kwargs)


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(memory, "_free", lambda device: 2**40)
    with FakeTensorMode(), Hook():
        yield GPU


N, P, M = 5, 4, 8
FREE = {"allow_divergence": True}  # no value is finite
NETS = {
    "two_layer": lambda: (
        TwoLayerReLU(P, M, 1.0, seeds=[0, 1], dtype=torch.float32, device=GPU),
        (),
    ),
    "leaky": lambda: (LeakyMLP(P, M, 1, 2, alphas=[0.0, 0.5], seeds=[0, 0], device=GPU), (1,)),
    "leaky keep_W1": lambda: (
        LeakyMLP(P, M, 1, 2, alphas=[0.0, 0.5], seeds=[0, 0], keep_W1=True, device=GPU),
        (1,),
    ),
    "deep": lambda: (
        ReLURuns(P, M, 1, 3, seeds=[0, 1], tau=0.1, dtype=torch.float32, device=GPU),
        (1,),
    ),
    "wide": lambda: (ReLURuns(P, M, 1, 1, seeds=[0, 1], dtype=torch.float32, device=GPU), (1,)),
    "residual": lambda: (
        ResidualRuns(P, M, 2, 0.1, seeds=[0, 1], dtype=torch.float32, device=GPU),
        (),
    ),
    "grelu": lambda: (GatedRuns("grelu", P, M, 2, seeds=[0, 1]), (1,)),
    "relu": lambda: (GatedRuns("relu", P, M, 2, seeds=[0, 1], psi_rank=2), (1,)),
}


def data():
    return torch.randn(N, P, device=GPU)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("name", NETS)
def test_descent(gpu, name, batched):
    net, outputs = NETS[name]()
    x, loss = data(), training.SquaredLoss(torch.ones(N, *outputs, device=GPU), "halfsum")
    x = net.embed(x) if hasattr(net, "embed") else x
    log = (
        {"predicted": lambda run: run.predict(x)}
        if name in ("two_layer", "leaky", "residual", "grelu")
        else {}
    )
    found = training.gradient_descent(
        net, x, loss, [0.1, 0.2], 2, log=log, at=[0, 2], batched=batched, **FREE
    )
    assert found.loss.device.type == "cpu"
    assert found.loss.shape == (2, 3)


def test_batches_and_subsets(gpu):
    x, y = data(), torch.ones(N, 1, device=GPU)
    net = LeakyMLP(P, M, 1, 2, alphas=[0.0], seeds=[0], device=GPU)
    epochs, loss = {"batches": training.Epochs(2, seed=0), **FREE}, training.SquaredLoss(y, "sum")
    descent = training.gradient_descent
    assert descent(net, x, loss, 0.1, 1, **epochs).loss.shape == (1, 2)
    table, regression = TabulatedRuns("grelu", x, M, 2, seeds=[0]), training.RegressionLoss(y)
    assert descent(table, table.rows(), regression, 0.1, 1, **epochs).loss.shape == (1, 2)
    net = ReLURuns(P, M, 1, 2, seeds=[0, 1], dtype=torch.float32, device=GPU)
    subsets = {"batches": training.Subsets(2, seed=0), **FREE}
    assert descent(net, x, loss, 0.1, 2, **subsets).loss.shape == (2, 3)


@pytest.mark.parametrize(
    "made",
    [
        lambda y: training.CrossEntropyLoss(y[:, 0]),
        lambda y: training.LogisticLoss(y[:, 0]),
        lambda y: ExponentialExcess(y, 0.5),
        lambda y: training.RegressionLoss(y, runs_axis=False),
    ],
    ids=["entropy", "logistic", "exponential", "regression"],
)
def test_losses(gpu, made):
    u, loss = torch.randn(2, N, 1, device=GPU), made(torch.ones(N, 1, device=GPU))
    u = u[..., 0] if isinstance(loss, training.LogisticLoss) else u
    for part in (loss, loss.rows(torch.ones(3, dtype=torch.long, device=GPU))):
        value, derivative = part(u[:, :3] if part is not loss else u)
        assert {value.device, derivative.device} == {GPU}


def test_kernels(gpu):
    x = data()
    for made in (kernels.relu_gram(x), kernels.relu_cross_gram(x, x), kernels.leaky_ntk(x, 2, 0.1)):
        assert (made.device, made.shape) == (GPU, (N, N))
