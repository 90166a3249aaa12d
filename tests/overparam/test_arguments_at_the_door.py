"""What a caller may not hand in is refused in one line that names it."""

import itertools

import pytest
import torch

from overparam.errors import ParameterError
from overparam.models.deep_relu import ReLUNet, ReLURuns
from overparam.models.gated import GatedRuns
from overparam.models.leaky import LeakyMLP
from overparam.models.residual import ResidualRuns
from overparam.models.two_layer import TwoLayerReLU
from overparam.theory import finite_width_kernels, linear_descent, near_parallel
from overparam.theory import infinite_width_kernels as kernels
from overparam.theory.perturbation import attacks
from overparam.theory.perturbation.changes import Start
from overparam.training import CrossEntropyLoss, LogisticLoss, SquaredLoss, gradient_descent

NAN = float("nan")
KERNELS = {
    "relu": kernels.relu_gram,
    "leaky": lambda x: kernels.leaky_ntk(x, 2, 0.5),
    "residual": lambda x: kernels.residual_ntk(x, 2, 0.5),
    "plain": lambda x: kernels.residual_ntk(x, 2, None),
    "gated": lambda x: kernels.gated_ntk(x, 2),
}
NETS = {
    "two-layer": lambda seeds: TwoLayerReLU(3, 8, 1.0, seeds=seeds),
    "leaky": lambda seeds: LeakyMLP(3, 8, 1, 1, alphas=[0.5], seeds=seeds),
    "deep": lambda seeds: ReLURuns(3, 8, 1, 1, seeds=seeds),
    "residual": lambda seeds: ResidualRuns(3, 8, 2, 0.5, seeds=seeds),
    "gated": lambda seeds: GatedRuns("grelu", 3, 8, 1, seeds=seeds),
}


def refused(call, *words):
    """The call raises ParameterError in one line that holds the words."""
    with pytest.raises(ParameterError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


def train(x=None, y=None, eta=0.1, seeds=(0,), loss=None):
    x = torch.eye(3) if x is None else x
    loss = loss or SquaredLoss(torch.ones(3) if y is None else y, "sum")
    return gradient_descent(TwoLayerReLU(3, 8, 1.0, seeds=list(seeds)), x, loss, eta, 2)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_names_the_row_that_is_no_number_or_zero(name):
    x = torch.eye(4, dtype=torch.float64)
    for value in (NAN, float("inf")):
        x[2, 1] = value
        refused(lambda: KERNELS[name](x), "NaN or infinity in row 2", "(4, 4)")
    x[2] = 0
    refused(lambda: KERNELS[name](x), "row 2 of x is zero")
    refused(lambda: KERNELS[name](x[0]), "one row per input", "(4)")
    x[2, 2] = 1
    assert KERNELS[name](x).isfinite().all()


def test_kernels_between_two_sets_and_of_near_inputs_name_the_zero_row():
    x = torch.eye(3, dtype=torch.float64)
    zero = x.clone()
    zero[1] = 0
    refused(lambda: kernels.relu_cross_gram(zero, x), "row 1 of x is zero")
    refused(lambda: kernels.relu_cross_gram(x, zero), "row 1 of x is zero")
    refused(lambda: near_parallel.stable_relu_gram(zero), "row 1 of x is zero")


def test_a_prediction_refuses_what_is_no_number():
    gram, cross, y = torch.eye(2), torch.ones(1, 2), torch.ones(2)
    refused(lambda: kernels.kernel_predict(gram, cross, y * NAN), "y", "NaN")
    refused(lambda: kernels.kernel_predict(gram, cross * NAN, y), "cross", "NaN")
    refused(lambda: kernels.kernel_predict(gram * NAN, cross, y), "gram", "NaN")


def test_what_is_computed_from_inputs_or_kernels_refuses_what_is_no_number():
    x, gram, one = torch.eye(3, dtype=torch.float64), torch.eye(2), torch.ones(1, 2)
    bad_x, bad_gram, bad = x.clone(), gram * NAN, one * NAN
    bad_x[1, 0] = NAN
    refused(lambda: near_parallel.stable_relu_gram(bad_x), "NaN or infinity in row 1")
    refused(lambda: near_parallel.nearest_parallel(bad_x), "NaN or infinity in row 1")
    refused(lambda: near_parallel.nearest_parallel(x * 0), "row 0 of x is zero")
    refused(lambda: linear_descent.predicted_loss(bad_gram, one, 0.1, 2), "gram")
    refused(lambda: linear_descent.predicted_steps(gram, bad, 0.1, 0.5), "residual")
    refused(lambda: linear_descent.predicted_change(gram, bad, one, 0.1, 2), "cross")
    refused(lambda: linear_descent.predicted_change(gram, one, bad, 0.1, 2), "residual")
    refused(lambda: kernels.extreme_eigenvalues(bad_gram.double()), "gram")
    net = NETS["gated"]([0])
    refused(lambda: finite_width_kernels.initial_lambda_max(net, bad_x.float()), "x", "row 1")
    refused(lambda: finite_width_kernels.initial_lambda_max(net, torch.zeros(3, 3)), "zero")


X = torch.tensor([[-2.0, 1, 2], [-2, 1, 2], [-1, 0, 1]], dtype=torch.float64)
X_NEW = torch.tensor([[1.0, -2, 3]], dtype=torch.float64)
Y = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)


