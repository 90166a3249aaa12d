"""How much memory may be used, and how much of a computation fits into it at once."""

from pathlib import Path

import psutil

from . import settings
from .errors import MemoryExceeded

SHARE = 0.75  # of what is free, where `settings.memory_limit` says nothing


def budget(device="cpu"):
    """Bytes: `settings.memory_limit`, or three quarters of what is free on the device."""
    if settings.memory_limit is not None:
        return settings.memory_limit
    return int(SHARE * _free(str(device)))


def _free(device):
    """Bytes that can be had without swapping, within the limit of a control group."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.mem_get_info(device)[0]
    free = psutil.virtual_memory().available
    limit, used = (Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current"))
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        free = min(free, int(text) - int(used.read_text()))
    return max(free, 0)


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
