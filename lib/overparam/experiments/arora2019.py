"""At which steps a long training is looked at."""

import numpy as np


def record_steps(steps, count=12):
    """0, `steps` and about `count` steps between them, evenly spaced on a logarithmic axis."""
    return sorted({0, *np.geomspace(1, steps, count).astype(int).tolist(), steps})
