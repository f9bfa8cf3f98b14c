"""Tests of blocks that share the rows of a reduction after a product (Souffle, figure 1c), on the simulated device."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto
from tilewright.records.signature import Array
from tilewright.reference.oracle import float64_reference
from tilewright.runtime.tensors import LaunchTensors
from tilewright.simulator.programs import SimulatedRun, describe_launches, simulate_program

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.lands(one_in=6)

# The error of a normalised element, relative to the mean size of all. In f16, it is a few units in the last place at
# the largest elements, which are about four times the mean; in f32, some ten such units, of sums of up to 768 products.
_STEPS = {TensorProto.FLOAT16: 6e-3, TensorProto.FLOAT: 2e-5}


@dataclass(frozen=True)
class Projection:
    """A product with a bias and a residual sum, and what normalises its rows."""

    rows: int
    inner: int
    width: int
    norm: str
    dtype: int
    mean: float = 0.0
    """Mean of the bias, and so of a row. The larger it is, the more a variance from raw moments would cancel."""

    def build(self) -> onnx.ModelProto:
        g = GraphBuilder("projection")
        numpy_type = onnx.helper.tensor_dtype_to_np_dtype(self.dtype)

        def constant(*shape: int, mean: float = 0.0) -> str:
            values = mean + g.rng.standard_normal(shape) / np.sqrt(shape[0] if len(shape) > 1 else 1)
            return g.constant(values.astype(numpy_type))

        x = g.input("x", (self.rows, self.inner), self.dtype)
        residual = g.input("residual", (self.rows, self.width), self.dtype)
        product = g.op("MatMul", x, constant(self.inner, self.width))
        added = g.op("Add", g.op("Add", product, constant(self.width, mean=self.mean)), residual)
        if self.norm == "layer":
            gain, bias = constant(self.width, mean=1.0), constant(self.width)
            out = g.op("LayerNormalization", added, gain, bias, axis=-1)
        elif self.norm == "rms":
            square = g.op("ReduceMean", g.op("Mul", added, added), axes=[1])
            out = g.op("Div", added, g.op("Sqrt", square))
        else:
            out = g.op("Softmax", added, axis=-1)
        g.output(out, (self.rows, self.width), self.dtype)
        return g.build()

    def inputs(self) -> list[Array]:
        rng, numpy_type = np.random.default_rng(11), onnx.helper.tensor_dtype_to_np_dtype(self.dtype)
        shapes = [(self.rows, self.inner), (self.rows, self.width)]
        return [rng.standard_normal(shape).astype(numpy_type) for shape in shapes]


def _compile(projection: Projection, folder: Path) -> tilewright.Program:
    program = tilewright.compile(projection.build(), "cuda:h200", dump_dir=folder, tuning=False)
    assert len(program.kernels) == 1
    assert "of which share a row" in program.explain()
    return program


def _run(projection: Projection, folder: Path) -> SimulatedRun:
    model, inputs = projection.build(), projection.inputs()
    ran = simulate_program(_compile(projection, folder), folder, inputs)  # raises if a kernel has a bug
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    error = ran.outputs[0].astype(np.float64) - expected
    assert np.abs(error).max() <= _STEPS[projection.dtype] * np.abs(expected).mean()
    return ran


@pytest.mark.parametrize(
    "projection",
    [
        Projection(128, 768, 768, "layer", TensorProto.FLOAT16),
        Projection(197, 192, 768, "layer", TensorProto.FLOAT16),
        Projection(67, 256, 1024, "rms", TensorProto.FLOAT16),
        Projection(128, 768, 768, "layer", TensorProto.FLOAT16, mean=200.0),
        Projection(256, 64, 768, "layer", TensorProto.FLOAT),
        Projection(29, 768, 768, "layer", TensorProto.FLOAT),
        Projection(2048, 768, 768, "rms", TensorProto.FLOAT16),
    ],
    ids=[
        "layer norm",
        "layer norm of an odd number of rows",
        "rms norm",
        "mean far from zero",
        "f32",
        "f32, with slices of K",
        "warpgroups",
    ],
)
def test_partial_results_of_rows_are_exchanged_at_one_barrier(projection: Projection, tmp_path: Path) -> None:
    """A mean of two hundred standard deviations would spoil a variance from sums of x and of its square."""
    assert _run(projection, tmp_path).kernels[0].grid_barriers == 1


def test_the_product_is_not_written_to_global_memory(tmp_path: Path) -> None:
    """Beside the output, a block writes two numbers of four bytes for each of its rows."""
    projection = Projection(128, 768, 768, "layer", TensorProto.FLOAT16)
    program = _compile(projection, tmp_path)
    ran = simulate_program(program, tmp_path, projection.inputs())
    output, blocks = 128 * 768 * 2, program.kernels[0].groups[0].row_blocks
    assert ran.kernels[0].global_writes.sectors * 32 == output + 2 * 4 * 128 * blocks


def test_a_missing_barrier_of_an_exchange_is_found(tmp_path: Path) -> None:
    projection = Projection(128, 768, 768, "layer", TensorProto.FLOAT16)
    program = _compile(projection, tmp_path)
    flow = describe_launches(tmp_path)
    text, count = re.subn(r"llvm.call @tile_grid_barrier\(.*\n", "\n", flow["kernels"])
    assert count == 1
    (launch,) = flow["launches"]
    tensors = LaunchTensors(flow["tensors"], projection.inputs(), program.parameter_paths)
    read = [tensors.get(number) for number in launch["inputs"]]
    made = [tensors.new(number) for number in launch["outputs"]]
    report = tilewright.simulate(
        text,
        launch["kernel"],
        (launch["workgroups"],),
        [*read, *made],
        target="cuda:h200",
        empty=range(len(read), len(read) + len(made)),
        dynamic_shared_bytes=launch["dynamic_shared_bytes"],
    )
    with pytest.raises(tilewright.SimulationError):
        report.check()


def test_rows_stay_whole_without_barriers_and_with_strict_numerics() -> None:
    model = Projection(128, 768, 768, "layer", TensorProto.FLOAT16).build()
    for options in ({"grid_sync": False}, {"numerics": "strict"}):
        assert "share a row" not in tilewright.compile(model, "cuda:h200", tuning=False, **options).explain()
