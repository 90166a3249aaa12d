"""What a caller may choose for the whole process.

The library itself reads no environment variable.

>>> from overparam import settings
>>> settings.memory_limit = 4 * 2**30  # bytes
"""

import os.path
from pathlib import Path

_library = Path(__file__).resolve().parents[1]  # lib/ in a checkout of the project
data_embedded = _library.parent / "data"  # data sets that come with the project
data_cache = data_embedded / "cache"  # folder to which data sets are downloaded
if _library.name != "lib":  # the package is installed alone
    data_cache = Path(os.path.expanduser("~/.cache/overparam"))
data_mirror = None  # Path of a read-only folder of data sets, looked at before any download
memory_limit = None  # bytes that may be used; None: three quarters of what is free
checkpoint_seconds = 30.0  # between two saves of a training; 0: after every step
checkpoint_code = ""  # a digest of the code of a training: checkpoints of other code are refused
progress = False  # whether long loops show their progress where nobody watches a terminal
