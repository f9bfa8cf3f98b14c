"""Small programs that IREE's importer and compiler get wrong on their own, each with the results that it must have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A model, as ONNX or as MLIR, with inputs and expected results."""

    model: onnx.ModelProto | str
    inputs: Sequence[Array]
    expected: Sequence[Array]
    tolerance: float = 0.0
    """Largest difference of a right result, relative to the largest magnitude expected."""
    flags: tuple[str, ...] = ()
    """Flags that IREE's compiler needs for the fault."""


def _onnx(
    nodes: Sequence[NodeProto],
    inputs: dict[str, Array],
    expected: dict[str, Array],
    *,
    constants: dict[str, Array] | None = None,
    tolerance: float = 0.0,
    opset: int = 20,
    dims: Mapping[str, Sequence[int | str]] | None = None,
    flags: tuple[str, ...] = (),
) -> Evidence:
    shapes: dict[str, Sequence[int | str]] = {
        **{name: a.shape for name, a in {**inputs, **expected}.items()},
        **(dims or {}),
    }

    def described(name: str, array: Array) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shapes[name])

    graph = helper.make_graph(
        list(nodes),
        "fault",
        [described(*each) for each in inputs.items()],
        [described(*each) for each in expected.items()],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return Evidence(
        model=model,
        inputs=[*inputs.values()],
        expected=[*expected.values()],
        tolerance=tolerance,
        flags=flags,
    )


def _f32(*values: float) -> Array:
    return np.array(values, np.float32)


_X = _f32(1, np.nan, -2, np.nan)


def extremum_of_nan() -> Evidence:
    y = _f32(np.nan, 3, -5, np.nan)
    node = helper.make_node("Max", ["x", "y"], ["r"])
    return _onnx([node], {"x": _X, "y": y}, {"r": np.maximum(_X, y)})


def clip_of_nan() -> Evidence:
    node = helper.make_node("Clip", ["x", "low", "high"], ["r"])
    bounds = {"low": np.float32(-1), "high": np.float32(1)}
    constants = {name: np.asarray(value) for name, value in bounds.items()}
    return _onnx([node], {"x": _X}, {"r": np.clip(_X, -1, 1)}, constants=constants)


def sign_of_nan() -> Evidence:
    return _onnx([helper.make_node("Sign", ["x"], ["r"])], {"x": _X}, {"r": np.sign(_X)})


def equal_to_itself() -> Evidence:
    nodes = [helper.make_node("Equal", ["x", "x"], ["e"]), helper.make_node("Not", ["e"], ["r"])]
    return _onnx(nodes, {"x": _X}, {"r": np.isnan(_X)})


def negative_integers() -> Evidence:
    x = np.array([2**24 + 1, 2**31 - 1, 5], np.int32)
    return _onnx([helper.make_node("Neg", ["x"], ["r"])], {"x": x}, {"r": -x})


def powers_of_integers() -> Evidence:
    x, e = np.array([-3, 2, -1], np.int32), np.array([3, 4, 5], np.int32)
    return _onnx([helper.make_node("Pow", ["x", "e"], ["r"])], {"x": x, "e": e}, {"r": x**e})


def gelu_by_tanh() -> Evidence:
    x = np.linspace(-4, 4, 65).astype(np.float32)
    wide = x.astype(np.float64)
    r = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    node = helper.make_node("Gelu", ["x"], ["r"], approximate="tanh")
    return _onnx([node], {"x": x}, {"r": r.astype(np.float32)}, tolerance=2e-6)


def mean_of_f16() -> Evidence:
    x = np.full((2, 1024), 100, np.float16)
    node = helper.make_node("ReduceMean", ["x", "axes"], ["r"], keepdims=0)
    constants = {"axes": np.array([1])}
    return _onnx([node], {"x": x}, {"r": np.full(2, 100, np.float16)}, constants=constants, tolerance=1e-2)


def truth_of_subnormals() -> Evidence:
    x = _f32(0, -0.0, 1e-45, -1e-40, 1, np.nan)
    node = helper.make_node("Cast", ["x"], ["r"], to=TensorProto.BOOL)
    return _onnx([node], {"x": x}, {"r": (x.view(np.uint32) << 1) != 0})


def divided_padding() -> Evidence:
    x, factors = np.arange(-5, 6)[:, None], np.array([[0, 0, 0, -2, 1]])
    divisors = np.array([5, 3, 1, 5, 1])
    nodes = [helper.make_node("MatMul", ["x", "b"], ["z"]), helper.make_node("Mod", ["z", "c"], ["y"])]
    return _onnx(nodes, {"x": x}, {"y": (x @ factors) % divisors}, constants={"b": factors, "c": divisors})


def log_sum_exp() -> Evidence:
    x = np.full((2, 4), 100, np.float32)
    node = helper.make_node("ReduceLogSumExp", ["x", "axes"], ["r"], keepdims=0)
    r = np.full(2, 100 + np.log(4), np.float32)
    return _onnx([node], {"x": x}, {"r": r}, constants={"axes": np.array([1])}, tolerance=1e-6)


def normalized_zeros() -> Evidence:
    x = np.zeros((2, 3), np.float32)
    node = helper.make_node("LpNormalization", ["x"], ["r"], axis=1, p=2)
    return _onnx([node], {"x": x}, {"r": x})


def depth_to_space() -> Evidence:
    x = np.arange(12 * 2 * 3, dtype=np.float32).reshape(1, 12, 2, 3)
    r = x.reshape(1, 3, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 3, 4, 6)
    node = helper.make_node("DepthToSpace", ["x"], ["r"], blocksize=2, mode="CRD")
    return _onnx([node], {"x": x}, {"r": r})


def zero_points_of_rows() -> Evidence:
    a, b = np.arange(6, dtype=np.uint8).reshape(2, 3), np.arange(6, dtype=np.uint8).reshape(3, 2)
    zero = np.array([1, 5], np.uint8)
    node = helper.make_node("MatMulInteger", ["a", "b", "z"], ["r"])
    r = (a.astype(np.int32) - zero[:, None].astype(np.int32)) @ b.astype(np.int32)
    return _onnx([node], {"a": a, "b": b}, {"r": r}, constants={"z": zero})


def padded_by_wrapping() -> Evidence:
    x = np.arange(64 * 48, dtype=np.float32).reshape(1, 1, 64, 48)
    node = helper.make_node("Pad", ["x", "pads"], ["r"], mode="wrap")
    r = np.pad(x, ((0, 0), (0, 0), (7, 7), (7, 7)), mode="wrap")
    return _onnx([node], {"x": x}, {"r": r}, constants={"pads": np.array([0, 0, 7, 7, 0, 0, 7, 7])})


def removing_pad() -> Evidence:
    node = helper.make_node("Pad", ["x", "amounts"], ["r"])
    amounts = {"amounts": np.array([1, -1])}
    return _onnx([node], {"x": _f32(1, 2)}, {"r": _f32(0, 1)}, constants=amounts)


def pads_set_apart() -> Evidence:
    x = np.ones((1, 1, 1), np.float32)
    constants = {"amounts": np.array([0, 0, 4, 0, 0, 1]), "w": np.ones((1, 1, 1), np.float32)}
    nodes = [
        helper.make_node("Pad", ["x", "amounts"], ["padded"]),
        helper.make_node("ConvTranspose", ["padded", "w"], ["r"], strides=[3]),
    ]
    expected = np.zeros((1, 1, 16), np.float32)
    expected[0, 0, 12] = 1
    return _onnx(nodes, {"x": x}, {"r": expected}, constants=constants)


def one_window() -> Evidence:
    x = np.array([[[[1, 2]]]], np.float32)
    node = helper.make_node("MaxPool", ["x"], ["r"], kernel_shape=[1, 2], pads=[0, 1, 0, 1], strides=[1, 3])
    return _onnx([node], {"x": x}, {"r": x[..., :1]}, dims={"x": ["n", 1, 1, 2], "r": ["n", 1, 1, 1]})


def determinant() -> Evidence:
    x = np.array([[0, 1], [1, 0]], np.float32)
    return _onnx([helper.make_node("Det", ["x"], ["r"])], {"x": x}, {"r": np.array(-1, np.float32)})


def lengths_of_sequences() -> Evidence:
    x = np.ones((3, 2, 1), np.float32)
    constants = {
        "w": np.ones((1, 1, 1), np.float32),
        "r": np.zeros((1, 1, 1), np.float32),
        "b": np.zeros((1, 2), np.float32),
        "lengths": np.array([1, 3], np.int32),
    }
    node = helper.make_node("RNN", ["x", "w", "r", "b", "lengths"], ["y"], hidden_size=1)
    y = np.full((3, 1, 2, 1), np.tanh(1), np.float32)
    y[1:, 0, 0] = 0
    return _onnx([node], {"x": x}, {"y": y}, constants=constants, tolerance=1e-6)


def quotient_of_unsigned() -> Evidence:
    x, y = np.array([200, 255, 7], np.uint8), np.array([3, 2, 2], np.uint8)
    return _onnx([helper.make_node("Div", ["x", "y"], ["r"])], {"x": x, "y": y}, {"r": x // y})


def einsum_without_result() -> Evidence:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    return _onnx([helper.make_node("Einsum", ["x"], ["r"], equation="ji")], {"x": x}, {"r": x.T.copy()})


def tanh_of_doubles() -> Evidence:
    x = np.linspace(-1, 1, 5)
    return _onnx(
        [helper.make_node("Tanh", ["x"], ["r"])],
        {"x": x},
        {"r": np.tanh(x)},
        tolerance=1e-12,
        flags=("--iree-input-demote-f64-to-f32=false",),
    )


def scan_backwards() -> Evidence:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["o"])],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("s", "e")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("t", "o")],
    )
    node = helper.make_node(
        "Scan", ["start", "x"], ["last", "r"], body=body, num_scan_inputs=1, scan_input_directions=[1]
    )
    x = _f32(1, 2, 4).reshape(3, 1)
    sums = np.cumsum(x[::-1], 0)
    return _onnx([node], {"x": x}, {"last": sums[-1], "r": sums}, constants={"start": _f32(0)})


