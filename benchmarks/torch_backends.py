"""Modules of KernelBench's kinds through torch.compile: our back end beside Inductor and eager mode, in one process.

Usage: python -m benchmarks.torch_backends [--threads 1,2] [--modules mlp,attention] [--output results.json]

Calls of the three take turns, and the median of each counts, so that other work on the machine meets all alike.
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
from tilewright.torch.backend import reports, tilewright
from torch import nn
from torch.nn import functional

from benchmarks.machine import describe

_SECONDS = 3.0
"""Time to measure each module for, all back ends together."""

_LEAST_ROUNDS = 7
_TOLERANCE = 1e-4
"""Largest accepted error relative to the largest element, in f32: sums of up to 1024 terms in another order."""


class Attention(nn.Module):
    """Causal self-attention with its projections, as in minGPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        """Attends over [batch, length, width]."""
        batch, length, width = x.shape
        split = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = split.unbind(0)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """A Transformer block with norms in front."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        """Transforms [batch, length, width]."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Then(nn.Module):
    """A module and a function of its result."""

    def __init__(self, module: nn.Module, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.module, self.function = module, function

    def forward(self, x: Any) -> Any:
        """Applies both."""
        return self.function(self.module(x))


Case = tuple[nn.Module, tuple[Any, ...]]

MODULES: dict[str, Callable[[], Case]] = {
    "matmul-gelu-softmax": lambda: (
        Then(nn.Linear(512, 512), lambda y: functional.gelu(y).softmax(-1)),
        (torch.randn(128, 512),),
    ),
    "matmul-swish-scale": lambda: (
        Then(nn.Linear(512, 1024), lambda y: y * torch.sigmoid(y) * 2.0),
        (torch.randn(128, 512),),
    ),
    "matmul-max-logsumexp": lambda: (
        Then(nn.Linear(512, 1024), lambda y: functional.mish(y.clamp(-10, 10) * 0.5).logsumexp(-1)),
        (torch.randn(128, 512),),
    ),
    "softmax": lambda: (nn.Softmax(-1), (torch.randn(256, 4096),)),
    "layer-norm": lambda: (nn.LayerNorm(1024), (torch.randn(512, 1024),)),
    "rms-norm": lambda: (nn.RMSNorm(1024), (torch.randn(512, 1024),)),
    "mlp": lambda: (
        nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 64)),
        (torch.randn(64, 256),),
    ),
    "attention": lambda: (Attention(256, 8), (torch.randn(1, 128, 256),)),
    "transformer-block": lambda: (Block(256, 8), (torch.randn(1, 128, 256),)),
    "conv-relu-bias": lambda: (
        Then(nn.Conv2d(3, 16, 3), lambda y: functional.relu(y) + 0.5),
        (torch.randn(4, 3, 64, 64),),
    ),
}


def measure(name: str, threads: int) -> dict[str, Any]:
    """Returns the median seconds of each back end, its largest relative error, and our share of the ops."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    module, arguments = MODULES[name]()
    module.eval()
    runs: dict[str, Callable[..., Any]] = {"eager": module}
    reports.clear()
    for backend in ("inductor", tilewright):
        torch._dynamo.reset()
        runs[getattr(backend, "__name__", str(backend))] = torch.compile(module, backend=backend)
    with torch.no_grad():
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
    while time.perf_counter() < end or len(times["eager"]) < _LEAST_ROUNDS:
        for key, run in runs.items():
            started = time.perf_counter()
            run(*arguments)
            times[key].append(time.perf_counter() - started)
    return times


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
