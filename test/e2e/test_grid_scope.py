"""Tests of kernels with grid barriers on the simulated device: every block arrives, and the numbers are right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto, helper
from tilewright.reference.oracle import float64_reference

Array = np.ndarray[Any, Any]


def simulate_kernels(program: tilewright.Program, folder: Path, x: Array) -> tuple[list[Array], Any]:
    """Returns the bindings of the only kernel after it has run on its input, and the report of the simulated
    device."""
    (kernel,) = program.kernels
    text = next((folder / "passes").rglob("*tile-wrap-cuda-abi.mlir")).read_text()
    given = int(re.findall(r"tile\.block_bytes = (\d+)", text)[0]) if "tile_dynamic_shared" in text else 0
    sizes = [
        int(size) for size in re.findall(r"tile\.binding_bytes = array<i64: ([\d, ]+)>", text)[0].split(",")
    ]
    inputs = [size for size in sizes if size == x.nbytes]
    bindings = [x for _ in inputs] + [np.zeros(size, np.uint8) for size in sizes[len(inputs) :]]
    outputs = list(range(len(inputs), len(sizes)))
    report = tilewright.simulate(
        text,
        kernel.name,
        (kernel.workgroups,),
        bindings,
        empty=outputs,
        dynamic_shared_bytes=given,
        target="cuda:h200",
    )
    report.check()
    return bindings, report


def model_of(
    shape: list[int], nodes: list[onnx.NodeProto], out: list[int], kind: int, **constants: Any
) -> Any:
    graph = helper.make_graph(
        nodes,
        "kernel",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", kind, out)],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


ROW = [1, 262144]
IMAGES = [8, 28, 28, 64]
ODD = [27, 21, 35, 65]


def reduce_row(op: str) -> onnx.ModelProto:
    node = helper.make_node(op, ["x", "axes"], ["y"], keepdims=0)
    return model_of(ROW, [node], [1], TensorProto.FLOAT, axes=[1])


def reduce_odd() -> onnx.ModelProto:
    node = helper.make_node("ReduceSumSquare", ["x", "axes"], ["y"], keepdims=0)
    return model_of(ODD, [node], [65], TensorProto.FLOAT, axes=[0, 1, 2])


def deviations() -> onnx.ModelProto:
    """Computes the variance of every channel over a batch of images."""
    nodes = [
        helper.make_node("ReduceMean", ["x", "axes"], ["m"], keepdims=1),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Mul", ["d", "d"], ["s"]),
        helper.make_node("ReduceMean", ["s", "axes"], ["y"], keepdims=0),
    ]
    return model_of(IMAGES, nodes, [64], TensorProto.FLOAT, axes=[0, 1, 2])


CASES = {
    "sum": (reduce_row("ReduceSum"), ROW),
    "max": (reduce_row("ReduceMax"), ROW),
    "odd sizes": (reduce_odd(), ODD),
    "argmax": (
        model_of(ROW, [helper.make_node("ArgMax", ["x"], ["y"], axis=1)], [1, 1], TensorProto.INT64),
        ROW,
    ),
    "variance": (deviations(), IMAGES),
}


@pytest.mark.parametrize("case", CASES)
def test_two_phases_in_one_kernel(case: str, tmp_path: Path) -> None:
    model, shape = CASES[case]
    x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    program = tilewright.compile(model, target="cuda:h200", dump_dir=tmp_path, strict=True)
    bindings, report = simulate_kernels(program, tmp_path, x)
    phases = max(part.phase for part in program.kernels[0].groups)
    assert phases >= 1
    assert report.grid_barriers == phases
    (expected,) = float64_reference(model, [x])
    wanted = np.asarray(expected)
    assert program.signature is not None
    result = bindings[-1].view(program.signature.outputs[0].numpy_dtype).reshape(wanted.shape)
    np.testing.assert_allclose(
        result.astype(np.float64), wanted.astype(np.float64), rtol=4e-6, atol=4e-6 * np.abs(wanted).mean()
    )
