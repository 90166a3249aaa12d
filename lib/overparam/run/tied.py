"""Run a module that ends, with all that it has started, as soon as its standard input ends.

    python -m overparam.run.tied MODULE ...

Whoever starts it, as the first of a session, holds the other end of that pipe: when he is gone, however he ended,
nobody is left to stop these processes.
"""

import os
import runpy
import signal
import sys
import threading


def _end_with_input():
    while os.read(0, 1):
        continue
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell has started us in the background
    threading.Thread(target=_end_with_input, daemon=True).start()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
