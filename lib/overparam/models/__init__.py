"""The papers' networks, a module each, with their own initialisation and hand-written gradients.

A net holds R runs. `net.descent(x, run)` opens one run (or `run=None`: all of them as batched products) for
`overparam.training`: `forward()` gives the outputs at the current weights, and `descend(v)` then moves the weights by
-sum_i v_i df_i/dW, in place, where v is the step size times the derivative of the loss by the outputs.
"""
