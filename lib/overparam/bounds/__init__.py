"""Every theorem's formula as a plain function, one module per paper, arguments named by the paper's letters.

Asymptotic constants are keyword arguments with default 1.
"""

from . import arora2019, frei2019, guo2024

__all__ = ["arora2019", "frei2019", "guo2024"]
