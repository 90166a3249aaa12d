"""How much memory may be used, and how much of a computation fits into it at once."""

import math
from pathlib import Path

import psutil

from . import settings
from .errors import MemoryExceeded

SHARE = 0.75  # of what is free, where `settings.memory_limit` says nothing
GROUPS = Path("/sys/fs/cgroup")  # control groups of Linux
OWN_GROUPS = Path("/proc/self/cgroup")  # which of them this process belongs to
LIMIT_AND_USE = {
    "unified": ("memory.max", "memory.current"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes"),  # the first version's names
}


def budget(device="cpu"):
    """Bytes: `settings.memory_limit`, or three quarters of what is free on the device."""
    if settings.memory_limit is not None:
        return settings.memory_limit
    return int(SHARE * _free(str(device)))


def _free(device):
    """Bytes that can be had without swapping, within the limits of all control groups."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.mem_get_info(device)[0]
    free = psutil.virtual_memory().available
    return max(0, min([free, *map(_left, _own_groups())]))


def _own_groups():
    """(folder, names of limit and use) of the control groups that hold this process.

    A job's own group, and all groups around it.
    """
    if not OWN_GROUPS.exists():  # another system than Linux
        return []
    groups = []
    for line in OWN_GROUPS.read_text().splitlines():
        _, controllers, place = line.split(":", 2)
        if not controllers:
            top, names = GROUPS, LIMIT_AND_USE["unified"]
        elif "memory" in controllers.split(","):
            top, names = GROUPS / "memory", LIMIT_AND_USE["memory"]
        else:
            continue
        own = top / place.strip("/")
        inside = [own, *own.parents]
        groups += [(folder, names) for folder in inside if folder.is_relative_to(top)]
    return groups


def _left(group):
    """Bytes that a control group may still take; infinite where it has no limit.

    Files that the system keeps in memory only because there is room do not count as used.
    """
    folder, (limit, use) = group
    try:
        text = (folder / limit).read_text().strip()
        used = int((folder / use).read_text())
        told = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except OSError:  # the group is not visible from inside a container
        return math.inf
    if not text.isdigit():  # "max"
        return math.inf
    return int(text) - used + int(told.get("total_inactive_file", told.get("inactive_file", 0)))


def require(needed, what, device="cpu"):
    """Raise MemoryExceeded where `what` needs more than the budget; "meta" tensors need none."""
    if str(device) != "meta" and needed > (allowed := budget(device)):
        use = f"{what} needs {size(needed)}, and {size(allowed)} may be used"
        raise MemoryExceeded(f"{use}: lower the sizes, or set OVERPARAM_MEMORY")


def size(count):
    """Bytes in words: 1.5 GB."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(count, 0) / 1e6:.0f} MB"


def held(holder, but=()):
    """Bytes of the tensors in an object's attributes, less those of the objects `but`.

    Lists and dicts in attributes count.
    """
    shared = {t.untyped_storage().data_ptr() for other in but for t in _tensors(vars(other))}
    storages = {
        t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in _tensors(vars(holder))
    }
    return sum(count for pointer, count in storages.items() if pointer not in shared)


def _tensors(value):
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _tensors(part)


def fitting(count, each, what, device="cpu"):
    """How many of `count` things of `each` bytes may be held at once, at least 1.

    Raises MemoryExceeded if none may.
    """
    require(each, what, device)
    return max(1, min(count, int(budget(device) // max(each, 1))))
