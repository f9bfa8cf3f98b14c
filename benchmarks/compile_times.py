"""Measures how long compilations take: `python -m benchmarks.compile_times`.

- A graph of one kernel in a process that has compiled before, for the runtime without IREE (`deploy=False`).
- BERT-base, Swin-T and ResNet-50 for this processor and for a GPU, each in a process of its own.
- BERT-base for a GPU in a process of its own, from the cache.
- Small BERTs of 2 and of 24 equal layers, in all and in our passes (`--only layers`).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import click
import onnx
import tilewright
from tilewright.system.workfolder import WorkFolder
from tilewright.worker.process import keep_compilers

from benchmarks.workloads import WORKLOADS, stitch
from benchmarks.workloads.transformers import BertOptions, bert

_MODELS, _TARGETS = ("bert", "swin-t", "resnet-50"), ("cpu", "cuda:h200")
_TIMES = 5
_ONE = """import sys, time
started = time.perf_counter()
import tilewright
program = tilewright.compile(sys.argv[1], sys.argv[2], deploy=False)
print(time.perf_counter() - started, program.metadata.seconds.get("tilewright", 0))
"""


class Seconds(NamedTuple):
    """Seconds that a compilation takes."""

    whole: float
    """With the import of the package."""
    passes: float
    """In our passes: without the front end, IREE and ptxas."""


def of_one_kernel(target: str) -> float:
    """Returns the median seconds of compilations of a softmax, each of another shape."""
    with keep_compilers():
        seconds = []
        for number in range(_TIMES + 1):
            model = stitch.softmax((512, 1000 + number))
            started = time.perf_counter()
            tilewright.compile(model, target, deploy=False, cache=False)
            seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])


def in_a_process(model: Path, target: str, cache: str) -> Seconds:
    """Returns the seconds that a new process takes for a model."""
    environment = {**os.environ, "TILEWRIGHT_CACHE": cache}
    command = [sys.executable, "-c", _ONE, str(model), target]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return Seconds(*map(float, done.stdout.split()))


def of_layers(count: int, target: str, folder: Path) -> Seconds:
    """Returns the median seconds of a small BERT with so many equal layers."""
    model = folder / f"bert-{count}.onnx"
    sizes = BertOptions(layers=count, hidden=128, heads=4, sequence=32, intermediate=512)
    onnx.save(bert(sizes), model)
    runs = [in_a_process(model, target, "off") for _ in range(3)]
    return Seconds(*map(statistics.median, zip(*runs, strict=True)))


def of_equal_layers(target: str, folder: Path) -> str:
    """Returns a line that compares few layers with many."""
    few, many = (of_layers(count, target, folder) for count in (2, 24))
    return (
        f"2 and 24 equal layers for {target}: {few.whole:.1f} and {many.whole:.1f} s, in our passes "
        f"{few.passes:.2f} and {many.passes:.2f} s ({many.passes / few.passes:.2f} times)"
    )


@click.command()
@click.option(
    "--only", help="The models to compile, instead of all.", type=click.Choice((*_MODELS, "layers"))
)
def main(only: str | None) -> None:
    """Prints a line for each."""
    if only is None:
        for target in _TARGETS:
            click.echo(f"one kernel for {target}: {of_one_kernel(target):.2f} s")
    with WorkFolder("compile-times") as folder:
        for target in _TARGETS if only in (None, "layers") else ():
            click.echo(of_equal_layers(target, folder))
        for name in _MODELS if only is None else {only} & {*_MODELS}:
            onnx.save(WORKLOADS[name].build(), folder / f"{name}.onnx")
            for target in _TARGETS:
                off = [in_a_process(folder / f"{name}.onnx", target, "off").whole for _ in range(3)]
                click.echo(f"{name} for {target}: {statistics.median(off):.1f} s")
        if only is None:
            cache = str(folder / "cache")
            cached = [in_a_process(folder / "bert.onnx", _TARGETS[1], cache).whole for _ in range(_TIMES + 1)]
            click.echo(f"bert for {_TARGETS[1]} from the cache: {statistics.median(cached[1:]):.2f} s")


if __name__ == "__main__":
    main()
