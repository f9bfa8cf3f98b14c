"""Modules of KernelBench's kinds through torch.compile: our back end beside Inductor and eager mode, in one process.

Usage: python -m benchmarks.torch_backends [--threads 1,2] [--modules mlp,attention] [--output results.json]

Inductor may choose by measurements (max-autotune). Both freeze the weights: PyTorch's own switch says so to both,
because Inductor's option `freezing` comes after Dynamo has made inputs of the weights, and then freezes nothing. Blocks
of calls of the three take turns, and the median of each counts, so that other work on the machine meets all alike.
Between two blocks the threads of the one before go to sleep: they wait in a loop, which would slow down the next.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._inductor.config
from tilewright.torch.backend import reports, tilewright
from torch import nn

from benchmarks.machine import describe
from benchmarks.torch_modules import MODULES

_SECONDS = 3.0
"""Time to measure each module for, all back ends together."""

_LEAST_BLOCKS = 5
_BLOCK_SECONDS = 0.1
_PAUSE_SECONDS = 0.05
"""Time after which the threads of OpenMP sleep: those of PyTorch wait in a loop for some milliseconds."""

_INDUCTOR: dict[str, Any] = {"max_autotune": True}
_TOLERANCE = 1e-4
"""Largest accepted error relative to the largest element, in f32: sums of up to 1024 terms in another order."""


def measure(name: str, threads: int) -> dict[str, Any]:
    """Returns the median seconds of each back end, its largest relative error, and our share of the ops."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    module, arguments = MODULES[name]()
    module.eval()
    runs: dict[str, Callable[..., Any]] = {"eager": module}
    reports.clear()
    torch._dynamo.reset()
    runs["inductor"] = torch.compile(module, backend="inductor", options=_INDUCTOR)
    runs["tilewright"] = torch.compile(module, backend=tilewright)
    with torch.no_grad(), torch._inductor.config.patch(freezing=True):
        errors = {key: _error(run, module, arguments) for key, run in runs.items()}
        times = _take_turns(runs, arguments)
    seconds = {key: statistics.median(taken) for key, taken in times.items()}
    return {
        "module": name,
        "threads": threads,
        "seconds": seconds,
        "errors": errors,
        "left": [note for report in reports for note in report.left],
        "kernels": sum(report.kernels for report in reports),
        "ratio": seconds["tilewright"] / seconds["inductor"],
    }


def _error(run: Callable[..., Any], module: nn.Module, arguments: tuple[Any, ...]) -> float:
    found = run(*arguments).double()
    wanted = copy.deepcopy(module).double()(*[a.double() for a in arguments])
    return float((found - wanted).abs().max() / wanted.abs().max())


def _take_turns(runs: dict[str, Callable[..., Any]], arguments: tuple[Any, ...]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {key: [] for key in runs}
    end = time.perf_counter() + _SECONDS
    blocks = 0
    while time.perf_counter() < end or blocks < _LEAST_BLOCKS:
        for key, run in runs.items():
            time.sleep(_PAUSE_SECONDS)
            times[key] += _block(run, arguments)
        blocks += 1
    return times


def _block(run: Callable[..., Any], arguments: tuple[Any, ...]) -> list[float]:
    """Returns the seconds of consecutive calls but for the first one, which wakes the threads."""
    run(*arguments)
    taken: list[float] = []
    end = time.perf_counter() + _BLOCK_SECONDS
    while not taken or time.perf_counter() < end:
        started = time.perf_counter()
        run(*arguments)
        taken.append(time.perf_counter() - started)
    return taken


def main() -> None:
    """Measures, prints a line for each module, and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1,2", help="numbers of threads, with commas")
    parser.add_argument("--modules", default=",".join(MODULES), help="names of modules, with commas")
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    options = parser.parse_args()
    rows = []
    for threads in map(int, options.threads.split(",")):
        for name in options.modules.split(","):
            row = measure(name, threads)
            rows.append(row)
            times = "  ".join(f"{key} {1e6 * s:9.1f} us" for key, s in row["seconds"].items())
            wrong = "" if row["errors"]["tilewright"] < _TOLERANCE else "  WRONG"
            print(f"{name:22} {threads} threads  {times}  ratio {row['ratio']:.2f}{wrong}", flush=True)
        ratios = [row["ratio"] for row in rows if row["threads"] == threads]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"geometric mean of the ratios to Inductor, {threads} threads: {mean:.2f}", flush=True)
    if options.output:
        result = {"machine": describe(), "torch": torch.__version__, "rows": rows}
        options.output.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
