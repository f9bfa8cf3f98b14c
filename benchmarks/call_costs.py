"""Measures what a call costs besides its kernels: `python -m benchmarks.call_costs`.

The program is a softmax of rows that takes about 10 us. A traced call says how long its kernels take, from the first
beginning to the last end; the rest of a call's time is overhead. Calls with and without a trace take turns, and the
lower quartile counts, because other work on the machine only makes calls longer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
import tilewright

from benchmarks.workloads.builder import GraphBuilder

_ROWS, _COLUMNS = 128, 256
_TURNS, _CALLS = 200, 20


def _model() -> Any:
    g = GraphBuilder("rows")
    g.output(g.op("Softmax", g.input("x", (_ROWS, _COLUMNS)), axis=1), (_ROWS, _COLUMNS))
    return g.build()


def _quartile(samples: list[float]) -> float:
    return statistics.quantiles(samples, n=4)[0]


def _seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    for _ in range(_CALLS):
        call()
    return (time.perf_counter() - started) / _CALLS


def _kernel_seconds(program: tilewright.Program, x: np.ndarray[Any, Any]) -> float:
    spans = [span for span in program.trace(x, calls=1) if not span.name.startswith("call ")]
    return max(span.end for span in spans) - min(span.start for span in spans)


def measure(threads: int) -> dict[str, float]:
    """Returns the seconds of the kernels, and of calls by what they are made with."""
    program = tilewright.compile(_model(), threads=[threads], deploy=False)
    if program.runtime != "direct":
        raise click.ClickException("the program does not run without IREE")
    x = np.random.default_rng(0).standard_normal((_ROWS, _COLUMNS)).astype(np.float32)
    calls: dict[str, Callable[[], Any]] = {"numpy": lambda: program(x), "bound": program.bind(x)}
    try:
        import torch
        from tilewright.runtime.torch_tensors import tensor_caller
    except ImportError:
        pass
    else:
        assert program.signature is not None
        caller, tensor = tensor_caller(program.runner(), program.signature), torch.from_numpy(x)
        calls["torch"] = lambda: caller([tensor])
    samples: dict[str, list[float]] = {name: [] for name in ["kernels", *calls]}
    for _ in range(_TURNS):
        samples["kernels"].append(_kernel_seconds(program, x))
        for name, call in calls.items():
            samples[name].append(_seconds(call))
    return {name: _quartile(each) for name, each in samples.items()}


@click.command(help=__doc__)
@click.option("--threads", multiple=True, type=click.IntRange(1), default=(1, 2), show_default=True)
def main(threads: tuple[int, ...]) -> None:
    for count in threads:
        seconds = measure(count)
        kernels = seconds.pop("kernels")
        costs = ", ".join(f"{name} {1e6 * (each - kernels):.1f} us" for name, each in seconds.items())
        click.echo(f"threads {count}: kernels {1e6 * kernels:.1f} us, and in a call besides: {costs}")


if __name__ == "__main__":
    main()
