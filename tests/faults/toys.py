"""A copy of the project with toy claims, in which the command line runs as for a user.

And a host for its data.
"""

import gzip
import hashlib
import http.server
import math
import os
import struct
import threading
import time

import toy
from copies import Copy

SECONDS = 60  # a deadline: what comes at all comes much sooner, if the machine is not loaded
NET = """
import torch
from overparam.models.two_layer import TwoLayerReLU
from overparam.training import Checkpoint, SquaredLoss, gradient_descent
x, y = torch.eye({n}, dtype=torch.float64), torch.ones({n}, dtype=torch.float64)
net = TwoLayerReLU({n}, {m}, 1.0, seeds=[0], dtype=torch.float64)
"""
CELLS = {
    "toy2020-fine": """
from overparam.training import halving_step
halving_step([2.0, 1.0])
claim.series(curve=[1.0, 2.0])
value = width / 10
""",
    "toy2020-slow": """
import time
from ledger import paths
folder = paths.NOTEBOOKS / "toy2020"
print(file=open(folder / "started", "a"))
try:
    time.sleep(seconds)
except KeyboardInterrupt:
    time.sleep(4)
    print(file=open(folder / "saved", "a"))
    raise
value = 0.5
""",
    "toy2020-raises": "1 / 0",
    "toy2020-dies": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "toy2020-greedy": """
import numpy as np, psutil, resource
have = psutil.Process().memory_info().vms
resource.setrlimit(resource.RLIMIT_AS, (have + 2**28, have + 2**28))
np.ones(2**27)
""",
    "toy2020-mute": "value = 0.5\nclaim.report = lambda: None",
    "toy2020-nan": 'value = float("nan")\nclaim.metric("same", value)',
    "toy2020-diverges": NET.format(n=3, m=8)
    + 'gradient_descent(net, x, SquaredLoss(y, "sum"), 1e200, 5)',
    "toy2020-trains": NET.format(n=40, m=500)
    + """
saved = Checkpoint(claim.checkpoints / "net", every=0)
gradient_descent(net, x, SquaredLoss(y, "sum"), 1e-4, 10, checkpoint=saved)
value = 0.5
""",
    "toy2020-draws": """
import torch
from overparam.plots import figure
fig, axes = figure()
axes[0, 0].plot(torch.arange(3))
claim.figure(fig, "a")
value = 0.5
""",
    "toy2020-data": 'from overparam.data import load\nload("mnist", n_train=width, '
    "n_test=1)\nvalue = 0.5",
}


class Project(Copy):
    """A copy with toy notebooks, and without a network, whatever the machine has."""

    def __init__(self, root):
        super().__init__(root, http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9")
        self.started = self.notebooks / "toy2020" / "started"  # which the slow notebook writes

    def folder(self, claim, profile="smoke"):
        """{file name: bytes} of a claim's outputs."""
        return {path.name: path.read_bytes() for path in (self.figures / profile / claim).glob("*")}

    def record(self, claim, profile="smoke"):
        return self.folder(claim, profile).get("result.json")

    def file(self, claim, suffix=".toml"):
        return toy.file(self.notebooks, claim, suffix)

    def register(self, claim, tables="", at_most=1.0):
        """Write what is registered of a claim; tables: TOML beyond its check."""
        self.file(claim).write_text(toy.REGISTERED.format(at_most=at_most) + tables)

    def only(self, *claims):
        """Register these claims alone."""
        for file in self.notebooks.glob("*/*.toml"):
            file.unlink()
        for claim in claims:
            self.register(claim)

    def smoke(self, **values):
        """Other smoke sizes for all claims, whose records are then outdated."""
        rows = "".join(f"{name} = {value}\n" for name, value in values.items())
        for file in self.notebooks.glob("*/*.toml"):
            self.register(f"{file.parent.name}-{file.stem}", f"[sizes.smoke]\n{rows}")


def project(root):
    """A new copy in the folder `root`."""
    made = Project(root)
    for claim, body in CELLS.items():
        toy.write(made.notebooks, claim, body)
    return made


def wait_for(condition, what):
    """Until a condition holds; fails after SECONDS."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def complains(outcome, *words):
    """The run failed with a short message that holds the words, and without a traceback."""
    code, out, err = outcome
    assert code == 1, out + err
    assert "Traceback" not in out + err
    assert len(err.strip().splitlines()) <= 3, err
    for word in words:
        assert word in err
    return True


class Host(http.server.ThreadingHTTPServer):
    """Serves files on 127.0.0.1: as they are, or half of them, or byte by byte."""

    files, mode = {}, "good"

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.released = threading.Event()


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        content = self.server.files[self.path.strip("/")]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.server.mode == "good":
            self.wfile.write(content)
            return
        if self.server.mode == "trickling":
            while not self.server.released.wait(0.1):
                self.wfile.write(b"x")
            return
        self.wfile.write(content[: len(content) // 2])
        self.wfile.flush()
        self.server.released.wait(SECONDS)

    def log_message(self, *_):
        pass


def idx(*shape):
    """Bytes of a gzipped IDX file, with content that does not compress.

    And labels that are digits.
    """
    content = (
        os.urandom(math.prod(shape)) if len(shape) > 1 else bytes(k % 10 for k in range(*shape))
    )
    return gzip.compress(
        bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}i", *shape) + content
    )


def serve_mnist(host, project):
    """Make a host the origin of the project's MNIST, which is a small one then."""
    host.files = {
        "train-images-idx3-ubyte.gz": idx(400, 28, 28),
        "train-labels-idx1-ubyte.gz": idx(400),
        "t10k-images-idx3-ubyte.gz": idx(40, 28, 28),
        "t10k-labels-idx1-ubyte.gz": idx(40),
    }
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in host.files.items()}
    rows = [
        f'"{name}" = {{ size = {len(host.files[name])}, sha256 = "{d}" }}\n'
        for name, d in digests.items()
    ]
    registry = project.root / "lib" / "overparam" / "data" / "registry.toml"
    text = registry.read_text()
    start, end = text.index("urls = ["), text.index("[fashion-mnist]")
    urls = f'urls = ["http://127.0.0.1:{host.server_port}/{{file}}"]\n[mnist.files]\n'
    registry.write_text(text[:start] + urls + "".join(rows) + text[end:])
    project.environment["no_proxy"] = "127.0.0.1"