def loop_that_ends_early() -> Evidence:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "one"], ["t"]),
            helper.make_node("Less", ["t", "three"], ["go"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("go", TensorProto.BOOL, [1]),
            helper.make_tensor_value_info("t", TensorProto.FLOAT, [1]),
        ],
    )
    node = helper.make_node("Loop", ["most", "yes", "x"], ["r"], body=body)
    constants = {
        "one": _f32(1),
        "three": _f32(3),
        "most": np.array(10),
        "yes": np.array(True),
    }
    return _onnx([node], {"x": _f32(0)}, {"r": _f32(3)}, constants=constants)


def nearest_ties() -> Evidence:
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
    grid = np.array([[-0.5, 0], [0.0, 0]], np.float32).reshape(1, 1, 2, 2)
    node = helper.make_node("GridSample", ["x", "grid"], ["r"], mode="nearest", align_corners=0)
    # The positions are 0.5 and 1.5, which round to the even 0 and 2.
    return _onnx([node], {"x": x, "grid": grid}, {"r": _f32(0, 2).reshape(1, 1, 1, 2)})


def indices_of_maxima() -> Evidence:
    x = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    node = helper.make_node("MaxPool", ["x"], ["r", "at"], kernel_shape=[2, 2])
    at = np.array([3, 7]).reshape(1, 2, 1, 1)
    return _onnx([node], {"x": x}, {"r": _f32(3, 7).reshape(1, 2, 1, 1), "at": at})


