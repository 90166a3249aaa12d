"""An executable companion to five papers on overparameterized neural networks.

models, training, theory, bounds and data are what the notebooks compute with; record and run keep and make their
results. Each imports on its own: `from overparam.theory.kernels import relu_gram`.
"""

__version__ = "0.2.0"
