"""Gradient descent over a run axis. It knows tensors and functions, not which net it trains."""

from .autograd import Recipe
from .batches import Epochs, FullBatch, Subsets
from .checkpoints import Checkpoint
from .descent import History, gradient_descent, reaches
from .losses import (
    CrossEntropyLoss,
    ExponentialExcess,
    LogisticLoss,
    Loss,
    RegressionLoss,
    SquaredLoss,
    halving_step,
)
from .parallel import in_threads
from .precision import fast_products

__all__ = [
    "Checkpoint",
    "CrossEntropyLoss",
    "Epochs",
    "ExponentialExcess",
    "FullBatch",
    "History",
    "LogisticLoss",
    "Loss",
    "Recipe",
    "RegressionLoss",
    "SquaredLoss",
    "Subsets",
    "fast_products",
    "gradient_descent",
    "halving_step",
    "in_threads",
    "reaches",
]