def _orders():
    more = torch.tensor([[1.0, 2, 2], [0, 1, 0], [3, 0, 1]], dtype=torch.float64)
    return [
        *((X, order) for order in itertools.permutations(range(3))),
        *((torch.cat([X, more]), order) for order in itertools.permutations(range(6))),
    ]


def test_a_repeated_input_is_refused_in_every_order():
    """Rounding alone decides whether a factorization breaks down, so its pivots are looked at."""
    for inputs, order in _orders():
        x = torch.nn.functional.normalize(inputs[list(order)], dim=1)
        gram = kernels.relu_gram(x)
        cross = kernels.relu_cross_gram(torch.nn.functional.normalize(X_NEW, dim=1), x)
        y = torch.ones(len(x), dtype=torch.float64)
        refused(lambda: kernels.kernel_predict(gram, cross, y), "two inputs parallel")  # noqa: B023
        refused(lambda: kernels.extreme_eigenvalues(gram), "two inputs parallel")  # noqa: B023


@pytest.mark.parametrize("distance", [1e-6, 1e-4])
def test_near_inputs_are_not_refused(distance):
    x = torch.cat([X[:1], X[:1] + torch.tensor([[0.0, distance, 0.0]]), X[2:]])
    x = torch.nn.functional.normalize(x, dim=1)
    gram = kernels.relu_gram(x)
    assert kernels.kernel_predict(gram, gram, Y).sub(Y).abs().max() < 1e-6
    smallest, largest = kernels.extreme_eigenvalues(gram)
    values = torch.linalg.eigvalsh(gram)
    assert smallest == pytest.approx(values[0].item(), rel=1e-5)
    assert largest == pytest.approx(values[-1].item(), rel=1e-9)


@pytest.mark.parametrize("name", NETS)
def test_seeds_are_a_list_of_integers(name):
    refused(lambda: NETS[name](0), "seeds must be a list", "not 0")
    refused(lambda: NETS[name]([0.5]), "seeds must be a list")
    refused(lambda: NETS[name]([]), "seeds is empty")
    assert NETS[name](range(1)).runs == 1


def test_a_training_refuses_numbers_that_are_none():
    refused(lambda: train(x=torch.eye(3) * NAN), "x", "row 0")
    refused(lambda: train(y=torch.tensor([1.0, NAN, 1.0])), "y", "(3)")


def test_a_training_refuses_labels_that_do_not_fit():
    refused(lambda: train(y=torch.ones(4)), "4 labels", "3 inputs")
    refused(lambda: train(y=torch.ones(3, 1)), "(3, 1)", "outputs of shape (3,)")
    wrong = CrossEntropyLoss(torch.zeros(4))
    refused(lambda: train(loss=wrong), "4 labels", "3 inputs")


def test_a_training_refuses_inputs_of_another_precision():
    refused(lambda: train(x=torch.eye(3).double()), "float64", "float32", "make them equal")
    net = ResidualRuns(3, 8, 2, 0.5, seeds=[0])
    loss = SquaredLoss(torch.ones(3), "sum")
    refused(lambda: gradient_descent(net, torch.eye(3), loss, 0.1, 1), "float32", "float64")


def test_a_training_refuses_labels_of_another_precision():
    refused(
        lambda: train(y=torch.ones(3).double()), "y is", "float64", "float32", "make them equal"
    )
    net, x = GatedRuns("grelu", 3, 8, 1, seeds=[0]), torch.eye(3).double()
    refused(
        lambda: gradient_descent(net, x, SquaredLoss(torch.ones(3, 1)), 0.1, 1), "y is", "float32"
    )
    classes = CrossEntropyLoss(torch.zeros(3, dtype=torch.int64))  # these have no precision
    leaky = LeakyMLP(3, 8, 2, 1, alphas=[0.5], seeds=[0])
    assert gradient_descent(leaky, torch.eye(3), classes, 0.1, 1).loss.isfinite().all()


