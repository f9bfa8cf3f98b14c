"""Small ONNX models with open dims, written as exporters write them: shapes are computed in the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from conftest import make_model, value
from onnx import helper
from tilewright.reference.oracle import float64_reference, model_tolerance, relative_error

Array = np.ndarray[Any, Any]

WIDTH, HEADS = 24, 3
_PER_HEAD = WIDTH // HEADS


def _weights(*names: str, rows: int = WIDTH, columns: int = WIDTH) -> dict[str, Array]:
    rng = np.random.default_rng(len(names) + rows)
    return {name: rng.normal(0, rows**-0.5, (rows, columns)).astype(np.float32) for name in names}


def _vectors(*names: str, length: int = WIDTH) -> dict[str, Array]:
    rng = np.random.default_rng(length)
    return {name: rng.normal(1, 0.1, length).astype(np.float32) for name in names}


def layer_norm() -> onnx.ModelProto:
    nodes = [helper.make_node("LayerNormalization", ["x", "scale", "shift"], ["y"], axis=-1)]
    shape = ["batch", "seq", WIDTH]
    return make_model(nodes, [value("x", shape)], [value("y", shape)], _vectors("scale", "shift"))


def mlp() -> onnx.ModelProto:
    """Two layers on an input whose first dim has no name."""
    nodes = [
        helper.make_node("MatMul", ["x", "up"], ["wide"]),
        helper.make_node("Relu", ["wide"], ["active"]),
        helper.make_node("MatMul", ["active", "down"], ["y"]),
    ]
    constants = _weights("up", columns=2 * WIDTH) | _weights("down", rows=2 * WIDTH)
    model = make_model(nodes, [value("x", ["rows", WIDTH])], [value("y", ["rows", WIDTH])], constants)
    for tensor in (model.graph.input[0], model.graph.output[0]):
        tensor.type.tensor_type.shape.dim[0].Clear()
    return model


def encoder() -> onnx.ModelProto:
    """An encoder layer with a mask: attention whose heads are split by computed shapes, and a feed-forward part."""
    constants: dict[str, Array] = {
        "zero": np.array(0),
        "one": np.array(1),
        "axes": np.array([0]),
        "mask_axes": np.array([1, 2]),
        "heads": np.array([HEADS]),
        "per_head": np.array([_PER_HEAD]),
        "width": np.array([WIDTH]),
        "root": np.array(_PER_HEAD**0.5, np.float32),
        "lowest": np.array(-1e4, np.float32),
        "unit": np.array(1.0, np.float32),
    }
    constants |= _weights("wq", "wk", "wv", "wo") | _vectors("s1", "b1", "s2", "b2")
    constants |= _weights("up", columns=2 * WIDTH) | _weights("down", rows=2 * WIDTH)
    make = helper.make_node
    nodes = [
        make("Shape", ["x"], ["shape"]),
        make("Gather", ["shape", "zero"], ["batch"]),
        make("Gather", ["shape", "one"], ["seq"]),
        make("Unsqueeze", ["batch", "axes"], ["batch1"]),
        make("Unsqueeze", ["seq", "axes"], ["seq1"]),
        make("Concat", ["batch1", "seq1", "heads", "per_head"], ["split"], axis=0),
        make("Concat", ["batch1", "seq1", "width"], ["joined"], axis=0),
    ]
    for name, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [
            make("MatMul", ["x", f"w{name}"], [f"{name}_flat"]),
            make("Reshape", [f"{name}_flat", "split"], [f"{name}_split"]),
            make("Transpose", [f"{name}_split"], [name], perm=perm),
        ]
    nodes += [
        make("MatMul", ["q", "k"], ["raw"]),
        make("Div", ["raw", "root"], ["scores"]),
        make("Unsqueeze", ["mask", "mask_axes"], ["mask4"]),
        make("Sub", ["unit", "mask4"], ["hidden"]),
        make("Mul", ["hidden", "lowest"], ["penalty"]),
        make("Add", ["scores", "penalty"], ["masked"]),
        make("Softmax", ["masked"], ["weights"], axis=-1),
        make("MatMul", ["weights", "v"], ["context"]),
        make("Transpose", ["context"], ["rows"], perm=[0, 2, 1, 3]),
        make("Reshape", ["rows", "joined"], ["merged"]),
        make("MatMul", ["merged", "wo"], ["attended"]),
        make("Add", ["attended", "x"], ["sum1"]),
        make("LayerNormalization", ["sum1", "s1", "b1"], ["norm1"], axis=-1),
        make("MatMul", ["norm1", "up"], ["wide"]),
        make("Gelu", ["wide"], ["active"]),
        make("MatMul", ["active", "down"], ["narrow"]),
        make("Add", ["narrow", "norm1"], ["sum2"]),
        make("LayerNormalization", ["sum2", "s2", "b2"], ["y"], axis=-1),
    ]
    shape = ["batch", "seq", WIDTH]
    inputs = [value("x", shape), value("mask", ["batch", "seq"])]
    return make_model(nodes, inputs, [value("y", shape)], constants, name="encoder")


def inputs_of(model: onnx.ModelProto, *sizes: int) -> list[Array]:
    """Returns inputs whose open dims have these sizes, in the order in which they first occur."""
    rng = np.random.default_rng(sum(sizes))
    known: dict[str, int] = {}
    left = iter(sizes)
    arrays = []
    for tensor in model.graph.input:
        shape = []
        for axis, dim in enumerate(tensor.type.tensor_type.shape.dim):
            name = dim.dim_param or f"{tensor.name}.{axis}"
            if not dim.HasField("dim_value") and name not in known:
                known[name] = next(left)
            shape.append(dim.dim_value if dim.HasField("dim_value") else known[name])
        is_mask = tensor.name == "mask"
        array = (
            (rng.random(shape) < 0.7) | (np.arange(shape[-1]) == 0) if is_mask else rng.standard_normal(shape)
        )
        arrays.append(array.astype(np.float32))
    return arrays


def assert_right(model: onnx.ModelProto, inputs: list[Array], outputs: list[Array]) -> None:
    """Checks outputs against float64, with the tolerance of the model's types (see `oracle`)."""
    for output, wanted in zip(outputs, float64_reference(model, inputs), strict=True):
        assert output.shape == wanted.shape
        assert relative_error(output, wanted) <= model_tolerance(model)
