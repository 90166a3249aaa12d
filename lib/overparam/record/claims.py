"""The claim record: validated parameters, registered checks, the computed verdict, figures and provenance.

A notebook opens one `Claim` per claim id that it serves, hands it what it measured, and ends with `report()`, which
prints the verdict table and writes `figures/<profile>/<claim-id>/`.
"""

import contextlib
import difflib
import io
import json
import math
import os
import re
import resource
import sys
import time
import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from itertools import chain

import numpy as np

from .. import memory, paths
from ..errors import ClaimError, ParameterError
from . import provenance
from .parameters import notebook_parameters, validated

PROFILES = ("smoke", "laptop", "paper")
MEMORY_MB = {"smoke": 1500, "laptop": 4000, "paper": 4000}  # what a notebook may take where its table says nothing
TAGS = {"R": "decides", "N": "must not fail", "I": "informs", "A": "tests our own computation", "C": "contradicts"}
VERDICTS = ("reproduced", "partly", "not reproduced", "contradicted", "not testable at this scale")
ROUNDING = 1e-12
_ID = re.compile(r"[a-z]+(\d{4})?-[A-Za-z0-9-]+", re.ASCII)  # part of paths and of command lines
_COORDINATES, _LONG = re.compile(rb' (?:d|x|y)="[^"]*"'), re.compile(rb"-?\d+\.\d{2,}")
_RELATIONS = {
    "<": lambda v, t: v < t,
    "<=": lambda v, t: v <= t,
    ">": lambda v, t: v > t,
    ">=": lambda v, t: v >= t,
    "==": lambda v, t: v == t,
    "in": lambda v, t: t[0] <= v <= t[1],
}


@dataclass(frozen=True)
class Check:
    """One registered check. A check of the claim is superseded, never edited, once it has been run."""

    name: str
    tag: str
    wording: str
    relation: str
    threshold: float | list
    profiles: tuple = PROFILES
    paper_value: float | None = None
    source: str = ""
    superseded_by: str = ""
    reason: str = ""

    def holds(self, value):
        """Whether a measured value satisfies the check; NaN never does."""
        return bool(math.isfinite(value) and _RELATIONS[self.relation](value, self.threshold))


@dataclass(frozen=True)
class Spec:
    """What `notebooks/checks/<paper>.toml` registers of one claim.

    notebook: the claim whose run serves this one, by default its own; template: the stem of the notebook that is run,
    by default the same, or one that several runs share, each with its own parameters in `profiles.toml`.
    """

    id: str
    title: str
    source: str
    kind: str
    checks: tuple
    notebook: str
    template: str
    partly_if: tuple = ()

    @property
    def paper(self):
        return self.id.partition("-")[0]

    @property
    def path(self):
        return paths.NOTEBOOKS / f"{self.template}.ipynb"


@cache
def registry():
    """{claim id: Spec} of all registered claims. Raises ClaimError where a table is malformed."""
    specs = {}
    for file in sorted(paths.CHECKS.glob("*.toml")):
        tables = _read_toml(file)
        for name, table in tables.items():
            try:
                table = {"notebook": name, **table}
                table["template"] = tables[table["notebook"]].get("template", table["notebook"])
                table["checks"] = tuple(_check(row) for row in table["checks"])
                made = Spec(id=name, **table)
                if name in specs or not (_ID.fullmatch(name) and _ID.fullmatch(made.template)):
                    raise ValueError("an id is a paper and words, like arora2019-fig1-spectrum, and given once")
                texts = made.title, made.source, made.kind, *chain(*made.partly_if)
                if not all(isinstance(text, str) for text in texts):
                    raise ValueError("title, source, kind and the names in partly_if are texts")
                specs[name] = made
            except (TypeError, KeyError, ValueError, AttributeError) as error:
                missing = "there is no " if isinstance(error, KeyError) else ""
                raise ClaimError(f"{file.name}, [{name}]: {missing}{error}") from error
    return specs