def reshaped_to_the_rest() -> Evidence:
    x, shape = np.arange(6, dtype=np.float32), np.array([2, -1])
    node = helper.make_node("Reshape", ["x", "shape"], ["r"])
    dims = {"r": ["a", "b"]}
    return _onnx([node], {"x": x, "shape": shape}, {"r": x.reshape(2, 3)}, dims=dims)


def merged_open_dims() -> Evidence:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    dims: dict[str, Sequence[int | str]] = {"x": ["b", "i", 4], "r": [1, "rows", 4]}
    node = helper.make_node("Reshape", ["x", "shape"], ["r"])
    constants = {"shape": np.array([1, -1, 4])}
    return _onnx([node], {"x": x}, {"r": x.reshape(1, 6, 4)}, constants=constants, dims=dims)


def dynamic_rows_in_tiles() -> Evidence:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "t"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "x"], ["mixed"]),
        helper.make_node("Add", ["mixed", "x"], ["r"]),
    ]
    x = np.random.default_rng(5).standard_normal((3, 131, 16)).astype(np.float32)
    wide = x.astype(np.float64)
    scores = wide @ wide.transpose(0, 2, 1)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    r = (p / p.sum(-1, keepdims=True) @ wide + wide).astype(np.float32)
    dims: dict[str, Sequence[int | str]] = {name: ["batch", "rows", 16] for name in "xr"}
    flags = ("--iree-opt-data-tiling",)
    return _onnx(nodes, {"x": x}, {"r": r}, dims=dims, tolerance=2e-5, flags=flags)


