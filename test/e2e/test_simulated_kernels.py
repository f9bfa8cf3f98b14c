"""Tests of GPU kernels on the simulated device: their numbers against float64, their traffic, and their safety."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto, helper
from tilewright.reference.oracle import float64_reference, random_inputs, relative_error
from tilewright.simulator.programs import simulate_program

pytestmark = pytest.mark.lands(one_in=6)

Array = np.ndarray[Any, Any]
_TYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
_DTYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
# The tolerances are a few units in the last place, for sums of positive numbers and functions within 2 ulp.
_TOLERANCE = {"f32": 4e-6, "f16": 2e-3, "bf16": 2e-2}


@dataclass
class Outcome:
    """A kernel's result, and the report of the simulated device."""

    program: tilewright.Program
    result: Array
    expected: Array
    report: Any
    compulsory_bytes: int

    @property
    def scheme(self) -> int:
        return self.program.kernels[0].groups[0].group


def run(model: onnx.ModelProto, x: Array, folder: Path) -> Outcome:
    """Runs a model with one input, one output and one kernel."""
    program = tilewright.compile(model, target="cuda:h200", dump_dir=folder, strict=True)
    assert len(program.kernels) == 1
    text = next((folder / "passes").rglob("*tile-wrap-cuda-abi.mlir")).read_text()
    (expected,) = float64_reference(model, [x])
    dtype = program.signature.outputs[0].numpy_dtype if program.signature else x.dtype
    result = np.zeros(expected.shape, dtype)
    kernel = program.kernels[0]
    given = int(re.findall(r"tile\.block_bytes = (\d+)", text)[0]) if "tile_dynamic_shared" in text else 0
    report = tilewright.simulate(
        text, kernel.name, (kernel.workgroups,), [x, result], empty=[1], dynamic_shared_bytes=given
    )
    report.check()
    return Outcome(program, result, np.asarray(expected), report, x.nbytes + result.nbytes)


def chain(shape: list[int], out: list[int], element: str, *nodes: onnx.NodeProto) -> onnx.ModelProto:
    kind = _TYPES[element]
    graph = helper.make_graph(
        list(nodes),
        "kernel",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, out)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def softmax(shape: list[int], element: str = "f32", axis: int = -1) -> onnx.ModelProto:
    return chain(shape, shape, element, helper.make_node("Softmax", ["x"], ["y"], axis=axis))


def draw(shape: list[int], element: str = "f32") -> Array:
    drawn = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    return np.ascontiguousarray(drawn.astype(_DTYPES[element]))


def assert_close(outcome: Outcome, element: str = "f32") -> None:
    got, want = outcome.result.astype(np.float64), outcome.expected.astype(np.float64)
    np.testing.assert_allclose(
        got, want, rtol=_TOLERANCE[element], atol=_TOLERANCE[element] * np.abs(want).mean()
    )


@pytest.mark.parametrize("element", _TYPES)
@pytest.mark.parametrize(
    "shape",
    [[96, 128], [40, 1024], [77, 5], [13, 321], [3, 30522]],
    ids=lambda shape: "x".join(map(str, shape)),
)
def test_softmax(shape: list[int], element: str, tmp_path: Path) -> None:
    outcome = run(softmax(shape, element), draw(shape, element), tmp_path)
    assert_close(outcome, element)


@pytest.mark.parametrize("shape", [[8, 197, 64], [5, 33, 7]], ids=["8x197x64", "5x33x7"])
def test_reductions_of_columns(shape: list[int], tmp_path: Path) -> None:
    node = helper.make_node("ReduceSumSquare", ["x", "axes"], ["y"], keepdims=0)
    model = chain(shape, [shape[0], shape[2]], "f32", node)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "axes"))
    assert_close(run(model, draw(shape), tmp_path))


@pytest.mark.parametrize("element", _TYPES)
@pytest.mark.parametrize("shape", [[64, 256], [7, 129]], ids=["64x256", "7x129"])
def test_elementwise(shape: list[int], element: str, tmp_path: Path) -> None:
    nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Mul", ["x", "t"], ["y"])]
    assert_close(run(chain(shape, shape, element, *nodes), draw(shape, element), tmp_path), element)


def test_transposes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Transpose", ["e"], ["y"], perm=[1, 0, 2]),
    ]
    assert_close(run(chain([12, 37, 64], [37, 12, 64], "f32", *nodes), draw([12, 37, 64]), tmp_path))


@pytest.mark.parametrize("element", _TYPES)
def test_aligned_rows_are_read_and_written_once_in_whole_sectors(element: str, tmp_path: Path) -> None:
    outcome = run(softmax([256, 768], element), draw([256, 768], element), tmp_path)
    report = outcome.report
    assert report.dram_bytes_read + report.dram_bytes_written <= 1.05 * outcome.compulsory_bytes
    assert (
        report.global_reads.sectors + report.global_writes.sectors
    ) * 32 <= 1.05 * outcome.compulsory_bytes
    assert report.global_reads.coalescing >= 0.95
    assert report.global_writes.coalescing >= 0.95
    assert report.shared_reads.conflicts + report.shared_writes.conflicts == 0


