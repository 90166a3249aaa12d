"""The kernel of a run: this interpreter, with nothing of the machine's or the user's settings.

`runner` starts it as a program, in an empty folder of its own.
"""

import importlib.machinery
import os
import sys
from pathlib import Path

from ipykernel.kernelapp import IPKernelApp

LIBRARY = Path(__file__).resolve().parents[1]


class Kernel(IPKernelApp):
    """A kernel that reads no configuration and runs no start-up file."""

    def load_config_file(self, suppress_errors=True):
        """Nothing: the machine's own configuration may hold code to run."""

    def _run_startup_files(self):
        """Nothing: neither PYTHONSTARTUP nor the folders that IPython knows."""


class Source(importlib.machinery.SourceFileLoader):
    """Compiles a module from its source.

    Stored bytecode is trusted by the second and the size of its source, which an edit can keep.
    """

    def get_code(self, fullname):
        return self.source_to_code(self.get_data(self.path), self.path)


def compile_library_anew():
    """Let the modules of this library be compiled from their sources when they are imported."""
    finder = importlib.machinery.FileFinder.path_hook((Source, importlib.machinery.SOURCE_SUFFIXES))

    def of_the_library(folder):
        places = Path(folder).absolute(), Path(folder).resolve()  # a folder may be a link
        if not any(place.is_relative_to(LIBRARY) for place in places):
            raise ImportError
        return finder(folder)

    sys.path_hooks.insert(0, of_the_library)
    sys.path_importer_cache.clear()


if __name__ == "__main__":
    compile_library_anew()
    Kernel.launch_instance(parent_handle=os.getppid())
