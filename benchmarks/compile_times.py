"""Measures how long compilations take: `python -m benchmarks.compile_times`.

- A graph of one kernel in a process that has compiled before, for the runtime without IREE (`deploy=False`).
- BERT-base for a GPU in a process of its own, without the cache and from it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import click
import onnx
import tilewright
from tilewright.system.workfolder import WorkFolder
from tilewright.worker.process import keep_compilers

from benchmarks.workloads import stitch
from benchmarks.workloads.transformers import BertOptions, bert

_TIMES = 5
_ONE = """import sys, time
started = time.perf_counter()
import tilewright
tilewright.compile(sys.argv[1], "cuda:h200", deploy=False)
print(time.perf_counter() - started)
"""


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


def of_bert(folder: Path, cache: str) -> float:
    """Returns the seconds, with the import of the package, that a new process takes for `folder`'s BERT-base."""
    environment = {**os.environ, "TILEWRIGHT_CACHE": cache}
    command = [sys.executable, "-c", _ONE, str(folder / "bert.onnx")]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


@click.command()
def main() -> None:
    """Prints a line for each."""
    for target in ("cpu", "cuda:h200"):
        click.echo(f"one kernel for {target}: {of_one_kernel(target):.2f} s")
    with WorkFolder("compile-times") as folder:
        onnx.save(bert(BertOptions()), folder / "bert.onnx")
        off = [of_bert(folder, "off") for _ in range(3)]
        click.echo(f"BERT-base for cuda:h200: {statistics.median(off):.1f} s")
        cached = [of_bert(folder, str(folder / "cache")) for _ in range(_TIMES + 1)]
        click.echo(f"BERT-base for cuda:h200 from the cache: {statistics.median(cached[1:]):.2f} s")


if __name__ == "__main__":
    main()
