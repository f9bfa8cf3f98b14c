"""Measures what a call costs besides its kernels, on processors or a GPU: `python -m benchmarks.call_costs`.

The program is a softmax of rows that takes about 10 us. A traced call says how long its kernels take, from the first
beginning to the last end; the rest of a call's time is overhead. Calls with and without a trace take turns, and the
lower quartile counts, because other work on the machine only makes calls longer.

For a GPU that this machine lacks, a driver stands in that does nothing (`null_driver.c`), so that all of a call is what
the host does besides the driver.
"""

from __future__ import annotations

import contextlib
import ctypes
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import tilewright
from tilewright.runtime import cuda
from tilewright.runtime.direct import DirectSession
from tilewright.runtime.gpu_fit import has_gpu
from tilewright.system.workfolder import WorkFolder

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


def measure(target: str, threads: int) -> dict[str, float]:
    """Returns the seconds of the kernels, and of calls by what they are made with."""
    program = tilewright.compile(_model(), target, threads=[threads], deploy=False)
    if program.runtime != "direct":
        raise click.ClickException("the program does not run without IREE")
    x = np.random.default_rng(0).standard_normal((_ROWS, _COLUMNS)).astype(np.float32)
    calls: dict[str, Callable[[], Any]] = {"numpy": lambda: program(x), "bound": program.bind(x)}
    if program.metadata.device == "cuda":
        calls["graph"] = program.bind(x, graph=True)
    with contextlib.suppress(ImportError, AssertionError):  # without PyTorch, or without its GPU
        calls["torch"] = _call_with_tensors(program, x)
    samples: dict[str, list[float]] = {name: [] for name in ["kernels", *calls]}
    for _ in range(_TURNS):
        samples["kernels"].append(_kernel_seconds(program, x))
        for name, call in calls.items():
            samples[name].append(_seconds(call))
    return {name: _quartile(each) for name, each in samples.items()}


def use_null_driver() -> None:
    """Makes a driver that does nothing the one of this process."""
    with WorkFolder("driver") as folder:
        library = folder / "driver.so"
        source = Path(__file__).with_name("null_driver.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        loaded = ctypes.CDLL(str(library))
    cuda.open_driver = lambda: loaded


def _call_with_tensors(program: tilewright.Program, x: np.ndarray[Any, Any]) -> Callable[[], Any]:
    """Returns a call with tensors of PyTorch, which ends when the results are there."""
    import torch
    from tilewright.runtime.torch_tensors import tensor_caller

    tensor = torch.from_numpy(x)
    if program.metadata.device == "cuda":
        on_gpu = tensor.cuda()

        def call() -> None:
            program(on_gpu)
            torch.cuda.synchronize()

        return call
    runner = program.runner()
    assert program.signature is not None and isinstance(runner, DirectSession)
    caller = tensor_caller(runner, program.signature)
    return lambda: caller([tensor])


@click.command(help=__doc__)
@click.option("--target", default="cpu", show_default=True, help="cpu, or that of this machine's GPU.")
@click.option("--threads", multiple=True, type=click.IntRange(1), default=(1, 2), show_default=True)
def main(target: str, threads: tuple[int, ...]) -> None:
    if target != "cpu" and not has_gpu():
        use_null_driver()
        click.echo("there is no GPU, so a driver stands in that does nothing")
    for count in threads if target == "cpu" else (1,):
        seconds = measure(target, count)
        kernels = seconds.pop("kernels")
        costs = ", ".join(f"{name} {1e6 * (each - kernels):.1f} us" for name, each in seconds.items())
        where = f"threads {count}" if target == "cpu" else target
        click.echo(f"{where}: kernels {1e6 * kernels:.1f} us, and in a call besides: {costs}")


if __name__ == "__main__":
    main()
