"""Tests of kernels with more tensors than IREE's CUDA driver passes: weights are concatenated in one binding, and
values handed over between phases in another."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto, helper
from tilewright.reference.oracle import float64_reference, random_inputs, relative_error, tolerance
from tilewright.simulator.programs import describe_launches, simulate_program

from benchmarks.workloads.builder import GraphBuilder

_MOST = 16
_WIDTHS = (72, 96, 57, 80, 131, 64, 88)


def _layers(dtype: int) -> onnx.ModelProto:
    """Builds layers of a norm and a matmul, with different widths that are aligned to nothing: 25 weights, some of
    them constants in the program's text, some in f32."""
    g = GraphBuilder("layers")
    numpy_type = helper.tensor_dtype_to_np_dtype(dtype)

    def weight(*shape: int, mean: float = 0.0) -> str:
        values = mean + g.rng.standard_normal(shape) / np.sqrt(shape[0])
        return g.constant(values.astype(numpy_type))

    value = g.input("x", (24, _WIDTHS[0]), dtype)
    for fan_in, fan_out in itertools.pairwise(_WIDTHS):
        value = g.op("LayerNormalization", value, weight(fan_in, mean=1.0), weight(fan_in), axis=-1)
        value = g.op("Relu", g.op("Add", g.op("MatMul", value, weight(fan_in, fan_out)), weight(fan_out)))
    wide = g.op("Cast", value, to=TensorProto.FLOAT)
    table = g.constant(g.rng.standard_normal((24, _WIDTHS[-1])).astype(np.float32))
    g.output(g.op("Mul", wide, table), (24, _WIDTHS[-1]), TensorProto.FLOAT)
    return g.build()


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16], ids=["f32", "f16"])
def test_a_kernel_of_many_weights(dtype: int, tmp_path: Path) -> None:
    model = _layers(dtype)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path, tuning=False)
    (kernel,) = program.kernels
    tensors = sum(len(part.tensors) for part in program.plan.kernels[0].groups)
    assert tensors > _MOST
    (launch,) = describe_launches(tmp_path)["launches"]
    ptx = (tmp_path / "kernels.ptx").read_text()
    parameters = re.findall(rf"\.param .*{kernel.name}_param_\d+[,\n]", ptx)
    assert len(launch["inputs"]) + len(launch["outputs"]) == len(parameters) <= _MOST
    inputs = random_inputs(model, 3)
    ran = simulate_program(program, tmp_path, inputs)  # raises if a kernel has a bug
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    numpy_type = helper.tensor_dtype_to_np_dtype(dtype)
    assert relative_error(ran.outputs[0], expected) <= len(_WIDTHS) * tolerance(numpy_type)


def _row_chain(g: GraphBuilder, name: str, roles: str) -> None:
    """Adds a chain on the rows of an input with 22 vectors, each a weight ("w") or an input ("x")."""
    rows, width = 12, 320
    value = g.input(name, (rows, width))
    for number, role in enumerate(roles):
        vector = g.input(f"{name}{number}", (width,)) if role == "x" else g.vector(width, mean=1.0)
        value = g.op("Add" if number % 2 else "Mul", value, vector)
    g.output(g.op("Relu", value), (rows, width))


def test_what_is_a_weight_to_one_launch_may_be_computed_for_another(tmp_path: Path) -> None:
    """Both launches share one kernel's code, but not the bindings."""
    g = GraphBuilder("roles")
    _row_chain(g, "a", "w" * 12 + "x" * 10)
    _row_chain(g, "b", "x" * 10 + "w" * 12)
    model = g.build()
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path, tuning=False)
    names = [launch["kernel"] for launch in describe_launches(tmp_path)["launches"]]
    assert names[1] == f"{names[0]}_for_1"
    inputs = random_inputs(model, 5)
    ran = simulate_program(program, tmp_path, inputs)
    assert ran.outputs is not None
    for output, expected in zip(ran.outputs, float64_reference(model, inputs), strict=True):
        assert relative_error(output, expected) <= tolerance(np.float32)


def _product(rows: int, terms: int, columns: int, *, weights: int = 0, inputs: int = 0) -> onnx.ModelProto:
    """Builds a product followed by ops with vectors."""
    g = GraphBuilder("product")
    half = TensorProto.FLOAT16
    matrix = g.rng.standard_normal((terms, columns)) / np.sqrt(terms)
    value = g.op("MatMul", g.input("x", (rows, terms), half), g.constant(matrix.astype(np.float16)))
    for number in range(weights):
        vector = g.constant(g.rng.standard_normal(columns).astype(np.float16))
        value = g.op("Add" if number % 2 else "Mul", value, vector)
    for number in range(inputs):
        value = g.op("Add", value, g.input(f"r{number}", (columns,), half))
    g.output(g.op("Relu", value), (rows, columns), half)
    return g.build()


def test_images_lie_behind_other_weights(tmp_path: Path) -> None:
    """A large weight is counted before it is packed in swizzled tiles."""
    model = _product(4096, 1000, 1004, weights=1, inputs=13)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path, tuning=False)
    (part,) = program.plan.kernels[0].groups
    assert len(part.tensors) > _MOST
    assert any(tensor.layout for tensor in part.tensors)
    (launch,) = describe_launches(tmp_path)["launches"]
    assert len(launch["inputs"]) + len(launch["outputs"]) <= _MOST


def test_partial_sums_find_a_binding(tmp_path: Path) -> None:
    """Workgroups that share tiles hand partial sums to each other, which needs one tensor more than the 16
    bindings."""
    model = _product(1024, 4096, 1280, weights=13)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path, tuning=False)
    (part,) = program.plan.kernels[0].groups
    assert part.steps > 0
    (launch,) = describe_launches(tmp_path)["launches"]
    assert launch["workgroups"] == part.workgroups
