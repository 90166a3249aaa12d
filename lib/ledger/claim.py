"""The page's side of a claim: a notebook hands in what it measured, draws and says.

The verdict is computed.

A notebook opens one `Claim` per claim that it serves, and ends with `report()`, which writes
`figures/<size>/<claim id>/` and shows the verdict.
"""

import base64
import datetime
import inspect
import io
import json
import lzma
import re
import resource
import sys
import time
import weakref
from pathlib import Path

import numpy as np

from overparam import memory, settings
from overparam.errors import ParameterError
from overparam.training import fast_products

from . import files, fingerprints, paths, records, registry, render, rule, sliders
from . import run as runs
from .errors import ClaimError
from .parameters import require, validated
from .values import finite, measured, prepared, significant, tidy

LEGIBLE = 300_000  # bytes up to which a table is kept as text that a diff can read
_NAME = re.compile(r"[\w-]+", re.ASCII)
_shown = weakref.WeakSet()  # figures that serve several claims are shown once
_opened = []  # the claims that this process has opened, in order


class Claim:
    """The record of one claim, from its parameters to `result.json`.

    `Claim("arora2019-fig1-spectrum-projections", globals())` validates the notebook's parameters
    and sets the seeds. Where these are not those of the size, or somebody runs the notebook by
    hand, the record goes to a folder of its own in `figures/custom/`. Trainings save themselves in
    `checkpoints`, which the report removes, and finished ones at desk and paper size in `runs`.
    """

    def __init__(self, claim_id, namespace):
        runs.apply_environment()
        self._run = runs.present()
        self.id, self.spec = claim_id, registry.claim(claim_id)
        self.profile = namespace.get("profile", "smoke")
        reference = registry.parameters_at(claim_id, self.profile)
        if missing := set(reference) - set(namespace):
            raise ParameterError(f"{claim_id}: parameters not set: {', '.join(sorted(missing))}")
        given = {name: namespace[name] for name in reference}
        self.parameters = validated(given, reference, self.spec.page.ranges)
        require(self.parameters, self.spec.page.needs)
        self._changed = registry.changed(self.parameters, reference)
        where = registry.folder(self.profile, self._changed)
        where = records.folder_by_hand(where) if runs.by_hand() else where
        self.folder = Path(self._run.figures) / where / claim_id
        self.checkpoints = paths.LOGS / "checkpoints" / where / claim_id
        self.runs = (
            Path(self._run.finished or self.folder / "runs") if where in records.LONG else None
        )
        saved = [
            self.checkpoints.with_name(claim.id) for claim in registry.served(self.spec.page.id)
        ]
        saved += [self.runs] if self.runs else []
        self._resumed = any(any(place.rglob("*.safetensors")) for place in saved)
        self.device, self.seeds = prepared(self.parameters)
        self._prepare_library()
        within_run = self._run.fingerprint is not None
        self._revision = self._run.revision if within_run else fingerprints.git_revision()
        self._started = time.perf_counter()
        self._checks, self._metrics, self._series, self._files, self._figures = {}, {}, {}, {}, {}
        self._data, self._said, self._unmet, self._conditions = [], [], [], None
        if runs.by_hand():
            place = f"{Path(self._run.figures).name}/{where}/{claim_id}"
            text = f"Run by hand: the record goes to {place}, and no other one is touched."
            _show({"text/plain": text}, {"ledger": {"by_hand": claim_id}})

    def _prepare_library(self):
        """Check that the sources are those of the run, name them to checkpoints, choose the kernels
        of float32 products, and see that memory suffices.
        """
        page, notebook = self.spec.page, self.spec.page.notebook
        # A later claim of the same notebook finds all modules imported.
        first = not _opened
        _opened.append(self.id)
        if first and self._run.sources and self._run.sources != fingerprints.settled(page):
            raise ClaimError(
                f"{self.id}: sources were written to since its run began; run it again"
            )
        settings.checkpoint_code = fingerprints.library(notebook)
        if self.device.type == "cpu":
            fast_products()
        resources = registry.size_of(self.id, self.profile).resources
        without_gpu = self.device.type == "cpu" and resources.get("gpu")
        if not self._changed and not without_gpu:
            what = f"{self.spec.page.id} at {self.profile} size"
            memory.require(resources["memory_mb"] * 2**20, what, self.device)

    def data(self, dataset):
        """Note a loaded data set in the record, and hand it back."""
        row = {key: getattr(dataset, key) for key in ("name", "source", "stand_in", "sha256")}
        if row not in self._data:
            self._data.append(row)
        return dataset

    def metric(self, name, value, paper=None):
        """Record a number, or a sample with one per seed, beside the paper's value.

        It decides nothing.

        Raises ClaimError for anything but numbers, and for the name of a check.
        """
        if any(check.name == name for check in self.spec.checks):
            raise ClaimError(f"{self.id}: {name!r} is the name of a check")
        if self._lacks(value):
            return
        printed = None if paper is None else finite(paper)
        self._metrics[name] = {**_measured(value, "mean"), "paper": printed}

    def keep(self, frame, name="runs"):
        """Store a tidy pandas table with the record, and hand it back as stored.

        Floats have six significant digits.

        It is `<name>.csv`, compressed to `<name>.csv.xz` above 300 kB. A named index becomes
        columns.
        Raises ClaimError for a cell that is neither a number, nor a word, nor a truth value.
        """
        if not _NAME.fullmatch(name) or {f"{name}.csv", f"{name}.csv.xz"} & self._files.keys():
            raise ClaimError(
                f"{self.id}: a table has a name of its own in letters, digits, - and _, not "
                f"{name!r}"
            )
        frame = tidy(frame)
        try:
            text = frame.to_csv(index=False, lineterminator="\n").encode()
        except UnicodeEncodeError as error:
            raise ClaimError(
                f"{self.id}: the table {name!r} holds words that no UTF-8 can hold"
            ) from error
        if len(text) > LEGIBLE:
            self._files[f"{name}.csv.xz"] = lzma.compress(text)
        else:
            self._files[f"{name}.csv"] = text
        return frame

    def series(self, /, **arrays):
        """Record plotted arrays, rounded to six significant digits, for `series.npz`.

        Raises ClaimError for objects.
        """
        for name, array in arrays.items():
            array = np.asarray(array)
            reserved = (
                name in ("file", "allow_pickle") or name.endswith(".npy") or not name.isprintable()
            )
            if (
                reserved or array.dtype.kind not in "biufcU"
            ):  # else numpy would take a pickle, or lose the name
                raise ClaimError(
                    f"{self.id}: the series {name!r} of {array.dtype} cannot be stored"
                )
            self._series[name] = significant(array)

    def figure(self, fig, name):
        """Draw a figure once: the picture that is shown is `<name>.png` of the record.

        It is closed then.
        """
        import matplotlib.pyplot as plt

        if not _NAME.fullmatch(name):
            raise ClaimError(
                f"{self.id}: a figure is named in letters, digits, - and _, not {name!r}"
            )
        content, panels = files.drawn(fig)
        self._files[f"{name}.png"], self._figures[f"{name}.png"] = content, panels
        if fig not in _shown:
            picture = {"image/png": base64.b64encode(content).decode(), "text/plain": repr(fig)}
            size = {"width": round(100 * fig.get_figwidth())}
            _show(picture, {"image/png": size, "overparam": {"figure": f"{name}.png"}})
            _shown.add(fig)
        plt.close(fig)

    def slider(self, draw, values, name, label, start=0):
        """Show the figures draw(value) under a slider over the values, beside a static figure.

        name: what is moved, such as "Step size"; label: value -> the text of that position; start:
        the number of the value that is shown first. All figures have one size. The notebook holds
        the pictures, and the record has none of them.
        Raises ClaimError where there are fewer than two values.
        """
        import matplotlib.pyplot as plt

        values = list(values)
        if len(values) < 2:
            raise ClaimError(f"{self.id}: a slider goes through two values at least")
        frames, labels = [], []
        for value in values:
            fig = draw(value)
            frames.append(sliders.frame(fig))
            labels.append(label(value))
            width = round(100 * fig.get_figwidth())
            plt.close(fig)
        shown = sliders.document(name, frames, labels, start, width)
        told = f"{name}: {'; '.join(labels)}"
        _show({"text/html": shown, "text/plain": told}, {"ledger": {"slider": name}})

    def say(self, text):
        """Show Markdown on the page, and add its paragraphs to what the record says."""
        text = inspect.cleandoc(text).strip()
        if not text:
            raise ClaimError(f"{self.id}: there is nothing to say")
        self._said += re.split(r"\n\s*\n", text)
        _show({"text/markdown": text, "text/plain": text})

    def require(self, condition, reason):
        """Where a condition is not met, the claim is not tested at this size, for this reason.

        A sentence's middle.
        """
        if not condition:
            self._unmet.append(reason)

    def conditions(self, factor, text):
        """State by which factor a theorem's worst condition is missed (met up to 1).

        Text: which, with constants 1.
        """
        self._conditions = {"factor": finite(factor), "text": text}

    def verify(self, name, value, holds):
        """Raise ClaimError where our own number, or a sample's mean, does not satisfy `holds`, such
        as "<= 1e-9".
        """
        satisfied, _ = rule.requirement(holds)
        found = _measured(value, "mean")["value"]
        if found is None or not satisfied(found):
            raise ClaimError(
                f"{self.id}: our own computation is wrong: {name} is {found}, and {holds} was "
                "required"
            )

    def check(self, name, value):
        """Measure a registered check: `value` is a number, or a sample with one number per seed.

        Of a sample the registered statistic is judged with its 95 % interval (`values.measured`):
        the check holds where the whole interval satisfies it, fails where no point of it does, and
        is undecided otherwise. One that is registered for other sizes is left out, and so is an
        empty sample where parameters were changed. Raises ClaimError for one that is not
        registered, or given twice.
        """
        check = next((check for check in self.spec.checks if check.name == name), None)
        if check is None:
            raise ClaimError(f"{self.id}: check {name!r} is not registered")
        if name in self._checks:
            raise ClaimError(f"{self.id}: check {name!r} is given twice")
        if self._lacks(value):
            return
        row = {
            "name": name,
            "holds": check.holds,
            "statistic": check.statistic,
            "paper": check.paper,
        }
        row |= _measured(value, check.statistic)
        row["outcome"] = check.outcome(row["value"], row["interval"])
        self._checks[name] = row

    def _lacks(self, value):
        """Whether no run has given this sample, since the reader has changed parameters."""
        return bool(self._changed) and np.ndim(value) == 1 and len(value) == 0

    def report(self):
        """Compute the verdict, write the record atomically, and show it.

        Raises ClaimError where a check is missing.
        """
        asked = [check.name for check in self.spec.asked(self.profile)]
        missing = [name for name in asked if name not in self._checks]
        if missing and self._changed:
            words = " and ".join(name.replace("-", " ") for name in missing)
            self.require(False, f"no run with these parameters measures {words}")
        if missing and not self._unmet:
            raise ClaimError(f"{self.id}: checks not measured: {', '.join(missing)}")
        rows = [self._checks[name] for name in asked if name in self._checks]
        compared = {}
        if self._changed:
            place = Path(self._run.references)
            values, source = records.reference(self.id, self.profile, place)
            rows = [row | {"reference": values.get(row["name"])} for row in rows]
            compared = {"changed": self._changed, "reference": source}
        outcomes = [] if self._unmet else [row["outcome"] for row in rows]
        record = {
            "claim": self.id,
            "kind": self.spec.kind,
            "notebook": self.spec.page.id,
            "profile": "custom" if self._changed else self.profile,
            "parameters": self.parameters,
            **compared,
            "verdict": rule.verdict(self.spec.kind, outcomes),
            "unmet": self._unmet,
            "conditions": self._conditions,
            "checks": rows,
            "said": self._said,
            "metrics": self._metrics,
            "series": sorted(self._series),
            "tables": sorted(name for name in self._files if ".csv" in name),
            "figures": self._figures,
            "seeds": self.seeds,
            "data": self._data,
            "date": str(datetime.date.today()),
            "seconds": max(0.001, round(time.perf_counter() - self._started, 3)),
            "resumed": self._resumed,
            **self._machine(),
            "versions": fingerprints.versions(),
            "git": self._revision,
            "fingerprint": self._run.fingerprint,
        }
        self._write(record)
        if (
            self._run.fingerprint is None
        ):  # nobody is there to keep the checkpoints until the whole run has ended well
            files.forget(self.checkpoints)
        shown = {
            "text/markdown": render.markdown(self.spec, record),
            "text/plain": render.plain(self.spec, record),
        }
        _show(shown, {"ledger": {"report": self.id}})

    def _machine(self):
        """The device, and the most memory that was in use on it."""
        import torch

        if self.device.type == "cuda":
            peak = torch.cuda.max_memory_allocated(self.device)
            name = torch.cuda.get_device_name(self.device)
            return {"peak_bytes": peak, "device": name}
        fast = torch.backends.mkldnn.matmul.fp32_precision == "bf16"
        name = f"CPU, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"
        unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return {
            "peak_bytes": peak,
            "device": name + (", float32 products by oneDNN" if fast else ""),
        }

    def _write(self, record):
        """Figures, tables and series first, result.json last."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._series:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **dict(sorted(self._series.items())))
            self._files["series.npz"] = buffer.getvalue()
        contents = {self.folder / name: content for name, content in self._files.items()}
        contents[self.folder / "result.json"] = (json.dumps(record, indent=1) + "\n").encode()
        files.write_together(contents)
        files.remove_others(self.folder, self._files)


def _measured(value, statistic):
    """{value, interval, n} of a number, or of a sample's statistic, as JSON has them."""
    value, low, high, n = measured(value, statistic)
    interval = None if n is None else [finite(low), finite(high)]
    return {"value": finite(value), "interval": interval, "n": n}


def _show(data, metadata=None):
    """Show {MIME type: content} in a notebook; outside of one, print its text."""
    shell = sys.modules.get("IPython")
    if shell is not None and shell.get_ipython() is not None:
        shell.display.display(data, raw=True, metadata=metadata or {})
    else:
        print(data["text/plain"])
