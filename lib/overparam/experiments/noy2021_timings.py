"""Wall-clock times of alternatives, measured in turn, so that all see the same state of the machine."""

import time

import numpy as np
import torch


def interleaved(alternatives, device, *, repeats=20, warmup=5):
    """{name: (repeats,) seconds} of callables {name: function()}, each called once per round; rounds of warm-up apart.

    device: on a GPU, times are those between two CUDA events around a call.
    """
    gpu = torch.device(device).type == "cuda"
    clock = _gpu_seconds if gpu else _seconds
    rounds = [[clock(function) for function in alternatives.values()] for _ in range(warmup + repeats)]
    return dict(zip(alternatives, np.array(rounds[warmup:], dtype=float).T, strict=True))


def _seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _gpu_seconds(function):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    function()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000


def relative(times, reference):
    """{name: (median, first quartile, third quartile)} of the quotients, round by round, to the time of `reference`."""
    base = times[reference]
    return {name: tuple(np.quantile(values / base, [0.5, 0.25, 0.75]).tolist()) for name, values in times.items()}