def _check(row):
    check = Check(**{**row, "profiles": tuple(row.get("profiles", PROFILES))})
    if check.tag not in TAGS or check.relation not in _RELATIONS or not set(check.profiles) <= set(PROFILES):
        raise ValueError(f"check {check.name!r}: unknown tag, relation or profile")
    bounds = check.threshold if check.relation == "in" else [check.threshold]
    if not all(map(_is_number, bounds)) or len(bounds) != 1 + (check.relation == "in"):
        raise ValueError(f"check {check.name!r}: {check.threshold!r} is no threshold of {check.relation!r}")
    texts = check.name, check.wording, check.source, check.superseded_by, check.reason
    printed = check.paper_value is None or _is_number(check.paper_value)
    if not printed or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"check {check.name!r}: a text is none, or the paper's value is no number")
    return check


def _is_number(value):
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # neither NaN nor too long an integer


def _read_toml(file):
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # the first also for bytes that are no UTF-8, and for long integers
        raise ClaimError(f"{file} is not valid TOML: {error}") from error


def _profile_tables():
    """{notebook: {"ranges" or profile: table}} of `profiles.toml`. Raises ClaimError for a table that nobody reads."""
    tables = _read_toml(paths.PROFILES)
    known = registry().keys() | {spec.template for spec in registry().values()}
    for name, table in tables.items():
        inner = table if isinstance(table, dict) else {}
        wrong = [key for key in inner if key not in (*PROFILES, "ranges") or not isinstance(inner[key], dict)]
        if name not in known or inner is not table or wrong:
            where = ".".join([name, *wrong[:1]])
            raise ClaimError(f"{paths.PROFILES}: [{where}] is no table of a registered claim and one of its profiles")
    return tables


def spec(claim_id):
    """The registered Spec of a claim id. Raises ClaimError, naming the nearest ids, where there is none."""
    if claim_id not in registry():
        near = difflib.get_close_matches(claim_id, registry(), n=2, cutoff=0.3)
        raise ClaimError(f"unknown claim {claim_id!r}; did you mean {' or '.join(near) or 'one of `overparam list`'}?")
    return registry()[claim_id]


def profile_parameters(claim_id, profile):
    """(values, ranges, resources) of a claim at a profile: the notebook's literals with the profile's overrides.

    ranges: {name: [low, high] or list of choices}; resources: what `profiles.toml` says of memory and minutes.
    Raises ParameterError for an unknown profile, or one that the table does not define for this claim.
    """
    claim = spec(claim_id)
    tables = _profile_tables()
    table = tables.get(claim.notebook, {})
    if profile not in PROFILES:
        raise ParameterError(f"unknown profile {profile!r}; there are {', '.join(PROFILES)}")
    if profile != "smoke" and profile not in table:
        raise ParameterError(f"{claim.notebook} has no profile {profile!r} in {paths.PROFILES.name}")
    overrides = dict(table.get(profile, {}))
    resources = overrides.pop("resources", {})
    defaults = notebook_parameters(claim.path)
    ranges = tables.get(claim.template, {}).get("ranges", {})
    wrong = [name for name, allowed in ranges.items() if not _is_range(allowed)]
    if wrong:
        raise ClaimError(f"{paths.PROFILES.name}: the range of {wrong[0]} is neither [low, high] nor a list of words")
    numbers = isinstance(resources, dict) and [resources.get(name, 0) for name in ("gpu", "memory_mb", "minutes")]
    if not numbers or not all(map(_is_number, numbers)):
        where = f"[{claim.notebook}.{profile}.resources]"
        raise ClaimError(f"{paths.PROFILES.name}: {where} is no table in which gpu, memory_mb and minutes are numbers")
    values = {**defaults, **validated(overrides, defaults, ranges), "profile": profile}
    return values, ranges, {"memory_mb": MEMORY_MB[profile], **resources}


def _is_range(allowed):
    if not isinstance(allowed, list) or not allowed:
        return False
    numbers = len(allowed) == 2 and all(map(_is_number, allowed))
    return numbers or all(isinstance(word, str) for word in allowed)