def gelu_of_torch() -> Evidence:
    x = np.linspace(-4, 4, 65).astype(np.float32)
    wide = x.astype(np.float64)
    r = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    text = """
func.func @main(%x: !torch.vtensor<[65],f32>) -> !torch.vtensor<[65],f32> {
  %form = torch.constant.str "tanh"
  %y = torch.aten.gelu %x, %form : !torch.vtensor<[65],f32>, !torch.str -> !torch.vtensor<[65],f32>
  return %y : !torch.vtensor<[65],f32>
}
"""
    return Evidence(model=text, inputs=[x], expected=[r.astype(np.float32)], tolerance=2e-6)


def slice_from_behind() -> Evidence:
    x = _f32(1, 2, 3)
    bounds = {"start": 2**63 - 1, "end": -(2**63) + 1, "axis": 0, "step": -1}
    return _onnx(
        [helper.make_node("Slice", ["x", *bounds], ["r"])],
        {"x": x},
        {"r": x[::-1]},
        constants={name: np.array([bound]) for name, bound in bounds.items()},
        dims={"x": ["n"], "r": ["n"]},
    )


def weighted_embedding_bag() -> Evidence:
    text = """
func.func @main(%table: !torch.vtensor<[2,1],f32>, %rows: !torch.vtensor<[1],si64>, %offsets: !torch.vtensor<[1],si64>,
                %weights: !torch.vtensor<[1],f32>) -> !torch.vtensor<[1,1],f32> {
  %false = torch.constant.bool false
  %sum = torch.constant.int 0
  %no_padding = torch.constant.none
  %bags:4 = torch.aten.embedding_bag.padding_idx
      %table, %rows, %offsets, %false, %sum, %false, %weights, %false, %no_padding
    : !torch.vtensor<[2,1],f32>, !torch.vtensor<[1],si64>, !torch.vtensor<[1],si64>, !torch.bool, !torch.int,
      !torch.bool, !torch.vtensor<[1],f32>, !torch.bool, !torch.none
    -> !torch.vtensor<[1,1],f32>, !torch.vtensor<[0],si64>, !torch.vtensor<[1],si64>, !torch.vtensor<[1],si64>
  return %bags#0 : !torch.vtensor<[1,1],f32>
}
"""
    inputs = [np.array([[1], [2]], np.float32), np.array([1]), np.array([0]), _f32(0.5)]
    return Evidence(model=text, inputs=inputs, expected=[np.array([[1]], np.float32)])


