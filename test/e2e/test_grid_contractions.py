"""Tests of contractions as phases of kernels with grid barriers, on the simulated device: numbers, safety,
resources."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto
from tilewright.records.signature import Array
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads import BertOptions, transformers
from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.lands(one_in=6)


def layers_behind_attention(rows: int, width: int, hidden: int, dtype: int) -> onnx.ModelProto:
    """Builds the ops behind an attention: a projection and a hidden layer, each with a residual sum and a norm of
    whole rows."""
    g = GraphBuilder("behind")
    numpy_type = onnx.helper.tensor_dtype_to_np_dtype(dtype)

    def constant(*shape: int, mean: float = 0.0) -> str:
        values = mean + g.rng.standard_normal(shape) / np.sqrt(shape[0])
        return g.constant(values.astype(numpy_type))

    def project(value: str, fan_in: int, fan_out: int) -> str:
        return g.op("Add", g.op("MatMul", value, constant(fan_in, fan_out)), constant(fan_out))

    def norm(value: str) -> str:
        return g.op("LayerNormalization", value, constant(width, mean=1.0), constant(width), axis=-1)

    x = g.input("x", (rows, width), dtype)
    first = norm(g.op("Add", x, project(x, width, width)))
    inner = g.op("Relu", project(first, width, hidden))
    g.output(norm(g.op("Add", first, project(inner, hidden, width))), (rows, width), dtype)
    return g.build()


def _input(rows: int, width: int, dtype: int) -> Array:
    values = np.random.default_rng(5).standard_normal((rows, width))
    return values.astype(onnx.helper.tensor_dtype_to_np_dtype(dtype))


@pytest.mark.parametrize(
    ("rows", "width", "hidden", "dtype", "steps"),
    [
        (32, 128, 512, TensorProto.FLOAT, 2e-5),
        (64, 256, 1024, TensorProto.FLOAT16, 2e-2),
    ],
    ids=["f32", "f16"],
)
def test_contractions_wait_for_each_other_at_barriers_of_the_grid(
    rows: int, width: int, hidden: int, dtype: int, steps: float, tmp_path: Path
) -> None:
    model, x = layers_behind_attention(rows, width, hidden, dtype), _input(rows, width, dtype)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path, tuning=False)
    contracting = [
        kernel for kernel in program.kernels if sum(bool(op.micro_kernel) for op in kernel.ops) > 1
    ]
    phases = [max(part.phase for part in kernel.groups) for kernel in contracting]
    assert max(phases) >= 1
    assert {edge.scope for kernel in contracting for edge in kernel.edges} >= {"grid"}
    ran = simulate_program(program, tmp_path, [x])  # raises if a kernel has a bug
    assert sum(report.grid_barriers for report in ran.kernels) >= max(phases)
    assert ran.outputs is not None
    (expected,) = float64_reference(model, [x])
    error = ran.outputs[0].astype(np.float64).reshape(expected.shape) - expected
    assert np.abs(error).max() <= steps * np.abs(expected).mean()


def test_parts_are_cut_where_few_blocks_would_compute_both_sides(tmp_path: Path) -> None:
    """A block has all heads of a row; few blocks would have to compute all of the projections before them."""
    model = transformers.bert(BertOptions(layers=1, hidden=192, heads=6, intermediate=384, sequence=29))
    inputs = random_inputs(model, 3)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path, tuning=False)
    assert "us, with one block for both ends" in str(program.explain())
    ran = simulate_program(program, tmp_path, inputs)  # raises if a kernel has a bug
    assert ran.outputs is not None
    for output, expected in zip(ran.outputs, float64_reference(model, inputs), strict=True):
        assert relative_error(output, expected) <= model_tolerance(model)


def test_workgroups_of_a_phase_share_tiles(tmp_path: Path) -> None:
    """All workgroups of the kernel share tiles in this phase, because all of them synchronise; phases behind it do so
    if they have enough steps."""
    model, x = (
        layers_behind_attention(64, 256, 1024, TensorProto.FLOAT16),
        _input(64, 256, TensorProto.FLOAT16),
    )
    program = tilewright.compile(model, "cuda:h200", tuning=False)
    plan = program.plan
    assert plan is not None
    (kernel,) = plan.kernels
    workgroups = max(part.workgroups for part in kernel.groups)
    phases = [part.phase for part in program.kernels[0].groups]
    for part, phase in zip(kernel.groups, phases, strict=True):
        for op in part.ops:
            if op.gemm is not None and phases.count(phase) == 1:
                tiles = math.prod(-(-part.extents[dim] // part.tiles[dim]) for dim in part.grid)
                steps = -(-part.extents[op.dims[-1]] // op.gemm.step)  # the last dim of a product is K
                if tiles % workgroups != 0 and tiles * steps >= workgroups:
                    part.steps, part.workgroups = steps, workgroups  # all of them meet at the barrier
            op.gemm = None  # chosen again: contractions whose tiles are shared prefetch nothing
    assert any(part.steps > 0 for part in kernel.groups)
    program = tilewright.compile(model, "cuda:h200", plan=plan, dump_dir=tmp_path, tuning=False)
    ran = simulate_program(program, tmp_path, [x])  # raises if a kernel has a bug
    assert ran.kernels[0].grid_barriers > max(part.phase for part in program.kernels[0].groups)
    assert ran.outputs is not None
    (expected,) = float64_reference(model, [x])
    error = ran.outputs[0].astype(np.float64).reshape(expected.shape) - expected
    assert np.abs(error).max() <= 2e-2 * np.abs(expected).mean()


def test_forbidding_barriers_takes_more_kernels_and_more_time() -> None:
    model = layers_behind_attention(64, 256, 1024, TensorProto.FLOAT16)
    joined = tilewright.compile(model, "cuda:h200", tuning=False)
    apart = tilewright.compile(model, "cuda:h200", tuning=False, grid_sync=False)
    assert len(joined.kernels) < len(apart.kernels)
    assert sum(own.predicted_seconds for own in joined.kernels) < sum(
        own.predicted_seconds for own in apart.kernels
    )


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["as they stand", "the other way round"])
def test_activations_may_come_in_another_order(order: tuple[int, int], tmp_path: Path) -> None:
    """Accumulators are handed over in registers, so copies that are prefetched must have the order of their reader."""
    g, sizes = GraphBuilder("two"), (32, 48)

    def constant(*shape: int) -> str:
        return g.constant((g.rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float16))

    x = g.input("x", (32, 64), TensorProto.FLOAT16)
    hidden = [g.op("MatMul", x, constant(64, size)) for size in sizes]
    active = {i: g.op(("Relu", "Sigmoid")[i], hidden[i]) for i in order}
    results = [g.op("MatMul", active[i], constant(size, 64)) for i, size in enumerate(sizes)]
    g.output(g.op("Add", *results), (32, 64), TensorProto.FLOAT16)
    model, given = g.build(), _input(32, 64, TensorProto.FLOAT16)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path, tuning=False)
    ran = simulate_program(
        program, tmp_path, [given]
    )  # raises if a kernel reads memory that was never written
    assert ran.outputs is not None
    (expected,) = float64_reference(model, [given])
    np.testing.assert_allclose(ran.outputs[0].astype(np.float64), expected, rtol=2e-2, atol=2e-2)


def layer_of_a_token(batch: int, heads: int, keys: int, dtype: int) -> onnx.ModelProto:
    """Builds a decoder layer as exporters write it: norms of batch x 1 x width, with matmuls of batch x width between
    them."""
    g, size = GraphBuilder("token"), 32
    width = heads * size
    numpy_type = onnx.helper.tensor_dtype_to_np_dtype(dtype)

    def constant(*shape: int, mean: float = 0.0) -> str:
        values = mean + g.rng.standard_normal(shape) / np.sqrt(shape[0])
        return g.constant(values.astype(numpy_type))

    def project(value: str, fan_in: int, fan_out: int) -> str:
        rows = g.op("Reshape", value, g.ints([batch, fan_in]))
        return g.op("Gemm", rows, constant(fan_in, fan_out), constant(fan_out))

    def norm(value: str) -> str:
        return g.op("LayerNormalization", value, constant(width, mean=1.0), constant(width), axis=-1)

    def added(value: str, projected: str) -> str:
        return g.op("Add", value, g.op("Reshape", projected, g.ints([batch, 1, width])))

    x, k, v = (
        g.input(name, shape, dtype)
        for name, shape in (
            ("x", (batch, 1, width)),
            ("k", (batch, heads, size, keys)),
            ("v", (batch, heads, keys, size)),
        )
    )
    query = g.op("Reshape", project(norm(x), width, width), g.ints([batch, heads, 1, size]))
    attended = g.op("MatMul", g.op("Softmax", g.op("MatMul", query, k), axis=-1), v)
    x = added(x, project(attended, width, width))
    hidden = g.op("Relu", project(norm(x), width, 2 * width))
    x = added(x, project(hidden, 2 * width, width))
    g.output(x, (batch, 1, width), dtype)
    return g.build()


@pytest.mark.parametrize(
    ("batch", "heads", "keys", "dtype", "steps"),
    [
        (1, 12, 200, TensorProto.FLOAT, 2e-5),
        (5, 9, 77, TensorProto.FLOAT, 2e-5),
        (1, 12, 2048, TensorProto.FLOAT16, 4e-2),
        (16, 12, 64, TensorProto.FLOAT16, 4e-2),
    ],
    ids=["f32", "f32, rows of an odd number", "f16, keys in parts", "f16, a tile of rows"],
)
def test_phases_read_through_reshapes(
    batch: int, heads: int, keys: int, dtype: int, steps: float, tmp_path: Path
) -> None:
    model = layer_of_a_token(batch, heads, keys, dtype)
    rng = np.random.default_rng(7)
    shapes = [tuple(d.dim_value for d in value.type.tensor_type.shape.dim) for value in model.graph.input]
    given = [
        rng.standard_normal(shape).astype(onnx.helper.tensor_dtype_to_np_dtype(dtype)) for shape in shapes
    ]
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path, tuning=False)
    views = {op.id for kernel in program.kernels for op in kernel.ops if op.op.startswith("tensor.")}
    assert any(
        edge.scope == "grid" and edge.consumer in views for kernel in program.kernels for edge in kernel.edges
    )
    ran = simulate_program(program, tmp_path, given)  # raises if a kernel has a bug
    assert ran.outputs is not None
    (expected,) = float64_reference(model, given)
    error = ran.outputs[0].astype(np.float64).reshape(expected.shape) - expected
    assert np.abs(error).max() <= steps * np.abs(expected).mean()


def slices_of_a_projection(rows: int, width: int, dtype: int) -> onnx.ModelProto:
    """Builds one matmul for query, key and value, whose unchanged results are appended to a cache."""
    g = GraphBuilder("slices")
    numpy_type = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    weight = g.constant((g.rng.standard_normal((width, 3 * width)) / np.sqrt(width)).astype(numpy_type))
    projected = g.op("MatMul", g.input("x", (rows, width), dtype), weight)
    projected = g.op("Reshape", projected, g.ints([rows, 1, 3 * width]))
    for part in range(3):
        bounds = g.ints([part * width]), g.ints([(part + 1) * width]), g.ints([2])
        g.output(g.op("Slice", projected, *bounds), (rows, 1, width), dtype)
    return g.build()


@pytest.mark.parametrize(
    ("rows", "width", "dtype", "steps", "scope"),
    [
        (33, 96, TensorProto.FLOAT, 2e-5, "block"),
        (67, 256, TensorProto.FLOAT, 2e-5, "grid"),
        (128, 256, TensorProto.FLOAT16, 4e-2, "grid"),
    ],
    ids=["rows that a block has whole", "rows of an odd number", "f16"],
)
def test_slices_are_written_where_they_are_computed(
    rows: int, width: int, dtype: int, steps: float, scope: str, tmp_path: Path
) -> None:
    model, x = slices_of_a_projection(rows, width, dtype), _input(rows, width, dtype)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path, tuning=False)
    (kernel,) = program.kernels
    slices = [op.id for op in kernel.ops if op.op == "tensor.extract_slice"]
    assert [edge.scope for edge in kernel.edges if edge.consumer in slices] == 3 * [scope]
    ran = simulate_program(program, tmp_path, [x])  # raises if a kernel has a bug
    assert ran.outputs is not None
    for output, expected in zip(ran.outputs, float64_reference(model, [x]), strict=True):
        error = output.astype(np.float64).reshape(expected.shape) - expected
        assert np.abs(error).max() <= steps * np.abs(expected).mean()
