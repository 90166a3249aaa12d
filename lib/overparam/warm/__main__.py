"""Run a command with a warm server."""

import os
import subprocess
import sys

from . import server

if __name__ == "__main__":
    with server() as variables:
        code = subprocess.run(sys.argv[1:], env=os.environ | variables).returncode
    sys.exit(code if code >= 0 else 128 - code)
