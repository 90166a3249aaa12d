"""Gradient descent over a run axis. It knows tensors and callables, not which net it trains."""

from .autograd import Recipe
from .checkpoints import Checkpoint
from .descent import (
    History,
    gradient_descent,
    in_threads,
    stochastic_gradient_descent,
    subset_descent,
)
from .losses import (
    CrossEntropyLoss,
    ExponentialExcess,
    LogisticLoss,
    Loss,
    RegressionLoss,
    SquaredLoss,
    halving_step,
)
from .precision import fast_products

__all__ = [
    "Checkpoint",
    "CrossEntropyLoss",
    "ExponentialExcess",
    "History",
    "LogisticLoss",
    "Loss",
    "Recipe",
    "RegressionLoss",
    "SquaredLoss",
    "fast_products",
    "gradient_descent",
    "halving_step",
    "in_threads",
    "stochastic_gradient_descent",
    "subset_descent",
]
