"""The papers' networks, a module each, with their own initialisation and hand-written gradients.

A net holds R runs. `net.descent(x, run)` opens one run (or `run=None`: all of them as batched
products) for `overparam.training`: `forward()` gives the outputs at the current weights, and
`descend(v)` then moves the weights by -sum_i v_i df_i/dW, in place, where v is the step size times
the derivative of the loss by the outputs.
In runs of the leaky and the gated nets, `inputs_of_layers()` and `sensitivities(v)` are the two
factors h, z of every layer's gradients z h^T, and `at(W)` is the same run at other weights. Models
import no analysis.
"""
