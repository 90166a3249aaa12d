"""Gradient descent over a run axis. It knows tensors and callables, not which net it trains."""

from .checkpoints import Checkpoint
from .descent import History, gradient_descent
from .losses import (
    CrossEntropyLoss,
    ExponentialExcess,
    ExponentialLoss,
    LogisticLoss,
    RegressionLoss,
    SquaredLoss,
    halving_step,
)
from .precision import fast_products
from .stochastic import stochastic_gradient_descent

__all__ = [
    "Checkpoint", "CrossEntropyLoss", "ExponentialExcess", "ExponentialLoss", "History", "LogisticLoss",
    "RegressionLoss", "SquaredLoss", "fast_products", "gradient_descent", "halving_step",
    "stochastic_gradient_descent",
]  # fmt: skip
