"""Tests of convolutions that follow each other in GPU kernels: images between them have channels last."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import tilewright
from simulated_convolutions import assert_traffic_is_planned
from tilewright.records.plan import Plan
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error
from tilewright.simulator.programs import SimulatedRun, simulate_program

from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.networks import Image, add, concat, conv, image_input, max_pool, squeeze_and_excite
from benchmarks.workloads.workload import Workload

pytestmark = pytest.mark.lands(one_in=6)


def _twice(g: GraphBuilder, x: Image) -> Image:
    return conv(g, conv(g, x, 24, act="relu"), 16)


def _odd(g: GraphBuilder, x: Image) -> Image:
    return conv(g, conv(g, x, 13, stride=2, act="relu"), 27)


def _groups(g: GraphBuilder, x: Image) -> Image:
    return conv(g, conv(g, conv(g, x, 32, kernel=1), 32, stride=2, groups=2, act="relu"), 24, kernel=1)


def _depthwise(g: GraphBuilder, x: Image) -> Image:
    return conv(g, conv(g, conv(g, x, 40, kernel=1), 40, groups=40, stride=2, act="relu6"), 16, kernel=1)


def _pooled(g: GraphBuilder, x: Image) -> Image:
    return conv(g, max_pool(g, conv(g, x, 16, kernel=5, act="relu"), kernel=3, stride=2, pad=1), 24)


def _residual(g: GraphBuilder, x: Image) -> Image:
    x = conv(g, x, 16, act="relu")
    return conv(g, add(g, conv(g, x, 16), x), 24, kernel=1, stride=2)


def _joined(g: GraphBuilder, x: Image) -> Image:
    x = conv(g, x, 16, act="relu")
    return conv(g, concat(g, [x, conv(g, x, 12)]), 24)


def _squeezed(g: GraphBuilder, x: Image) -> Image:
    return conv(g, squeeze_and_excite(g, conv(g, x, 24, kernel=1, act="silu"), 4), 16, kernel=1)


def _resized(g: GraphBuilder, x: Image) -> Image:
    x = conv(g, x, 16, act="relu")
    value = g.op("Resize", x.value, "", "", g.ints([1, 16, 17, 17]), mode="linear")
    return conv(g, Image(value=value, channels=16, size=17), 24)


def _transposed(g: GraphBuilder, x: Image) -> Image:
    x = conv(g, x, 16, act="relu")
    weight = g.weight((16, 12, 2, 2), fan_in=16)
    value = g.op("ConvTranspose", x.value, weight, g.vector(12), kernel_shape=[2, 2], strides=[2, 2])
    return conv(g, Image(value=value, channels=12, size=2 * x.size), 24)


def _overlapping(g: GraphBuilder, x: Image) -> Image:
    x = conv(g, x, 16, act="relu")
    weight = g.weight((16, 12, 3, 3), fan_in=36)
    value = g.op(
        "ConvTranspose", x.value, weight, g.vector(12), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4
    )
    return conv(g, Image(value=value, channels=12, size=2 * x.size - 1), 24)


_GRAPHS = {
    "3x3 twice": _twice,
    "odd channels": _odd,
    "groups": _groups,
    "depthwise between": _depthwise,
    "pool between": _pooled,
    "residual": _residual,
    "concatenation": _joined,
    "squeeze and excite": _squeezed,
    "linear resizing": _resized,
    "transposed": _transposed,
    "transposed, overlapping": _overlapping,
}


def _model(name: str, *, channels: int = 16) -> onnx.ModelProto:
    g = GraphBuilder("images", seed=3)
    result = _GRAPHS[name](g, image_input(g, 11, channels))
    g.output(result.value, result.shape)
    return g.build()


def _in_type(model: onnx.ModelProto, element: str) -> onnx.ModelProto:
    whole = Workload(name="images", build=lambda: model, description="", suite="")
    return whole.in_type(element).build()


def _simulated(
    model: onnx.ModelProto, folder: Path, *, plan: Plan | None = None
) -> tuple[tilewright.Program, SimulatedRun]:
    program = tilewright.compile(model, "cuda:h200", plan=plan, dump_dir=folder)
    assert not any(op.is_dispatch for op in program.metadata.report.left_to_iree), program.explain()
    ran = simulate_program(program, folder, random_inputs(model, 1))
    assert_traffic_is_planned(program, ran)
    return program, ran


@pytest.mark.parametrize("element", ["f16", "f32"])
@pytest.mark.parametrize("name", _GRAPHS)
def test_numbers_are_right(name: str, element: str, tmp_path: Path) -> None:
    model = _in_type(_model(name), element)
    _, ran = _simulated(model, tmp_path)
    assert ran.outputs is not None
    (expected,) = float64_reference(model, random_inputs(model, 1))
    assert relative_error(ran.outputs[0], expected) <= model_tolerance(model)


@pytest.mark.parametrize("name", [name for name in _GRAPHS if name != "linear resizing"])
def test_each_image_may_have_its_own_layout(name: str, tmp_path: Path) -> None:
    """Every other image of a plan gets the layout that it did not have. Gathers, which resize linearly, end layouts."""
    model = _in_type(_model(name), "f16")
    plan = tilewright.compile(model, "cuda:h200").plan
    assert plan is not None
    layouts = [form for form in plan.forms if form.form == "channels last"]
    assert len(layouts) > 1
    for form in layouts[::2]:
        form.taken = not form.taken
    program, ran = _simulated(model, tmp_path, plan=plan.forms_only())
    assert program.plan is not None
    carried_out = [form.taken for form in program.plan.forms if form.form == "channels last"]
    assert carried_out == [form.taken for form in layouts]
    assert ran.outputs is not None
    (expected,) = float64_reference(model, random_inputs(model, 1))
    assert relative_error(ran.outputs[0], expected) <= model_tolerance(model)


def test_windows_of_channels_are_copied_whole(tmp_path: Path) -> None:
    program = tilewright.compile(_in_type(_model("3x3 twice"), "f16"), "cuda:h200", dump_dir=tmp_path)
    first, second = (op for kernel in program.kernels for op in kernel.ops if op.micro_kernel)
    assert "element by element" in first.copies  # the model's image has channels first
    assert "element by element" not in second.copies
