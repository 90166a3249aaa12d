"""The claim record: what a notebook measured, kept, drew and said, with the computed verdict.

A notebook opens one `Claim` per claim id that it serves, hands it what it measured, and ends with `report()`, which
writes `figures/<profile>/<claim-id>/` and shows the verdict.
"""

import base64
import inspect
import io
import json
import lzma
import math
import os
import re
import resource
import sys
import time
import weakref
from dataclasses import asdict
from pathlib import Path

import numpy as np

from .. import memory, paths
from ..errors import ClaimError, ParameterError
from . import provenance, render
from .checks import changed, folder, profile_parameters, served, spec, verdict
from .files import forget, png, write_together
from .parameters import validated
from .values import finite, measured, prepared, significant, tidy

LEGIBLE = 300_000  # bytes up to which a table is kept as text that a diff can read
KEPT = (".png", ".svg", ".npz", ".csv", ".xz")  # suffixes of a record's files beside result.json
_UNMEASURED = {"value": None, "spread": None, "n": 0, "without": ""} | dict.fromkeys(
    ("holds", "undecided", "applies"), False
)
_NAME = re.compile(r"[\w-]+", re.ASCII)
_shown = weakref.WeakSet()  # figures that serve several claims are shown once


class Claim:
    """The record of one claim, from its parameters to `result.json`.

    `Claim("arora2019-fig1-spectrum-projections", globals())` takes the values of the notebook's parameters from its
    namespace, validates them, resolves the device and sets the seeds. Where they are not those of the profile, the
    record goes to a folder of its own in `figures/custom/`. Trainings save themselves in `checkpoints`, which the
    report removes.
    """

    def __init__(self, claim_id, namespace):
        self.spec = spec(claim_id)
        self.id = claim_id
        profile = namespace.get("profile", "smoke")
        reference, ranges, self._resources = profile_parameters(claim_id, profile)
        if missing := set(reference) - set(namespace):
            raise ParameterError(f"{claim_id}: parameters not set: {', '.join(sorted(missing))}")
        self.parameters = validated({name: namespace[name] for name in reference}, reference, ranges)
        self.profile = profile
        self._apart_by = changed(self.parameters, reference)
        where = folder(profile, self._apart_by)
        self.folder = paths.FIGURES / where / claim_id
        self.checkpoints = paths.LOGS / "checkpoints" / where / claim_id
        # At desk and paper size the folder of finished runs: while the record is staged, where it will end.
        lasting = Path(os.environ.get("OVERPARAM_RUNS") or self.folder / "runs")
        self.runs = lasting if where in ("desk", "paper") else None
        places = [*map(self.checkpoints.with_name, served(self.spec.notebook)), *([self.runs] if self.runs else [])]
        self._resumed = any(any(place.rglob("*.safetensors")) for place in places)
        self.device, self.seeds = prepared(self.parameters)
        began = os.environ.get("OVERPARAM_STATE")
        if began and began != provenance.settled(self.spec.path):
            raise ClaimError(f"{claim_id}: sources were written to, or are others, since its run began; run it again")
        os.environ["OVERPARAM_FINGERPRINT_CODE"] = provenance.library(self.spec.path)  # for keys of checkpoints
        tries = self._apart_by or (self.device.type == "cpu" and self._resources.get("gpu"))  # what a GPU needs
        if not tries:
            what = f"{self.spec.notebook} at {self.profile} size"
            memory.require(self._resources["memory_mb"] * 2**20, what, self.device)
        self._started = time.perf_counter()
        self._results, self._metrics, self._series, self._files = {}, {}, {}, {}
        self._data, self._summary = [], []

    def data(self, dataset):
        """Note a loaded data set in the record, and hand it back."""
        row = {key: getattr(dataset, key) for key in ("name", "source", "stand_in", "sha256")}
        if row not in self._data:
            self._data.append(row)
        return dataset

    def metric(self, name, value, paper=None):
        """Record one number, beside the paper's where it prints one. Raises ClaimError for anything else."""
        self._metrics[name] = {"value": finite(value), "paper": None if paper is None else finite(paper)}

    def keep(self, frame, name="runs"):
        """Store a tidy pandas table with the record, and hand it back as stored: floats have six significant digits.

        It is `<name>.csv`, compressed to `<name>.csv.xz` above 300 kB. A named index becomes columns.
        Raises ClaimError for a cell that is neither a number, nor a word, nor a truth value.
        """
        if not _NAME.fullmatch(name) or {f"{name}.csv", f"{name}.csv.xz"} & self._files.keys():
            raise ClaimError(f"{self.id}: a table has a name of its own in letters, digits, - and _, not {name!r}")
        frame = tidy(frame)
        try:
            text = frame.to_csv(index=False, lineterminator="\n").encode()
        except UnicodeEncodeError as error:
            raise ClaimError(f"{self.id}: the table {name!r} holds words that no UTF-8 can hold") from error
        small = len(text) <= LEGIBLE
        self._files[f"{name}.csv" if small else f"{name}.csv.xz"] = text if small else lzma.compress(text)
        return frame

    def series(self, /, **arrays):
        """Record plotted arrays, rounded to six significant digits, for `series.npz`. Raises ClaimError for objects."""
        for name, array in arrays.items():
            array = np.asarray(array)
            reserved = name in ("file", "allow_pickle") or name.endswith(".npy") or not name.isprintable()
            if reserved or array.dtype.kind not in "biufcU":  # else numpy would take a pickle, or lose the name
                raise ClaimError(f"{self.id}: the series {name!r} of {array.dtype} cannot be stored")
            self._series[name] = significant(array)

    def figure(self, fig, name):
        """Draw a figure once: the picture that is shown is `<name>.png` of the record. It is closed then."""
        import matplotlib.pyplot as plt

        if not _NAME.fullmatch(name):
            raise ClaimError(f"{self.id}: a figure is named in letters, digits, - and _, not {name!r}")
        content = self._files[f"{name}.png"] = png(fig)
        if fig not in _shown:
            picture = {"image/png": base64.b64encode(content).decode(), "text/plain": repr(fig)}
            _show(picture, {"image/png": {"width": round(100 * fig.get_figwidth())}})
            _shown.add(fig)
        plt.close(fig)

    def say(self, text):
        """Show Markdown on the page, and add its paragraphs to the record's summary."""
        text = inspect.cleandoc(text).strip()
        if not text:
            raise ClaimError(f"{self.id}: there is nothing to say")
        self._summary += re.split(r"\n\s*\n", text)
        _show({"text/markdown": text, "text/plain": text})

    def check(self, name, value):
        """Measure a registered check: `value` is a number, or a sample with one number per seed.

        Of a sample the registered statistic is judged (mean by default, median, min, max, or the share of truth
        values), with its 95 % interval: Student's t for the mean, Clopper and Pearson's for a share, the sign test's
        for the median (six values at least), none for min and max. A registered tolerance widens it on both sides.
        The check holds where the whole interval satisfies it, fails where no point of it does, and is undecided
        otherwise, also where a mean comes of a single value: it then counts neither way.
        Raises ClaimError for a check that is unregistered or given twice, and where an [A] fails.
        """
        check = next((c for c in self.spec.checks if c.name == name), None)
        if check is None or name in self._results:
            raise ClaimError(f"{self.id}: check {name!r} is {'given twice' if check else 'not registered'}")
        value, low, high, n = measured(value, check.statistic)
        value, low, high = finite(value), finite(low - check.tolerance), finite(high + check.tolerance)
        spread = None if value is None or low == high == value else [low, high]
        became = check.outcome(value, spread)
        without = self._resources.get("without", {}).get(name, "")
        applies = check.is_judged_at(self.profile) and not without
        judged = {"holds": became == "holds", "undecided": became == "undecided", "applies": applies}
        self._results[name] = asdict(check) | {"value": value, "spread": spread, "n": n, "without": without} | judged
        if applies and check.tag == "A" and became == "fails":
            found = f"{math.nan if value is None else value:.3g}, where {render.required(asdict(check))} was required"
            raise ClaimError(f"{self.id}: our own computation is wrong: {check.wording}: {found}")

    def report(self):
        """Compute the verdict, write the record atomically, and show it. Raises ClaimError where a check is missing.

        A superseded check is shown with its reason, and need not be measured.
        """
        without = self._resources.get("without", {})
        wanted = [c.name for c in self.spec.checks if c.is_judged_at(self.profile) and c.name not in without]
        if missing := [name for name in wanted if name not in self._results]:
            raise ClaimError(f"{self.id}: checks not measured: {', '.join(missing)}")
        left = [c for c in self.spec.checks if c.superseded_by and c.name not in self._results]
        rows = list(self._results.values()) + [asdict(check) | _UNMEASURED for check in left]
        if self._apart_by:
            values = self._reference()
            rows = [row | {"reference": values.get(row["name"])} for row in rows]
        record = {
            "claim": self.id,
            **{name: getattr(self.spec, name) for name in ("title", "paper", "source", "kind", "notebook")},
            "profile": "custom" if self._apart_by else self.profile,
            "parameters": self.parameters,
            **({"changed": self._apart_by} if self._apart_by else {}),
            "sizes": self.spec.size(self.profile),
            "reduced": self._resources.get("reduced", ""),
            "verdict": verdict(rows, self.spec.partly_if),
            "summary": self._summary,
            "checks": rows,
            "metrics": self._metrics,
            "series": sorted(self._series),
            "tables": sorted(name for name in self._files if ".csv" in name),
            "figures": sorted(name for name in self._files if name.endswith("png")),
            "seeds": self.seeds,
            "data": self._data,
            "seconds": max(0.001, round(time.perf_counter() - self._started, 3)),
            "resumed": self._resumed,
            **self._machine(),
            "versions": provenance.versions(),
            "git": provenance.git_revision(),
            "fingerprint": os.environ.get("OVERPARAM_FINGERPRINT"),
        }
        self._write(record)
        if record["fingerprint"] is None:  # nobody is there to keep the checkpoints until the whole run has ended well
            forget(self.checkpoints)
        _show({"text/markdown": render.markdown(record), "text/plain": render.plain(record)})

    def _reference(self):
        """{check: value} in the record with the profile's own parameters; empty where that has not been run here."""
        figures = Path(os.environ.get("OVERPARAM_REFERENCES") or paths.FIGURES)
        try:
            stored = json.loads((figures / self.profile / self.id / "result.json").read_text(encoding="utf-8"))
            return {row["name"]: row["value"] for row in stored["checks"] if row["applies"]}
        except (OSError, ValueError, LookupError, TypeError):
            return {}

    def _machine(self):
        """The device, and the most memory that was in use on it."""
        import torch

        if self.device.type == "cuda":
            peak, name = torch.cuda.max_memory_allocated(self.device), torch.cuda.get_device_name(self.device)
            return {"peak_bytes": peak, "device": name}
        fast = torch.backends.mkldnn.matmul.fp32_precision == "bf16"
        name = f"CPU, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"peak_bytes": peak, "device": name + (", float32 products by oneDNN" if fast else "")}

    def _write(self, record):
        """Figures, tables and series first, result.json last."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._series:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **dict(sorted(self._series.items())))
            self._files["series.npz"] = buffer.getvalue()
        files = self._files | {"result.json": (json.dumps(record, indent=1) + "\n").encode()}
        write_together({self.folder / name: content for name, content in files.items()})
        for old in self.folder.iterdir():
            if old.suffix in KEPT and old.name not in self._files:
                old.unlink()


def _show(data, metadata=None):
    """Show {MIME type: content} in a notebook; outside of one, print its text."""
    shell = sys.modules.get("IPython")
    if shell is not None and shell.get_ipython() is not None:
        shell.display.display(data, raw=True, metadata=metadata or {})
    else:
        print(data["text/plain"])
