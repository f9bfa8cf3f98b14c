"""Tests of convolutions, which are contractions of image windows with the weights, in all layouts of windows."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
import pytest
import tilewright
from tilewright.reference.oracle import float64_reference, relative_error, tolerance
from tilewright.runtime.inputs import random_inputs

from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.narrow import to_narrow

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]


@dataclass(frozen=True, kw_only=True)
class _Case:
    """One convolution, with the sizes and strides of every image dim."""

    image: tuple[int, ...]
    window: tuple[int, ...]
    batch: int = 1
    channels: int = 5
    filters: int = 7
    stride: int = 1
    dilation: int = 1
    pad: int = 0
    bias: bool = True
    constant: bool = True

    def model(self) -> onnx.ModelProto:
        g = GraphBuilder("convolution")
        shape = [self.filters, self.channels, *self.window]
        weights = g.weight(shape, fan_in=5) if self.constant else g.input("w", shape)
        inputs = [g.input("x", [self.batch, self.channels, *self.image]), weights]
        if self.bias:
            inputs.append(g.vector(self.filters))
        rank = len(self.image)
        y = g.op(
            "Conv",
            *inputs,
            kernel_shape=list(self.window),
            strides=[self.stride] * rank,
            dilations=[self.dilation] * rank,
            pads=[self.pad] * (2 * rank),
        )
        reach = [
            (size + 2 * self.pad - self.dilation * (window - 1) - 1) // self.stride + 1
            for size, window in zip(self.image, self.window, strict=True)
        ]
        g.output(g.op("Relu", y), [self.batch, self.filters, *reach])
        return g.build()


_CASES = {
    "patches": _Case(image=(32, 48), window=(16, 16), stride=16, channels=3, filters=33),
    "points": _Case(image=(9, 11), window=(1, 1), filters=19, bias=False),
    "points-apart": _Case(image=(17, 23), window=(1, 1), stride=2, batch=2, channels=12, filters=21),
    "points-apart-of-a-line": _Case(image=(131,), window=(1,), stride=2, channels=12, filters=21),
    "padded": _Case(image=(17, 13), window=(3, 3), pad=1, batch=2),
    "many-points": _Case(image=(32, 32), window=(3, 3), pad=1, channels=16, filters=64),
    "long-lines": _Case(image=(9, 53), window=(3, 3), pad=1, stride=2, batch=2, channels=6, filters=20),
    "strided": _Case(image=(18, 23), window=(5, 3), stride=2, pad=2, filters=32),
    "dilated": _Case(image=(15, 15), window=(3, 3), dilation=3, channels=1),
    "whole-image": _Case(image=(6, 6), window=(6, 6), filters=40),
    "one-filter": _Case(image=(12, 12), window=(3, 3), filters=1),
    "line": _Case(image=(50,), window=(7,), pad=3, channels=8, filters=24),
    "given-weights": _Case(image=(10, 10), window=(3, 3), constant=False),
}


def _holds(model: onnx.ModelProto, program: tilewright.Program) -> None:
    arrays = random_inputs(program.signature, seed=3)
    (expected,) = float64_reference(model, arrays)
    (actual,) = program(*arrays)
    assert relative_error(actual, expected) <= tolerance(actual.dtype)


def test_windows_are_read_in_place_or_stored_as_the_plan_says() -> None:
    """The scope of the edge from the windows to their contraction says which; both compute the same."""
    model = _CASES["dilated"].model()
    scopes = {}
    for policy in ("greedy", "unfused"):
        program = tilewright.compile(model, "cpu", policy=policy, tuning=False)
        assert program.plan is not None
        contractions = {
            op.id for k in program.plan.kernels for p in k.groups for op in p.ops if op.micro_kernel
        }
        windows = (edge for edge in program.plan.edges if edge.consumer in contractions and edge.input == 0)
        scopes[policy] = {edge.scope for edge in windows}
        again = tilewright.compile(model, "cpu", plan=program.plan, tuning=False)
        _holds(model, again)
    assert scopes == {"greedy": {"thread"}, "unfused": {"launch"}}


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_convolution_is_right(name: str, dtype: str) -> None:
    model = _CASES[name].model()
    if dtype == "bf16":
        model = to_narrow(model, "bf16")
    _holds(model, tilewright.compile(model, threads=[2]))


@pytest.mark.parametrize("name", ["patches", "padded", "strided", "line"])
def test_convolution_is_ours(name: str) -> None:
    program = tilewright.compile(_CASES[name].model(), threads=1)
    ops = [op.micro_kernel for kernel in program.kernels for op in kernel.ops]
    assert any(ops), program.explain()


@pytest.mark.parametrize("stride", [1, 2])
def test_one_filter_for_each_channel(stride: int) -> None:
    g = GraphBuilder("depthwise")
    x, weights = g.input("x", [2, 6, 13, 12]), g.weight([6, 1, 3, 5], fan_in=15)
    options = {"kernel_shape": [3, 5], "strides": [stride] * 2, "pads": [1, 2, 1, 2]}
    y = g.op("Conv", x, weights, g.vector(6), group=6, **options)
    g.output(g.op("Sigmoid", y), [2, 6, (13 - 1) // stride + 1, (12 - 1) // stride + 1])
    _holds_in_one_kernel(g.build())


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_pool(kind: str) -> None:
    g = GraphBuilder("pool")
    y = g.op(kind, g.input("x", [2, 3, 17, 15]), kernel_shape=[3, 2], strides=[2, 2])
    g.output(g.op("Add", y, y), [2, 3, 8, 7])
    _holds_in_one_kernel(g.build())


def test_pool_of_padded_windows_with_gaps() -> None:
    """The pad is a double, which is rounded to float outside of any loop."""
    g = GraphBuilder("pool")
    x = g.input("x", [2, 3, 11, 13])
    y = g.op("MaxPool", x, kernel_shape=[3, 2], pads=[1, 1, 1, 0], dilations=[2, 3])
    g.output(y, [2, 3, 9, 11])
    model = g.build()
    _holds(model, tilewright.compile(model, threads=1))


def _holds_in_one_kernel(model: onnx.ModelProto) -> None:
    program = tilewright.compile(model, threads=1, strict=True)
    assert len(program.kernels) == 1, program.explain()
    _holds(model, program)
