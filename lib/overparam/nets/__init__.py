"""The papers' networks, each with its own initialisation and a hand-written gradient.

A net holds R runs along its leading axis. `net.descent(x, run)` opens one run (or `run=None`: all of them as batched
products) for `overparam.train`: `forward()` gives the outputs at the current weights, and `descend(v)` then moves the
weights by -sum_i v_i df_i/dW, in place, where v is the step size times the derivative of the loss by the outputs.
"""

from .deep_relu import LeakyMLP
from .residual import ResidualReLU
from .two_layer import TwoLayerReLU

__all__ = ["LeakyMLP", "ResidualReLU", "TwoLayerReLU"]
