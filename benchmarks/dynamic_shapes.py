"""A BERT encoder with open batch and sequence length: the program of a dynamic model beside static ones and IREE's own.

Usage: python -m benchmarks.dynamic_shapes [--layers 2] [--threads 1] [--shapes 1x16,8x64] [--output results.json]

The dynamic program is called once with every shape, while it compiles kernels for the earlier ones in the background;
that call is compared with IREE's dynamic program. Once all shapes have kernels, calls of it take turns with calls of
the program that was compiled for the shape alone, and the median of each counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tilewright
from onnx import numpy_helper
from tilewright.frontends import import_model
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.faults import DATA_TILING
from tilewright.records.signature import Array
from tilewright.runtime.session import Session
from tilewright.worker.process import lend_worker

from benchmarks.machine import describe
from benchmarks.workloads.transformers import BertOptions, bert

SHAPES = ((1, 16), (2, 24), (1, 48), (4, 32), (1, 64), (8, 40), (2, 128), (1, 200), (1, 384), (2, 512))
"""Batches and sequence lengths."""

_MARKS = {"batch": 7919, "sequence": 104729}
"""Sizes that no weight has, and that stand for open dims until the model is built."""
_SECONDS = 2.0
"""Time to measure each shape for, both programs together."""
_LEAST_ROUNDS = 7
_LONGEST_WAIT_SECONDS = 3600.0
_TOLERANCE = 1e-4
"""Largest accepted difference of the two programs relative to the largest element, in f32."""


def dynamic_bert(layers: int) -> onnx.ModelProto:
    """Returns layers of BERT-base whose batch and sequence length are open."""
    model = bert(BertOptions(layers=layers, **_MARKS))
    names = {size: name for name, size in _MARKS.items()}
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.INT64:
            values = numpy_helper.to_array(tensor)
            # 0 is the size of the same dim of the operand.
            kept = np.where(np.isin(values, list(names)), 0, values)
            tensor.CopyFrom(numpy_helper.from_array(kept, tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value in names:
                dim.dim_param = names[dim.dim_value]
    return model


def inputs(batch: int, sequence: int) -> list[Array]:
    """Returns hidden states and a mask that hides the end of every other row."""
    rng = np.random.default_rng(batch * 1000 + sequence)
    mask = np.ones((batch, sequence), np.int64)
    mask[::2, sequence * 3 // 4 :] = 0
    return [rng.standard_normal((batch, sequence, 768), dtype=np.float32), mask]


def iree_alone(model: onnx.ModelProto, program: tilewright.Program, folder: Path, threads: int) -> Any:
    """Returns a function that calls IREE's dynamic program. It has no data tiling, which IREE gets wrong for open
    dims."""
    with lend_worker(folder) as worker:
        iree = IreeCompiler(worker)
        imported = import_model(model, compiler=iree, directory=folder)
        flags = [flag for flag in program.metadata.iree_flags if flag != DATA_TILING]
        module = folder / "iree.vmfb"
        module.write_bytes(iree.compile(imported.source, flags=flags, name=imported.name))
    session = Session(module, imported.parameters, entry=program.metadata.entry, threads=threads)
    return lambda arrays: session(arrays, program.signature)


def measure(layers: int, threads: int, shapes: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
    """Returns a row for each shape."""
    model = dynamic_bert(layers)
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        program = tilewright.compile(model, threads=threads, cache=cache)
        alone = iree_alone(model, program, Path(folder), threads)
        given = {shape: inputs(*shape) for shape in shapes}
        # Both programs read their weights for the first time, which no shape is to blame for.
        alone(given[shapes[0]])
        program.session()(given[shapes[0]], program.signature)
        rows = [_first_call(program, alone, shape, given[shape]) for shape in shapes]
        _wait_for_kernels(program, len(shapes))
        for row, shape in zip(rows, shapes, strict=True):
            dims = {"batch": shape[0], "sequence": shape[1]}
            static = tilewright.compile(model, threads=threads, dims=dims, cache=cache)
            row |= _after_warm_up(program, static, given[shape])
            print(_line(row), flush=True)
    return rows


def _first_call(program: Any, alone: Any, shape: tuple[int, int], arrays: list[Array]) -> dict[str, Any]:
    """Times IREE's program and the first call with a shape, which begins the compilation of its kernels."""
    theirs = [_timed(lambda: alone(arrays)) for _ in range(3)]
    started = time.perf_counter()
    (found,) = program(*arrays)
    first = time.perf_counter() - started
    (wanted,) = alone(arrays)
    return {
        "batch": shape[0],
        "sequence": shape[1],
        "first_call_seconds": first,
        "iree_dynamic_seconds": statistics.median(theirs),
        "first_call_ratio": first / statistics.median(theirs),
        "first_call_error": _difference(found, wanted),
    }


def _after_warm_up(program: Any, static: Any, arrays: list[Array]) -> dict[str, Any]:
    runs: dict[str, Callable[[], Any]] = {
        "dynamic": lambda: program(*arrays),
        "static": lambda: static(*arrays),
    }
    (found,), (wanted,) = (run() for run in runs.values())
    times: dict[str, list[float]] = {key: [] for key in runs}
    end = time.perf_counter() + _SECONDS
    while time.perf_counter() < end or len(times["static"]) < _LEAST_ROUNDS:
        for key, run in runs.items():
            times[key].append(_timed(run))
    seconds = {f"{key}_seconds": statistics.median(taken) for key, taken in times.items()}
    return {
        **seconds,
        "ratio": seconds["dynamic_seconds"] / seconds["static_seconds"],
        "error": _difference(found, wanted),
        "kernels": len(static.kernels),
    }


def _timed(run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _difference(found: Array, wanted: Array) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def _wait_for_kernels(program: Any, count: int) -> None:
    """Waits until every shape has kernels. Raises `TimeoutError` if one of them gets none."""
    end = time.monotonic() + _LONGEST_WAIT_SECONDS
    while sum(shape.state in ("ready", "covered") for shape in program.shapes) < count:
        if time.monotonic() > end or any(shape.state == "failed" for shape in program.shapes):
            raise TimeoutError(program.explain())
        time.sleep(0.5)


def _line(row: dict[str, Any]) -> str:
    wrong = "" if max(row["error"], row["first_call_error"]) < _TOLERANCE else "  WRONG"
    return (
        f"batch {row['batch']} sequence {row['sequence']:4}  first call {row['first_call_seconds'] * 1e3:8.1f} ms, "
        f"{row['first_call_ratio']:.2f} of IREE's  then {row['dynamic_seconds'] * 1e3:8.2f} ms, "
        f"{row['ratio']:.2f} of the static program{wrong}"
    )


def main() -> None:
    """Measures, prints a line for each shape, and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=2, help="layers of BERT-base")
    parser.add_argument("--threads", type=int, default=1)
    default = ",".join(f"{batch}x{sequence}" for batch, sequence in SHAPES)
    parser.add_argument("--shapes", default=default, help="batch x sequence, with commas")
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    options = parser.parse_args()
    shapes = [tuple(map(int, shape.split("x"))) for shape in options.shapes.split(",")]
    rows = measure(options.layers, options.threads, [(batch, sequence) for batch, sequence in shapes])
    worst = max(row["ratio"] for row in rows), max(row["first_call_ratio"] for row in rows)
    print(f"at worst {worst[0]:.2f} of the static program, and {worst[1]:.2f} of IREE's at the first call")
    if options.output:
        result = {"machine": describe(), "layers": options.layers, "threads": options.threads, "rows": rows}
        options.output.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
