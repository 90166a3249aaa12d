"""Every theorem's formula as a plain function, a module per paper, in the paper's letters.

A docstring begins with the formula and ends with its place in the paper; "ours" is what no paper
states. Constants that a paper leaves open (C, c, C1, ..) are keyword arguments with default 1. The
functions take numbers, arrays or tensors, broadcast, compute in float64, and raise ParameterError
for an argument outside its range. `form="printed"` is a formula as the paper prints it; what the
other forms correct, the docstring says.

>>> from overparam.bounds import arora2019, guo2024
>>> float(arora2019.thm31_eta(n=100, lam0=0.1))  # the largest step size
1e-05
>>> guo2024.c_alpha([-1, 0, 0.5]).tolist()
[2.0, 1.0, 0.2]
"""
