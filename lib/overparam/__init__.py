"""An executable companion to five papers on overparameterized neural networks.

Submodules load on first use, so that `import overparam` stays cheap: `overparam.data.load("mnist")`,
`overparam.kernels.relu_gram(x)`, `overparam.bounds.arora2019.complexity(y, H)`.
"""

import importlib

__version__ = "0.1.0"
_SUBMODULES = (
    "bounds", "claims", "data", "errors", "kernels", "nets", "numerics", "paths", "plots", "rademacher", "sweeps",
    "train", "workflow",
)  # fmt: skip


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module(f"overparam.{name}")
    raise AttributeError(f"module 'overparam' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_SUBMODULES])