def is_as_stored(claim_id):
    """Whether a claim's smoke parameters are the literals of its notebook, whose stored outputs are then its own."""
    return profile_parameters(claim_id, "smoke")[0] == notebook_parameters(spec(claim_id).path)


def verdict(results, partly_if=()):
    """One of VERDICTS from rows of {name, tag, holds, applies}.

    `contradicted` if a [C] check holds; `not testable at this scale` if no [R] check applies; `reproduced` iff all
    [R] and [N] hold; `partly` iff all [N] and at least half of [R] hold (or, where the claim says so, all checks of
    one of the groups `partly_if`).
    """
    rows = [row for row in results if row["applies"]]
    held = {row["name"] for row in rows if row["holds"]}
    decide = {tag: [row["name"] in held for row in rows if row["tag"] == tag] for tag in "RNC"}
    if any(decide["C"]):
        return "contradicted"
    if not decide["R"]:
        return "not testable at this scale"
    if all(decide["R"] + decide["N"]):
        return "reproduced"
    partly = (
        any(held.issuperset(group) for group in partly_if) if partly_if else sum(decide["R"]) * 2 >= len(decide["R"])
    )
    return "partly" if partly and all(decide["N"]) else "not reproduced"


class Claim:
    """The record of one claim, from its parameters to `result.json`.

    `Claim("arora2019-fig1-spectrum-projections", globals())` takes the values of the notebook's parameters from its
    namespace, validates them, resolves the device and sets the seeds. Where they are not those of the profile, the
    record goes to `figures/custom/`, so that a changed rerun never overwrites a reference. Long trainings save
    themselves in the folder `checkpoints`, which the report removes. Raises ClaimError and ParameterError.
    """

    def __init__(self, claim_id, namespace):
        self.spec = spec(claim_id)
        self.id = claim_id
        profile = namespace.get("profile", "smoke")
        reference, ranges, resources = profile_parameters(claim_id, profile)
        missing = set(reference) - set(namespace)
        if missing:
            raise ParameterError(f"{claim_id}: parameters not set: {', '.join(sorted(missing))}")
        self.parameters = validated({name: namespace[name] for name in reference}, reference, ranges)
        self.profile = profile
        same = all(self.parameters[k] == reference[k] for k in reference if k != "device")
        self.folder = paths.FIGURES / (profile if same else "custom") / claim_id
        self.checkpoints = paths.LOGS / "checkpoints" / self.folder.parent.name / claim_id
        self.seeds = list(range(self.parameters["seed"], self.parameters["seed"] + self.parameters.get("n_seeds", 1)))
        self._configure_torch()
        if same:
            memory.require(resources["memory_mb"] * 2**20, f"{self.spec.notebook} at {profile} size", self.device)
        self._started = time.perf_counter()
        self._results, self._metrics, self._series, self._figures, self._data = {}, {}, {}, {}, []

    def _configure_torch(self):
        import torch

        self.device = torch.device(self.parameters.get("device", "cpu"))
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise ParameterError("no CUDA device here; run this profile on a GPU machine, or pass -p device=cpu")
        torch.manual_seed(self.parameters["seed"])

    def data(self, dataset):
        """Note a loaded data set in the record, and hand it back."""
        row = {key: getattr(dataset, key) for key in ("name", "source", "stand_in", "sha256")}
        self._data += [row] if row not in self._data else []
        return dataset

    def metric(self, name, value, paper=None):
        """Record one number, beside the paper's where it prints one. Raises ClaimError for anything else."""
        self._metrics[name] = {"value": _plain(value), "paper": None if paper is None else _plain(paper)}

    def series(self, /, **arrays):
        """Record plotted arrays, rounded to six significant digits, for `series.npz`.

        Raises ClaimError for arrays of anything but numbers, truth values and words, and for names that cannot be kept.
        """
        arrays = {name: np.asarray(array) for name, array in arrays.items()}
        if wrong := [name for name, array in arrays.items() if not _is_storable(name, array)]:
            raise ClaimError(f"{self.id}: the series {wrong[0]!r} of {arrays[wrong[0]].dtype} cannot be stored")
        self._series.update({name: _significant(array) for name, array in arrays.items()})

    def figure(self, fig, name):
        """Render a figure as `<name>.svg` and `<name>.png` (150 dpi, 256 colours), for the report to write."""
        if not re.fullmatch(r"[\w-]+", name, re.ASCII):
            raise ClaimError(f"{self.id}: a figure is named in letters, digits, - and _, not {name!r}")
        vector, pixels = io.BytesIO(), io.BytesIO()
        fig.savefig(vector, format="svg", dpi=150, metadata={"Date": None})
        fig.set_layout_engine("none")  # made by now, and a third of the time of drawing
        fig.savefig(pixels, format="png", dpi=150)
        self._figures[f"{name}.svg"] = _compact_svg(vector.getvalue())
        self._figures[f"{name}.png"] = compact_png(pixels.getvalue())

    def check(self, name, value):
        """Measure a registered check. Raises ClaimError for one that is unregistered or given twice."""
        check = next((c for c in self.spec.checks if c.name == name), None)
        if check is None or name in self._results:
            raise ClaimError(f"{self.id}: check {name!r} is {'given twice' if check else 'not registered'}")
        value = _number(value)
        applies = self.profile in check.profiles and not check.superseded_by
        row = asdict(check) | {"value": _plain(value), "holds": check.holds(value), "applies": applies}
        self._results[name] = row
        if applies and check.tag == "A" and not row["holds"]:
            raise ClaimError(
                f"{self.id}: our own computation is wrong: {check.wording}: {value:.3g} {_required(check)}"
            )

    def report(self):
        """Compute the verdict, write the record atomically, and print the verdict table.

        Raises ClaimError where a check that applies at this profile was not measured.
        """
        missing = [c.name for c in self.spec.checks if self.profile in c.profiles and c.name not in self._results]
        if missing:
            raise ClaimError(f"{self.id}: checks not measured: {', '.join(missing)}")
        rows = list(self._results.values())
        record = {
            "claim": self.id,
            "title": self.spec.title,
            "paper": self.spec.paper,
            "source": self.spec.source,
            "kind": self.spec.kind,
            "notebook": self.spec.notebook,
            "profile": self.folder.parent.name,
            "parameters": self.parameters,
            "verdict": verdict(rows, self.spec.partly_if),
            "checks": rows,
            "metrics": self._metrics,
            "series": sorted(self._series),
            "figures": sorted(name for name in self._figures if name.endswith("png")),
            "seeds": self.seeds,
            "data": self._data,
            "seconds": max(0.001, round(time.perf_counter() - self._started, 3)),
            "peak_bytes": self._peak_bytes(),
            "device": self._device_name(),
            "versions": provenance.versions(),
            "git": provenance.git_revision(),
            "fingerprint": os.environ.get("OVERPARAM_FINGERPRINT"),
        }
        self._write(record)
        if record["fingerprint"] is None:  # nobody is there to keep the checkpoints until the whole run has ended well
            forget(self.checkpoints)
        print(verdict_table(record))

    def _peak_bytes(self):
        import torch

        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def _device_name(self):
        import torch

        if self.device.type == "cuda":
            return torch.cuda.get_device_name(self.device)
        products = ", float32 products by oneDNN" if torch.backends.mkldnn.matmul.fp32_precision == "bf16" else ""
        return f"CPU, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}{products}"

    def _write(self, record):
        """Figures and series first, result.json last."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._series:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **self._series)
            self._figures["series.npz"] = buffer.getvalue()
        files = self._figures | {"result.json": (json.dumps(record, indent=1) + "\n").encode()}
        write_together({self.folder / name: content for name, content in files.items()})
        for old in self.folder.iterdir():
            if old.suffix in (".png", ".svg", ".npz") and old.name not in self._figures:
                old.unlink()


def compact_png(content):
    """The same picture in 256 colours."""
    from PIL import Image

    small = io.BytesIO()
    picture = Image.open(io.BytesIO(content)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(small, "PNG", optimize=True)
    return small.getvalue()


def _compact_svg(content):
    """The same drawing with coordinates to a tenth of a point, and no space between its elements."""
    rounded = _COORDINATES.sub(lambda found: _LONG.sub(lambda x: b"%.1f" % float(x[0]), found[0]), content)
    return re.sub(rb">\s+<", b">\n<", rounded)


def verdict_table(record):
    """The verdict and the checks of a record as text; numbers rounded to what is stable."""
    lines = [f"{record['claim']}  [{record['profile']}]  {record['verdict'].upper()}"]
    if record["profile"] == "smoke":
        lines.append("(smoke size: shows that the computation runs, decides nothing about the paper)")
    data = {d["name"]: d["stand_in"] for d in record["data"]}
    lines += [f"data: {name}" + (f" ({stand_in})" if stand_in else "") for name, stand_in in data.items()]
    width = max((len(row["name"]) for row in record["checks"]), default=0)
    for row in record["checks"]:
        value = "nan" if row["value"] is None else f"{row['value']:.3g}"
        if row["tag"] == "A" or 0 < abs(row["value"] or 0) < ROUNDING:  # what rounding leaves differs between machines
            value = "" if row["tag"] == "A" else "rounding"
        lines.append(f"[{row['tag']}] {row['name']:<{width}}  {value:>9}  {_required(row):<16} {outcome(row)}")
    return "\n".join(lines)


def outcome(check):
    """What became of a recorded check, in words. One that could not be measured counts as one that fails."""
    if check["superseded_by"]:
        return f"superseded by {check['superseded_by']}: {check['reason']}"
    if not check["applies"]:
        return "does not apply"
    return "holds" if check["holds"] else "not measured" if check["value"] is None else "fails"


def _required(check):
    relation, threshold = (
        (check[k] for k in ("relation", "threshold")) if isinstance(check, dict) else (check.relation, check.threshold)
    )
    return f"{relation} [{threshold[0]:g}, {threshold[1]:g}]" if relation == "in" else f"{relation} {threshold:g}"


def write_atomically(path, content):
    """Write bytes under a temporary name beside `path`, then rename: a kill or a full disk leaves the old file."""
    write_together({path: content})


def write_together(contents):
    """Write {path: bytes}: all under temporary names, then rename them in order: a full disk leaves all old files."""
    temporary = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in contents}
    try:
        for path, content in contents.items():
            with open(temporary[path], "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path in contents:
            os.replace(temporary[path], path)
    finally:
        for left in temporary.values():
            left.unlink(missing_ok=True)


def forget(checkpoints):
    """Remove the checkpoints of a finished run from their folder; refused ones stay for whoever wants to see them."""
    for file in checkpoints.rglob("*.safetensors"):
        file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # absent, or not empty
        checkpoints.rmdir()


def _number(value):
    """A number as a float, one beyond all floats as an infinity. Raises ClaimError for anything else."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError, RuntimeError) as error:
        raise ClaimError(f"a record takes one number, not {value!r}") from error


def _plain(value):
    value = _number(value)
    return value if math.isfinite(value) else None


def _is_storable(name, array):
    """Whether an array needs no pickle, and its name is one that numpy's archives give back."""
    reserved = name in ("file", "allow_pickle") or name.endswith(".npy")
    return array.dtype.kind in "biufcU" and name.isprintable() and not reserved


def _significant(array, digits=6):
    if array.dtype.kind != "f":
        return array
    array = array.astype(np.promote_types(array.dtype, np.float32))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(array))))
    ok = np.isfinite(scale) & np.isfinite(array) & (array != 0)
    rounded = np.where(ok, np.round(array * np.where(ok, scale, 1)) / np.where(ok, scale, 1), array)
    with np.errstate(over="ignore", under="ignore"):
        small = rounded.astype(np.float32)  # holds six digits, unless the number itself is too large or too small
    tiny = (rounded != 0) & (np.abs(small) < np.finfo(np.float32).tiny)
    return small if np.array_equal(np.isfinite(small), np.isfinite(rounded)) and not tiny.any() else rounded