def test_step_sizes_are_not_negative_and_one_for_each_run():
    refused(lambda: train(eta=-0.1), "eta", "-0.1")
    refused(lambda: train(eta=[0.1, NAN], seeds=[0, 1]), "eta", "NaN")
    refused(lambda: train(eta=[0.1, 0.1, 0.1], seeds=[0, 1]), "each of 2 runs")
    assert train(eta=[0.0, 0.1], seeds=[0, 1]).loss.shape == (2, 3)


@pytest.mark.parametrize("name", NETS)
def test_a_net_refuses_inputs_of_another_number_of_columns(name):
    net = NETS[name]([0])
    x = torch.ones(2, 4, dtype=getattr(net, "dtype", torch.float64))
    refused(lambda: net.descent(x, 0).forward(), "x has 4 columns", "takes 3")


def test_outputs_refuse_inputs_of_another_shape_or_precision():
    for net in (NETS["two-layer"]([0]), NETS["leaky"]([0]), ReLUNet(3, 8, 1, 1, seed=0)):
        own = torch.float64 if isinstance(net, ReLUNet) else torch.float32
        other = torch.float32 if isinstance(net, ReLUNet) else torch.float64
        refused(lambda: net.outputs(torch.eye(4, dtype=own)), "4 columns", "takes 3")  # noqa: B023
        refused(lambda: net.outputs(torch.eye(3, dtype=other)), "make them equal")  # noqa: B023
        assert net.outputs(torch.eye(3, dtype=own)).isfinite().all()


def test_a_training_refuses_what_is_no_net_no_inputs_or_no_loss():
    net, x, loss = NETS["two-layer"]([0]), torch.eye(3), SquaredLoss(torch.ones(3))
    refused(lambda: gradient_descent(x, net, loss, 0.1, 1), "net must be", "Tensor")
    refused(lambda: gradient_descent(net, loss, x, 0.1, 1), "x must be", "SquaredLoss")
    refused(lambda: gradient_descent(net, x.numpy(), loss, 0.1, 1), "x must be", "ndarray")
    refused(lambda: gradient_descent(net, x[0], loss, 0.1, 1), "one row per input", "(3)")
    for wrong, told in (
        (torch.nn.MSELoss(), "MSELoss"),
        ("squared", "str"),
        (SquaredLoss, "SquaredLoss"),
        (torch.ones(3), "Tensor"),
    ):
        refused(lambda: gradient_descent(net, x, wrong, 0.1, 1), "loss must be", told)  # noqa: B023


def test_a_loss_refuses_labels_that_are_no_tensor_or_of_another_kind():
    for kind in (SquaredLoss, CrossEntropyLoss, LogisticLoss):
        refused(lambda: kind([1, 1]), "y must be a tensor", "list")  # noqa: B023
    classes = CrossEntropyLoss(torch.zeros(3, dtype=torch.int64))
    refused(lambda: train(loss=classes), "(3,)", "a class number for each input")


def test_kernels_refuse_depths_that_are_none():
    x = torch.eye(3, dtype=torch.float64)
    for kernel, others in (
        (kernels.leaky_ntk, [0.5]),
        (kernels.residual_ntk, [0.5]),
        (kernels.gated_ntk, []),
    ):
        for depth in (0, -1.0, 2.5):
            refused(lambda: kernel(x, depth, *others), "depth", repr(depth))  # noqa: B023


def test_predictions_refuse_a_kernel_that_is_not_square():
    refused(
        lambda: linear_descent.predicted_loss(torch.ones(1, 20), torch.eye(20), 0.1, 2),
        "gram must be",
        "(1, 20)",
    )
    net = NETS["two-layer"]([0])
    refused(lambda: finite_width_kernels.tangent_kernel(net), "TwoLayerReLU", "net.descent(x)")


def test_attacks_refuse_what_is_no_start_and_radii_that_are_none():
    net, x = ReLUNet(3, 8, 1, 2, seed=0), torch.eye(3, dtype=torch.float64)
    refused(lambda: Start(x, net), "net must be", "Tensor")
    refused(lambda: Start(NETS["two-layer"]([0]), x), "net must be", "TwoLayerReLU")
    refused(lambda: Start(net, x.float()), "make them equal")
    refused(lambda: Start(net, torch.cat([x, 0 * x[:1]])), "row 3 of x is zero")
    refused(lambda: attacks.flip_all(net, [0.1]), "Start", "ReLUNet")
    refused(lambda: attacks.flip_all(Start(net, x), 0.1), "radii", "0.1")
    refused(lambda: attacks.flip_all(Start(net, x), [0.1, -0.1]), "negative")
    assert attacks.flip_all(Start(net, x), [0.0, 0.1]).norms().shape == (2, 3)
