"""Models as the direct runtime for GPUs runs them, from numpy to numpy: the driver is a stand-in that executes kernels
on the simulated device, and results are held to float64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from cuda_direct_cases import place
from onnx import TensorProto

from benchmarks.workloads import ScanOptions, build, selective_scan
from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.lands(one_in=6)


def _layers_of_halves() -> onnx.ModelProto:
    """Products in f16, whose weights are packed for the kernels that read them."""
    half = TensorProto.FLOAT16
    g = GraphBuilder("halves")
    x = g.input("x", (64, 128), half)
    for _ in range(2):
        weights = (g.rng.standard_normal((128, 128)) / 11).astype(np.float16)
        x = g.op("Relu", g.op("MatMul", x, g.constant(weights)))
    g.output(x, (64, 128), half)
    return g.build()


def _results_that_no_kernel_makes() -> onnx.ModelProto:
    """An input is a result, another result is there twice, and a third is a weight."""
    g = GraphBuilder("handed_on")
    x, y = g.input("x", (6, 10)), g.input("y", (3, 4))
    softmax = g.op("Softmax", x)
    g.output(g.op("Transpose", y, perm=[0, 1]), (3, 4))
    g.output(softmax, (6, 10))
    g.output(g.op("Identity", softmax), (6, 10))
    return g.build()


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "bert-small": lambda: build("bert-small"),
    "layers of halves": _layers_of_halves,
    "results that no kernel makes": _results_that_no_kernel_makes,
    "selective scan": lambda: selective_scan(ScanOptions(steps=7, channels=16, state=4)),
}


@pytest.mark.parametrize("grid_sync", [True, False], ids=["barriers", "launches"])
@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_float64(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, grid_sync: bool
) -> None:
    placed = place(MODELS[name](), tmp_path, monkeypatch, grid_sync=grid_sync)
    assert placed.program.runtime == "direct"
    for _ in range(2):  # the second call finds the memory as the first has left it
        placed.check(placed.program(*placed.inputs))
