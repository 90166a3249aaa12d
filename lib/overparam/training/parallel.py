"""Runs beside each other: in threads, as many as memory allows."""

from concurrent.futures import ThreadPoolExecutor

import torch

from .. import memory
from .checkpoints import deferred_interrupts


def in_threads(work, runs, device, each=0):
    """[work(0), .., work(runs - 1)], in as many threads as torch has been given, one thread each.

    each: bytes that a run holds: no more runs go at a time than fit into memory.
    Raises MemoryExceeded where not even one does.
    """
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    together = min(runs, memory.fitting(threads, each, "a run", device))
    if threads == 1 or runs == 1:
        return [work(run) for run in range(runs)]

    def alone(run):
        torch.set_num_threads(1)
        return work(run)

    try:
        with deferred_interrupts(), ThreadPoolExecutor(together) as pool:
            return list(pool.map(alone, range(runs)))
    finally:
        torch.set_num_threads(threads)


def bytes_of_a_run(net, x):
    """What one run of `net` holds at inputs x beside the net; 0 where that is little or unknown."""
    if x.shape[-2] * net.m < 100_000 or x.device.type == "meta":
        return 0
    return memory.held(net.descent(x, 0), but=[net])


def all_at_once(net, x, each):
    """Whether all runs should go as batched products, for their size and `each` bytes of a run.

    A CPU's cache is filled by one small net, a GPU by one wide one.
    """
    n = x.shape[-2]
    cuda = x.device.type == "cuda"
    small = n * net.m <= 2_000_000 if cuda else n <= 100 and net.m <= 64
    return small and net.runs * each <= memory.budget(x.device)