@pytest.mark.parametrize("element", _TYPES)
@pytest.mark.parametrize("shape", [[101, 1027], [1000, 5]], ids=["101x1027", "1000x5"])
def test_other_rows_are_as_well(shape: list[int], element: str, tmp_path: Path) -> None:
    """Rows are unaligned or have a few elements: a sector that two blocks share is accessed by both."""
    outcome = run(softmax(shape, element), draw(shape, element), tmp_path)
    assert_close(outcome, element)
    report = outcome.report
    assert report.dram_bytes_read + report.dram_bytes_written <= 1.05 * outcome.compulsory_bytes
    shared = 2 * 32 * outcome.program.kernels[0].workgroups
    sectors = report.global_reads.sectors + report.global_writes.sectors
    assert sectors * 32 <= outcome.compulsory_bytes + shared
    assert report.global_reads.coalescing >= 0.95
    assert report.global_writes.coalescing >= 0.95


def moved_bytes(model: onnx.ModelProto, folder: Path) -> int:
    """Returns the bytes, in whole sectors, of the model's only kernel; checks its numbers, and that no detector
    fires."""
    inputs = random_inputs(model, 0)
    program = tilewright.compile(model, target="cuda:h200", dump_dir=folder, strict=True, tuning=False)
    ran = simulate_program(program, folder, inputs)
    (report,) = ran.kernels
    assert ran.outputs is not None
    for got, expected in zip(ran.outputs, float64_reference(model, inputs), strict=True):
        assert relative_error(got, expected) <= 1e-6
    assert report.shared_reads.conflicts + report.shared_writes.conflicts == 0
    return 32 * (report.global_reads.sectors + report.global_writes.sectors)


def test_heads_that_share_a_table_are_read_once(tmp_path: Path) -> None:
    """A block has several heads at one position, which are not contiguous, and each element goes to two positions
    (rotary)."""
    heads, length, size = 11, 37, 64
    draw = np.random.default_rng(0)
    tables = [
        onnx.numpy_helper.from_array(draw.standard_normal((length, size)).astype(np.float32), name)
        for name in ("cosine", "sine")
    ]
    nodes = [
        helper.make_node("Split", ["x"], ["low", "high"], axis=2, num_outputs=2),
        helper.make_node("Neg", ["high"], ["negated"]),
        helper.make_node("Concat", ["negated", "low"], ["rotated"], axis=2),
        helper.make_node("Mul", ["x", "cosine"], ["straight"]),
        helper.make_node("Mul", ["rotated", "sine"], ["across"]),
        helper.make_node("Add", ["straight", "across"], ["y"]),
    ]
    model = chain([heads, length, size], [heads, length, size], "f32", *nodes)
    model.graph.initializer.extend(tables)
    compulsory = 4 * length * size * (2 * heads + 2)
    assert moved_bytes(model, tmp_path) <= 1.05 * compulsory


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_one_long_row_is_read_once(op: str, tmp_path: Path) -> None:
    """A block has room for the row; otherwise each nest would read parts of it again."""
    shape = [1, 50257]
    model = chain(shape, shape, "f32", helper.make_node(op, ["x"], ["y"], axis=-1))
    assert moved_bytes(model, tmp_path) <= 1.01 * 2 * 4 * 50257


def test_what_two_phases_read_stays_with_its_blocks(tmp_path: Path) -> None:
    """A kernel computes statistics of a batch and normalises it: behind the grid barrier, blocks find their tiles in
    shared memory."""
    shape = [16, 56, 56, 64]
    nodes = [
        helper.make_node("ReduceMean", ["x", "axes"], ["mean"], keepdims=1),
        helper.make_node("Sub", ["x", "mean"], ["centred"]),
        helper.make_node("Mul", ["centred", "centred"], ["squares"]),
        helper.make_node("ReduceMean", ["squares", "axes"], ["variance"], keepdims=1),
        helper.make_node("Sqrt", ["variance"], ["deviation"]),
        helper.make_node("Div", ["centred", "deviation"], ["y"]),
    ]
    model = chain(shape, shape, "f32", *nodes)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0, 1, 2]), "axes"))
    assert moved_bytes(model, tmp_path) <= 1.03 * 2 * 4 * np.prod(shape)


def test_threads_beyond_the_last_row_read_nothing(tmp_path: Path) -> None:
    """Twelve heads share a mask: four of the sixteen rows that a block has threads for do not exist."""
    heads, length, size = 12, 256, 512
    mask = np.triu(np.full((length, size), -1e9, np.float32), k=1)
    nodes = [
        helper.make_node("Add", ["x", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["y"], axis=-1),
    ]
    model = chain([heads, length, size], [heads, length, size], "f32", *nodes)
    model.graph.initializer.append(onnx.numpy_helper.from_array(mask, "mask"))
    compulsory = 4 * length * size * (2 * heads + 1)
    assert moved_bytes(model, tmp_path) <= 1.05 * compulsory


def test_tiles_of_short_rows_share_few_sectors(tmp_path: Path) -> None:
    """Rows have 20 bytes, so the plan must count the sectors at the ends of tiles."""
    shape = [77, 77, 5]
    outcome = run(softmax(shape), draw(shape), tmp_path)
    sectors = outcome.report.global_reads.sectors + outcome.report.global_writes.sectors
    assert sectors * 32 <= 1.05 * outcome.compulsory_bytes


def test_a_mask_of_a_few_bytes_is_a_sector_of_each_block(tmp_path: Path) -> None:
    """The plan counts the sector of each block as well, and so chooses blocks of more rows."""
    shape = [77, 77, 5]
    nodes = [
        helper.make_node("Add", ["x", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["y"], axis=-1),
    ]
    model = chain(shape, shape, "f32", *nodes)
    mask = np.array([0, -1e9, 0, 0, -1], np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(mask, "mask"))
    assert moved_bytes(model, tmp_path) <= 1.05 * (2 * 4 * np.prod(shape) + mask.nbytes)
