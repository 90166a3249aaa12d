"""What `import overparam` costs beyond `import torch`, in CPU seconds of a fresh interpreter."""

import resource
import subprocess
import sys

from harness import Quantity, main


def cpu_seconds(code):
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    subprocess.run([sys.executable, "-c", code], check=True)
    return used() - before


def beyond_torch(repetitions=9):
    cpu_seconds("import torch, overparam")
    return [
        cpu_seconds("import torch, overparam") - cpu_seconds("import torch")
        for _ in range(repetitions)
    ]


if __name__ == "__main__":
    main([Quantity("import overparam", "import torch", 0.15, "CPU s beyond it", beyond_torch)])
