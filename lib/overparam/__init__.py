"""Networks, training loops, kernels and bounds of five papers on overparameterized neural networks.

models, training, theory, bounds, data and plots each import on their own, for example
`from overparam.theory.infinite_width_kernels import relu_gram`. Nothing here knows of claims,
verdicts or notebooks.
"""

__version__ = "0.3.0"
