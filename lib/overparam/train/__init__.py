"""Gradient descent over a run axis. It knows tensors and callables, not which net it trains."""

from .checkpoints import Checkpoint
from .descent import History, gradient_descent
from .losses import LogisticLoss, SquaredLoss, halving_step
from .precision import fast_products

__all__ = [
    "Checkpoint", "History", "LogisticLoss", "SquaredLoss", "fast_products", "gradient_descent", "halving_step",
]  # fmt: skip