def negative_integers_of_torch() -> Evidence:
    text = """
func.func @main(%x: !torch.vtensor<[1],si32>) -> !torch.vtensor<[1],si32> {
  %y = torch.aten.neg %x : !torch.vtensor<[1],si32> -> !torch.vtensor<[1],si32>
  return %y : !torch.vtensor<[1],si32>
}
"""
    x = np.array([2**24 + 1], np.int32)
    return Evidence(model=text, inputs=[x], expected=[-x])


def quotients_of_integers() -> Evidence:
    text = """
func.func @main(%x: !torch.vtensor<[1],si64>, %y: !torch.vtensor<[1],si64>) -> !torch.vtensor<[1],si64> {
  %r = torch.aten.floor_divide %x, %y
    : !torch.vtensor<[1],si64>, !torch.vtensor<[1],si64> -> !torch.vtensor<[1],si64>
  return %r : !torch.vtensor<[1],si64>
}
"""
    x, y = np.array([2**62]), np.array([3])
    return Evidence(model=text, inputs=[x, y], expected=[x // y])


def whole_number_beside_a_constant() -> Evidence:
    text = """
func.func @main(%x: !torch.vtensor<[1],i1>) -> !torch.vtensor<[1],i1> {
  %number = torch.vtensor.literal(dense<-2.0> : tensor<1xf64>) : !torch.vtensor<[1],f64>
  %zero = torch.constant.int 0
  %less = torch.aten.lt.Scalar %number, %zero : !torch.vtensor<[1],f64>, !torch.int -> !torch.vtensor<[1],i1>
  %r = torch.aten.logical_and %less, %x : !torch.vtensor<[1],i1>, !torch.vtensor<[1],i1> -> !torch.vtensor<[1],i1>
  return %r : !torch.vtensor<[1],i1>
}
"""
    return Evidence(model=text, inputs=[np.array([True])], expected=[np.array([True])])


def running_logarithms_of_sums() -> Evidence:
    text = """
func.func @main(%x: !torch.vtensor<[1],f32>) -> !torch.vtensor<[1],f32> {
  %dim = torch.constant.int 0
  %y = torch.aten.logcumsumexp %x, %dim : !torch.vtensor<[1],f32>, !torch.int -> !torch.vtensor<[1],f32>
  return %y : !torch.vtensor<[1],f32>
}
"""
    return Evidence(model=text, inputs=[_f32(1000)], expected=[_f32(1000)])


def order_of_equal_elements() -> Evidence:
    text = """
func.func @main(%x: tensor<3xi32>, %at: tensor<3xi32>) -> tensor<3xi32> {
  %sorted:2 = "stablehlo.sort"(%x, %at) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>)
  return %sorted#1 : tensor<3xi32>
}
"""
    order = np.arange(3, dtype=np.int32)
    return Evidence(model=text, inputs=[np.array([0, 0, 1], np.int32), order], expected=[order])


def place_of_nan() -> Evidence:
    text = """
func.func @main(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[],si64> {
  %dim = torch.constant.int 0
  %false = torch.constant.bool false
  %value, %place = torch.aten.max.dim %x, %dim, %false
    : !torch.vtensor<[2],f32>, !torch.int, !torch.bool -> !torch.vtensor<[],f32>, !torch.vtensor<[],si64>
  return %place : !torch.vtensor<[],si64>
}
"""
    return Evidence(model=text, inputs=[_f32(1, np.nan)], expected=[np.array(1)])


def elu_of_small_numbers() -> Evidence:
    x = _f32(-1e-9, -1e-8)
    return _onnx([helper.make_node("Elu", ["x"], ["r"])], {"x": x}, {"r": x}, tolerance=1e-6)


def selu_at_infinity() -> Evidence:
    node = helper.make_node("Selu", ["x"], ["r"])
    return _onnx([node], {"x": _f32(-np.inf, 1)}, {"r": _f32(-1.7580993, 1.050701)}, tolerance=1e-6)
