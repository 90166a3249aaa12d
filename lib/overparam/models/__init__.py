"""The papers' nets, a module each, with their own initialisation and hand-written gradients.

A net holds R runs. `net.descent(x, run)` opens one run (or `run=None`: all of them as batched
products) for `overparam.training`; `open_run.OpenRun` says what an open run can do. Layers are
counted from 1, as in the papers. Models import no analysis.
"""
