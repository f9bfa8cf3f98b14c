"""Tests of convolutions and pools in GPU kernels on the simulated device: numbers against float64, traffic, safety."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from simulated_convolutions import Case, simulated
from simulated_products import DTYPES, TYPES, assert_near
from tilewright.reference.oracle import float64_reference, random_inputs
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.lands(one_in=6)


_SAME = (1, 1, 1, 1)
_CASES = {
    "3x3": Case(pads=_SAME),
    "3x3 odd": Case(channels=13, filters=27, pads=_SAME),
    "3x3 f32": Case(pads=_SAME, element="f32"),
    "3x3 odd f32": Case(channels=5, filters=7, pads=_SAME, element="f32"),
    "3x3 bf16": Case(pads=_SAME, element="bf16"),
    "3x3 stride 2": Case(stride=2, pads=_SAME),
    "3x3 stride 2, batch": Case(batch=3, stride=2, pads=_SAME, image=(7, 6)),
    "5x5 dilated": Case(window=(5, 5), dilation=2, pads=(4, 4, 4, 4)),
    "pads at one side": Case(pads=(0, 2, 1, 0), stride=2),
    "1x1": Case(window=(1, 1)),
    "1x1 stride 2": Case(window=(1, 1), stride=2),
    "1x1 to one point": Case(window=(1, 1), image=(1, 1), channels=40),
    "1x1 of four channels to one point": Case(window=(1, 1), image=(1, 1), channels=4),
    "stem": Case(channels=3, window=(7, 7), image=(20, 22), stride=2, pads=(3, 3, 3, 3)),
    "the whole image": Case(window=(9, 11)),
    "groups": Case(channels=32, filters=48, groups=2, pads=_SAME),
    "groups of few channels": Case(channels=12, filters=12, groups=4, pads=_SAME, element="f32"),
    "depthwise": Case(channels=24, filters=24, groups=0, pads=_SAME),
    "depthwise stride 2 f32": Case(
        channels=5, filters=5, groups=0, window=(5, 5), stride=2, pads=(2,) * 4, element="f32"
    ),
    "depthwise, two filters": Case(channels=6, filters=12, groups=0, pads=_SAME, element="f32"),
    "line": Case(image=(37,), window=(3,), pads=(1, 1)),
    "volume": Case(image=(5, 6, 7), window=(3, 3, 3), channels=8, pads=(1,) * 6),
    "transposed": Case(is_transposed=True, stride=2, window=(3, 3), pads=_SAME, image=(5, 6)),
    "transposed f32": Case(
        is_transposed=True, stride=2, window=(2, 2), channels=7, filters=9, image=(5, 6), element="f32"
    ),
}


@pytest.mark.parametrize("name", _CASES)
def test_convolutions(name: str, tmp_path: Path) -> None:
    case = _CASES[name]
    model, inputs = case.model(), case.inputs()
    _, ran = simulated(model, inputs, tmp_path)
    assert_near(ran.outputs, model, inputs, case.element)


@pytest.mark.parametrize(
    "name", ["3x3", "3x3 odd", "3x3 bf16", "3x3 stride 2", "1x1 stride 2", "groups", "line"]
)
def test_tensor_cores_multiply_narrow_floats(name: str, tmp_path: Path) -> None:
    program, ran = simulated(_CASES[name].model(), _CASES[name].inputs(), tmp_path)
    (label,) = {op.micro_kernel for kernel in program.kernels for op in kernel.ops if op.micro_kernel}
    assert label.startswith(("mma_sync", "wgmma"))
    assert sum(kernel.instructions.tensor for kernel in ran.kernels) > 0


def test_windows_are_not_stored(tmp_path: Path) -> None:
    case = Case(image=(28, 28), channels=32, filters=32, pads=_SAME)
    inputs = case.inputs()
    _, ran = simulated(case.model(), inputs, tmp_path)
    moved = sum(kernel.dram_bytes_read + kernel.dram_bytes_written for kernel in ran.kernels)
    assert moved <= 1.1 * (sum(array.nbytes for array in inputs) + inputs[0].nbytes)


@pytest.mark.parametrize("channels", [16, 13])
@pytest.mark.parametrize("element", ["f16", "f32"])
def test_channels_last(channels: int, element: str, tmp_path: Path) -> None:
    """The channels of a window's point are contiguous, and copied 16 bytes at a time if their number allows it."""
    case = replace(_CASES["3x3 stride 2"], channels=channels, image=(10, 12), element=element)
    image, weights, _ = case.inputs()
    text = f"""
func.func @main(%x: tensor<1x10x12x{channels}x{element}>, %w: tensor<3x3x{channels}x24x{element}>)
    -> tensor<1x5x6x24xf32> {{
  %zero = arith.constant 0.0 : {element}
  %start = arith.constant dense<0.0> : tensor<1x5x6x24xf32>
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {{
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : {element}
  }} : tensor<1x10x12x{channels}x{element}> to tensor<1x12x14x{channels}x{element}>
  %y = linalg.conv_2d_nhwc_hwcf {{strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}
      ins(%padded, %w : tensor<1x12x14x{channels}x{element}>, tensor<3x3x{channels}x24x{element}>)
      outs(%start : tensor<1x5x6x24xf32>) -> tensor<1x5x6x24xf32>
  return %y : tensor<1x5x6x24xf32>
}}
"""
    arrays = [
        np.ascontiguousarray(image.transpose(0, 2, 3, 1)),
        np.ascontiguousarray(weights.transpose(2, 3, 1, 0)),
    ]
    program = tilewright.compile(text, "cuda:h200", dump_dir=tmp_path)
    ran = simulate_program(program, tmp_path, arrays)
    assert ran.outputs is not None
    wide = [image, weights, np.zeros(24, image.dtype)]
    model = replace(case, element="f32").model()
    (expected,) = float64_reference(_without_relu(model), [array.astype(np.float32) for array in wide])
    np.testing.assert_allclose(
        ran.outputs[0], expected.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-4 * np.abs(expected).mean()
    )


