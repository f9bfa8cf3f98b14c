"""Tests of 3x3 convolutions by products of sums (Winograd), on CPUs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error

from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.networks import add, conv, image_input

CPU = "x86-64-avx2"


def _convolution(
    shape: tuple[int, int, int, int],
    filters: int,
    *,
    pads: tuple[int, int, int, int] = (1, 1, 1, 1),
    stride: int = 1,
    dilation: int = 1,
) -> onnx.ModelProto:
    """Returns a convolution of batch x channels x height x width with a bias and a ReLU."""
    batch, channels, height, width = shape
    g = GraphBuilder("convolution", seed=5)
    weight = g.weight((filters, channels, 3, 3), fan_in=9 * channels)
    y = g.op(
        "Conv", g.input("x", shape), weight, g.vector(filters),
        kernel_shape=[3, 3], pads=list(pads), strides=[stride] * 2, dilations=[dilation] * 2,
    )  # fmt: skip
    sizes = [
        (size + pads[dim] + pads[dim + 2] - 2 * dilation - 1) // stride + 1
        for dim, size in enumerate((height, width))
    ]
    g.output(g.op("Relu", y), [batch, filters, *sizes])
    return g.build()


def _offers(program: tilewright.Program) -> list[bool]:
    """Returns which of the convolutions that may have the form have it."""
    assert program.plan is not None
    return [form.taken for form in program.plan.forms if form.form == "winograd"]


def _compile_with_form(
    model: onnx.ModelProto, *, threads: int = 1, lines: int | None = None
) -> tilewright.Program:
    """Compiles a model in which every convolution has the form that may have it, with the sums of so many lines of
    tiles together."""
    plan = tilewright.compile(model, CPU, threads=threads).plan
    assert plan is not None
    wanted = plan.forms_only()
    for form in wanted.forms:
        if form.form == "winograd":
            form.taken = True
            if lines is not None:
                form.parameters = {"lines": [lines]}
    return tilewright.compile(model, CPU, threads=threads, plan=wanted)


def _error(program: tilewright.Program, model: onnx.ModelProto) -> float:
    arrays = random_inputs(model, 1)
    (expected,) = float64_reference(model, arrays)
    return relative_error(program(*arrays)[0], expected)


@pytest.mark.parametrize(
    ("shape", "filters", "pads", "lines"),
    [
        ((1, 40, 14, 14), 24, (1, 1, 1, 1), 7),
        ((1, 40, 14, 14), 24, (1, 1, 1, 1), 1),
        ((2, 24, 13, 10), 17, (1, 1, 1, 1), 14),
        ((2, 24, 15, 10), 17, (1, 1, 1, 1), 2),
        ((1, 5, 9, 33), 40, (0, 0, 0, 0), 1),
        ((3, 16, 6, 7), 16, (2, 1, 0, 1), 3),
        ((1, 8, 3, 4), 9, (0, 0, 0, 0), 1),
    ],
    ids=[
        "all",
        "one",
        "all-of-a-batch",
        "two-of-a-batch",
        "few-channels",
        "uneven-pads",
        "one-line-of-results",
    ],
)
def test_results_are_those_of_the_convolution(
    shape: tuple[int, int, int, int], filters: int, pads: tuple[int, int, int, int], lines: int
) -> None:
    model = _convolution(shape, filters, pads=pads)
    program = _compile_with_form(model, lines=lines)
    assert _offers(program) == [True]
    assert _error(program, model) <= model_tolerance(model)


def test_a_chain_keeps_channels_last() -> None:
    """A residual block, in which a 1x1 convolution and an addition read what the form computes."""
    g = GraphBuilder("block", seed=3)
    x = conv(g, image_input(g, 20, 13), 20, kernel=1, act="relu")
    y = conv(g, conv(g, x, 28, act="relu"), 20)
    z = conv(g, add(g, x, y), 11, kernel=1)
    g.output(z.value, z.shape)
    model = g.build()
    program = _compile_with_form(model, threads=2)
    assert _offers(program) == [True, True]
    assert _error(program, model) <= model_tolerance(model)


def test_the_form_is_taken_where_channels_and_filters_are_many() -> None:
    program = tilewright.compile(_convolution((1, 128, 28, 28), 128), CPU, threads=1)
    assert _offers(program) == [True]
    assert "16 products of sums in place of 36" in program.explain(verbose=True)


def test_the_form_is_declined_where_sums_cost_more_than_they_save() -> None:
    assert _offers(tilewright.compile(_convolution((1, 4, 40, 40), 8), CPU, threads=1)) == [False]


@pytest.mark.parametrize(
    "model",
    [_convolution((1, 16, 15, 15), 16, stride=2), _convolution((1, 16, 15, 15), 16, dilation=2)],
    ids=["stride", "dilation"],
)
def test_other_windows_have_no_such_form(model: onnx.ModelProto) -> None:
    assert _offers(tilewright.compile(model, CPU, threads=1)) == []


def test_lines_that_do_not_divide_those_of_the_image_are_refused() -> None:
    with pytest.raises(tilewright.PlanError, match="'lines', one of 1, 7"):
        _compile_with_form(_convolution((1, 16, 14, 14), 16), lines=2)


def test_strict_numerics_have_no_such_form() -> None:
    program = tilewright.compile(_convolution((1, 128, 28, 28), 128), CPU, threads=1, numerics="strict")
    assert _offers(program) == []


def test_weights_are_summed_when_the_program_is_compiled(tmp_path: Path) -> None:
    """The program reads 16 sums of the 9 weights of a filter's channel from its file, so IREE computes nothing when it
    loads the program."""
    channels, filters = 40, 24
    program = _compile_with_form(_convolution((1, channels, 14, 14), filters))
    assert program.runtime == "direct"
    program.save(tmp_path / "program")
    stored = sum(file.stat().st_size for file in tmp_path.glob("*.irpa"))
    assert stored >= 16 * channels * filters * 4


def test_a_batch_without_images_has_a_result_without_images() -> None:
    program = tilewright.compile(_convolution((0, 64, 28, 28), 64), CPU, threads=1)
    (y,) = program(np.zeros((0, 64, 28, 28), np.float32))
    assert y.shape == (0, 64, 28, 28)


def _generic(image: str, weights: str, factor: str) -> str:
    """Returns a 3x3 convolution as a linalg.generic whose operands are read at these indices; `factor` is multiplied
    with a weight."""
    random = np.random.default_rng(1).standard_normal((3, 3, 64, 64)).astype(np.float32)
    return f"""
