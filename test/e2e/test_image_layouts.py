"""Tests of layouts of images that are chosen one by one, on CPUs."""

from __future__ import annotations

import onnx
import pytest
import tilewright
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error

from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.networks import Image, add, conv, image_input

CPU = "x86-64-avx2"


def _blocks(g: GraphBuilder, x: Image) -> Image:
    x = conv(g, x, 24, kernel=1, act="relu")
    x = add(g, x, conv(g, conv(g, x, 40, kernel=1, act="relu"), 24, kernel=1))
    x = conv(g, conv(g, x, 24, groups=24, act="relu"), 16, stride=2)
    return conv(g, x, 13, kernel=1)


def _model() -> onnx.ModelProto:
    g = GraphBuilder("images", seed=3)
    result = _blocks(g, image_input(g, 17, 16))
    g.output(result.value, result.shape)
    return g.build()


def _layouts(program: tilewright.Program) -> list[bool]:
    assert program.plan is not None
    return [form.taken for form in program.plan.forms if form.form == "channels last"]


@pytest.mark.parametrize("first", [0, 1])
def test_each_image_may_have_its_own_layout(first: int) -> None:
    """Every other image of a plan gets the layout of the model."""
    plan = tilewright.compile(_model(), CPU, threads=2).plan
    assert plan is not None
    wanted = plan.forms_only()
    layouts = [form for form in wanted.forms if form.form == "channels last"]
    assert len(layouts) > 2
    for form in layouts[first::2]:
        form.taken = False
    program = tilewright.compile(_model(), CPU, threads=2, plan=wanted)
    assert _layouts(program) == [form.taken for form in layouts]
    arrays = random_inputs(_model(), 1)
    (expected,) = float64_reference(_model(), arrays)
    assert relative_error(program(*arrays)[0], expected) <= model_tolerance(_model())


def test_mixed_layouts_are_taken_where_they_are_predicted_faster() -> None:
    """Restormer reads and writes images with channels first, and has large depthwise convolutions between them.

    With fewer threads, or dearer launches, channels last is within 5% of it, and taken.
    """
    target = tilewright.Target.from_json({"base": CPU, "launchSeconds": 0.2e-6})
    program = tilewright.compile(WORKLOADS["restormer-level"].build(), target, threads=16)
    assert set(_layouts(program)) == {True, False}
    assert "with the cheapest layout of each image" in program.explain()


def test_strict_numerics_offer_no_layouts() -> None:
    assert _layouts(tilewright.compile(_model(), CPU, threads=1, numerics="strict")) == []
