"""Where a data set's files are: the project's cache, the mirror, the original host. No file is read unchecked."""

import contextlib
import difflib
import errno
import functools
import hashlib
import importlib.util
import itertools
import os
import sys
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from overparam import paths
from overparam.errors import DataCorrupt, DataUnavailable, ParameterError

LARGEST = 1 << 30  # bytes of a download whose size is not registered


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

    def path(self, file):
        return next(path for path, _, _ in self.stamps if path.name == file)


def find(name):
    """The data set's files where they lie now, as Found, or None. Looks at presence alone, reads nothing."""
    info = entry(name)
    for source, folder in _places(name, info):
        for files in (info["files"], info.get("mirror", {})):
            if files and all((folder / file).is_file() for file in files):
                return _found(name, files, folder, source)
    return None


def obtain(name):
    """The data set's files as Found: cache, then mirror, then download. Raises DataUnavailable."""
    found = find(name)
    if found is None:
        hosts = _download_missing(name)
        return _found(name, entry(name)["files"], paths.CACHE / name, ", ".join(dict.fromkeys(hosts)))
    return found


def fetch(name):
    """Downloads what the cache lacks of a data set; returns the paths of its files there.

    An embedded or synthetic data set needs nothing: the list is empty. Raises DataUnavailable, and DataCorrupt
    if a file that is already in the cache is damaged.
    """
    info = entry(name)
    if "urls" not in info:
        return []
    _download_missing(name)
    found = _found(name, info["files"], paths.CACHE / name, "cache")
    check(found)
    return [path for path, _, _ in found.stamps]


def check(found):
    """sha256 of every file. Raises DataCorrupt; a damaged file of the cache is set aside, others stay untouched."""
    digests = {}
    for file, info in found.files.items():
        path = found.path(file)
        digests[file] = _sha256(path)
        if not _intact(found.name, path, info, digests[file]):
            _refuse(found, path)
    return digests


def _refuse(found, path):
    what = f"{found.name}: {path} does not have the registered sha256"
    if paths.CACHE not in path.parents:
        raise DataCorrupt(f"{what}; it is not in the cache and stays as it is")
    names = (path.with_name(f"{path.name}.corrupt{k or ''}") for k in itertools.count())
    aside = next(name for name in names if not name.exists())
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        path.rename(aside)
    raise DataCorrupt(f"{what}; it was set aside as {aside.name}, and the next run fetches it anew")


def _places(name, info):
    if info["kind"] == "synthetic":
        return []
    if "embedded" in info:
        return [("embedded", _embedded_folder(info["embedded"]))]
    mirror = paths.mirror()
    return [("cache", paths.CACHE / name)] + ([("mirror", mirror / name)] if mirror else [])


def _embedded_folder(place):
    if not place:
        return paths.DATA
    # find_spec locates the package without the second that importing scikit-learn takes
    package, *inside = place.split("/")
    return Path(importlib.util.find_spec(package).submodule_search_locations[0], *inside)


def _found(name, files, folder, source):
    stats = [(folder / file, (folder / file).stat()) for file in files]
    return Found(name, files, tuple((path, s.st_size, s.st_mtime_ns) for path, s in stats), source)


def _sha256(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _intact(name, path, info, digest):
    if "member" in info:
        return _member_sha256(path, info["member"]) == entry(name)["content"][info["member"]]
    return digest == info.get("sha256", digest)


def _member_sha256(path, member):
    """Of an archive's member, read piece by piece, as nothing is known of its size; None where it is not readable."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except Exception:  # zipfile raises what it likes: for encrypted members, unknown compressions, lying headers
        return None


def _download_missing(name):
    info = entry(name)
    if "urls" not in info:
        ((_, folder),) = _places(name, info)
        raise DataUnavailable(f"{name} is not in {folder}: reinstall what that folder belongs to")
    folder = paths.CACHE / name
    return [_download(name, file, folder) for file in info["files"] if not (folder / file).is_file()]


def _download(name, file, folder):
    """Tries the URLs in turn, renames into place what has the right digest, returns the host that gave it."""
    reasons = []
    for url in entry(name)["urls"]:
        url, host = url.format(file=file), urlsplit(url).hostname
        # requests' exceptions are OSErrors, as are a full disk and a folder without permission to write; pooch raises
        # a ValueError where a host's Content-Length is no number
        try:
            if _download_from(url, name, folder / file):
                return host
            reasons.append(f"{host}: other content than registered")
        except (OSError, ValueError) as error:
            reasons.append(f"{host}: {_short(error)}")
    raise DataUnavailable(_unavailable(name, file, reasons))


def _download_from(url, name, path):
    """True if `path` now holds the registered content. A download that is cut or wrong never bears that name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    part, info = Path(part), entry(name)["files"][path.name]
    try:
        _http(url, part, path.name, info.get("size"))
        if not _intact(name, part, info, _sha256(part)):
            return False
        part.chmod(0o644)
        part.replace(path)
        return True
    finally:
        part.unlink(missing_ok=True)


def _http(url, path, title, size):
    import pooch
    from tqdm import tqdm

    # pooch asks whether the bar is true, which tqdm answers only where it has a total
    with tqdm(desc=title, total=size or 1, unit="B", unit_scale=True, file=sys.stderr) as bar, path.open("wb") as file:
        # identity: a host that compresses on the way would have requests hand over other bytes than the file's
        get = pooch.HTTPDownloader(bar, chunk_size=1 << 16, timeout=(10, 60), headers={"Accept-Encoding": "identity"})
        get(url, _Limited(file, size or LARGEST), None)


class _Limited:
    """A file to write to that takes no more than a number of bytes: a host may send for ever."""

    def __init__(self, file, size):
        self.flush, self._write, self._left = file.flush, file.write, size

    def write(self, chunk):
        self._left -= len(chunk)
        if self._left < 0:
            raise OSError(errno.EFBIG, "more bytes than the file has")
        self._write(chunk)


def _short(error):
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code}"
    return getattr(error, "strerror", None) or type(error).__name__


def _unavailable(name, file, reasons):
    info, mirror = entry(name), paths.mirror()
    looked = f"{mirror / name} (OVERPARAM_DATA)" if mirror else "a mirror (OVERPARAM_DATA is not set)"
    instead = info.get("embedded_alternative")
    instead = f" A small embedded set, to be asked for by its own name: {instead!r}." if instead else ""
    return (
        f"{name} is neither in {paths.CACHE / name} nor in {looked}, and {file} could not be downloaded"
        f" ({'; '.join(reasons)}).\nTo provide it: `overparam data fetch {name}` with a network; or put"
        f" {', '.join(info['files'])} into that cache folder by hand; or set OVERPARAM_DATA to a folder"
        f" with {name}/.{instead}"
    )