def _without_relu(model: onnx.ModelProto) -> onnx.ModelProto:
    relu = model.graph.node[-1]
    model.graph.node[-2].output[0] = relu.output[0]
    del model.graph.node[-1]
    return model


def test_quantised_convolutions_are_products_of_bytes(tmp_path: Path) -> None:
    g = GraphBuilder("bytes")
    x = g.input("x", (1, 16, 9, 11), onnx.TensorProto.UINT8)
    w = g.input("w", (24, 16, 3, 3), onnx.TensorProto.INT8)
    zero = g.constant(np.array(117, np.uint8))
    y = g.op("ConvInteger", x, w, zero, pads=[1] * 4, kernel_shape=[3, 3])
    g.output(y, (1, 24, 9, 11), onnx.TensorProto.INT32)
    rng = np.random.default_rng(5)
    inputs = [
        rng.integers(0, 256, (1, 16, 9, 11)).astype(np.uint8),
        rng.integers(-128, 128, (24, 16, 3, 3)).astype(np.int8),
    ]
    model = g.build()
    _, ran = simulated(model, inputs, tmp_path)
    assert ran.outputs is not None
    np.testing.assert_array_equal(ran.outputs[0], float64_reference(model, inputs)[0])


@pytest.mark.parametrize(
    ("op", "attributes", "size"),
    [
        ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}, (5, 6)),
        ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, (5, 6)),
        ("MaxPool", {"kernel_shape": [3, 2], "dilations": [2, 1]}, (5, 10)),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1] * 4}, (9, 11)),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}, (9, 11)),
        ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, (5, 6)),
        ("GlobalAveragePool", {}, (1, 1)),
        ("GlobalMaxPool", {}, (1, 1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_pools(
    op: str, attributes: dict[str, object], size: tuple[int, int], element: str, tmp_path: Path
) -> None:
    g = GraphBuilder("pool")
    x = g.input("x", (2, 5, 9, 11), TYPES[element])
    g.output(g.op(op, x, **attributes), (2, 5, *size), TYPES[element])  # type: ignore[arg-type]
    inputs = [np.random.default_rng(3).standard_normal((2, 5, 9, 11)).astype(DTYPES[element])]
    model = g.build()
    _, ran = simulated(model, inputs, tmp_path)
    assert_near(ran.outputs, model, inputs, element)


@pytest.mark.parametrize("size", [(18, 22), (14, 17), (4, 7)])
@pytest.mark.parametrize(
    ("mode", "coordinates"),
    [
        ("nearest", "half_pixel"),
        ("linear", "half_pixel"),
        ("linear", "align_corners"),
        ("cubic", "half_pixel"),
    ],
)
def test_resizing(mode: str, coordinates: str, size: tuple[int, int], tmp_path: Path) -> None:
    g = GraphBuilder("resize")
    x = g.input("x", (1, 3, 9, 11))
    y = g.op(
        "Resize", x, "", "", g.ints([1, 3, *size]), mode=mode, coordinate_transformation_mode=coordinates
    )
    g.output(g.op("Relu", y), (1, 3, *size))
    inputs = [np.random.default_rng(3).standard_normal((1, 3, 9, 11)).astype(np.float32)]
    model = g.build()
    _, ran = simulated(model, inputs, tmp_path)
    assert_near(ran.outputs, model, inputs, "f32")


@pytest.mark.parametrize(
    "name", ["resnet-18-small", "shufflenet-v2-small", "efficientnet-small", "unet-small"]
)
def test_networks_are_wholly_ours(name: str, tmp_path: Path) -> None:
    model = WORKLOADS[name].build()
    inputs = random_inputs(model, 1)
    _, ran = simulated(model, inputs, tmp_path)
    assert_near(ran.outputs, model, inputs, "f32")
