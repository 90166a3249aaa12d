"""Warm processes: a server that has imported the libraries once forks a fresh process for every kernel.

    python -m overparam.warm COMMAND ...

runs a command with such a server; kernels named python3 that it starts are then forked. Only third-party libraries are
loaded beforehand, so that every notebook sees the package's sources as they are when it starts.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .. import paths

KERNELS = Path(__file__).parent


@contextlib.contextmanager
def server():
    """Environment variables under which kernels are forked, while a server runs.

    Until it listens, and if it dies, kernels start in the ordinary way.
    """
    with tempfile.TemporaryDirectory(prefix="overparam-", dir=paths.for_sockets()) as folder:
        address = f"{folder}/warm"
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "overparam.warm.server", address],
            stdin=subprocess.PIPE,  # its end tells the server that we are gone
            env=os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"},
            start_new_session=True,
        )
        path = os.pathsep.join([str(KERNELS), *filter(None, [os.environ.get("JUPYTER_PATH")])])
        try:
            yield {"OVERPARAM_WARM": address, "JUPYTER_PATH": path}
        finally:
            process.stdin.close()
            process.terminate()  # it may still be importing
            process.wait()
