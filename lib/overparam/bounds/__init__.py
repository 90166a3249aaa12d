"""Every theorem's formula as a plain function, one module per paper, arguments named by the paper's letters.

Asymptotic constants are keyword arguments with default 1.
"""

import importlib

_PAPERS = ("allenzhu2019", "allenzhu2019_limits", "arora2019", "frei2019", "guo2024", "noy2021")


def __getattr__(name):
    if name in _PAPERS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_PAPERS])