#image = affine_map<(n, h, w, f, a, b, c) -> ({image})>
#weights = affine_map<(n, h, w, f, a, b, c) -> ({weights})>
#result = affine_map<(n, h, w, f, a, b, c) -> (n, h, w, f)>
func.func @convolution(%x: tensor<1x30x30x64xf32>) -> tensor<1x28x28x64xf32> {{
  %weights = arith.constant dense<"0x{random.tobytes().hex().upper()}"> : tensor<3x3x64x64xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x28x28x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  %y = linalg.generic {{indexing_maps = [#image, #weights, #result],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}}
      ins(%x, %weights : tensor<1x30x30x64xf32>, tensor<3x3x64x64xf32>) outs(%zeros : tensor<1x28x28x64xf32>) {{
  ^bb0(%point: f32, %weight: f32, %sum: f32):
    %positive = arith.maximumf %point, %zero : f32
    %product = arith.mulf {factor}, %weight : f32
    %more = arith.addf %sum, %product : f32
    linalg.yield %more : f32
  }} -> tensor<1x28x28x64xf32>
  return %y : tensor<1x28x28x64xf32>
}}"""


def test_windows_may_have_their_dims_in_any_order() -> None:
    """The first loop over the window runs along lines of the image."""
    model = _generic("n, h + b, w + a, c", "b, a, c, f", "%point")
    program = tilewright.compile(model, CPU, threads=1)
    assert _offers(program) == [True]
    x = np.random.default_rng(2).standard_normal((1, 30, 30, 64)).astype(np.float32)
    exact = tilewright.compile(model, CPU, threads=1, numerics="strict")
    np.testing.assert_allclose(program(x), exact(x), rtol=0, atol=3e-4)


def test_products_of_other_values_have_no_such_form() -> None:
    model = _generic("n, h + a, w + b, c", "a, b, c, f", "%positive")
    assert _offers(tilewright.compile(model, CPU, threads=1)) == []
