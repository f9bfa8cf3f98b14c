"""Tests of convolutions one after the other, whose tensors in between have channels innermost on CPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx
import pytest
import tilewright
from tilewright.reference.oracle import float64_reference, relative_error, tolerance
from tilewright.runtime.inputs import random_inputs

from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.narrow import to_narrow

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]


class _Network:
    """Builds a network of convolutions over images of the given size, with channels first as in ONNX."""

    def __init__(self, channels: int, image: Sequence[int], batch: int = 1) -> None:
        self.g = GraphBuilder("network")
        self.rank = len(image)
        self.x = self.g.input("x", [batch, channels, *image])

    def conv(
        self,
        x: str,
        channels: int,
        filters: int,
        window: int = 1,
        *,
        stride: int = 1,
        pad: int = 0,
        groups: int = 1,
        dilation: int = 1,
    ) -> str:
        weights = self.g.weight(
            [filters, channels // groups, *[window] * self.rank],
            fan_in=channels // groups * window**self.rank,
        )
        return self.g.op(
            "Conv",
            x,
            weights,
            self.g.vector(filters),
            kernel_shape=[window] * self.rank,
            strides=[stride] * self.rank,
            pads=[pad] * (2 * self.rank),
            dilations=[dilation] * self.rank,
            group=groups,
        )

    def relu(self, x: str) -> str:
        return self.g.op("Relu", x)

    def build(self, y: str, shape: Sequence[int]) -> onnx.ModelProto:
        self.g.output(y, list(shape))
        return self.g.build()


def _residual() -> onnx.ModelProto:
    n = _Network(5, (13, 27), batch=2)
    short = n.conv(n.x, 5, 19)
    y = n.conv(n.relu(n.conv(n.x, 5, 11, 3, pad=1)), 11, 19)
    y = n.relu(n.g.op("Add", y, short))
    return n.build(n.relu(n.conv(y, 19, 7, 3, stride=2, pad=1)), (2, 7, 7, 14))


def _inverted_residual() -> onnx.ModelProto:
    n = _Network(6, (11, 9))
    y = n.relu(n.conv(n.x, 6, 36))
    y = n.relu(n.conv(y, 36, 36, 5, stride=2, pad=2, groups=36))
    return n.build(n.conv(y, 36, 10), (1, 10, 6, 5))


def _squeeze_and_excite() -> onnx.ModelProto:
    n = _Network(4, (15, 10))
    y = n.conv(n.relu(n.conv(n.x, 4, 21, 3, pad=1)), 21, 21, 3, pad=1, groups=21)
    gate = n.g.op("Sigmoid", n.conv(n.relu(n.conv(n.g.op("GlobalAveragePool", y), 21, 5)), 5, 21))
    return n.build(n.conv(n.g.op("Mul", y, gate), 21, 8), (1, 8, 15, 10))


def _concatenated() -> onnx.ModelProto:
    n = _Network(3, (9, 14))
    a, b = n.relu(n.conv(n.x, 3, 10, 3, pad=1)), n.conv(n.x, 3, 6, 1)
    both = n.g.op("Concat", a, n.x, b, axis=1)
    return n.build(n.conv(both, 19, 5, 3, pad=1), (1, 5, 9, 14))


def _pooled() -> onnx.ModelProto:
    n = _Network(3, (23, 31))
    y = n.conv(n.x, 3, 12, 7, stride=2, pad=3)
    y = n.g.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = n.g.op("AveragePool", n.relu(n.conv(y, 12, 9, 3, pad=1)), kernel_shape=[2, 2], strides=[1, 1])
    return n.build(n.conv(y, 9, 4), (1, 4, 5, 7))


def _split() -> onnx.ModelProto:
    n = _Network(4, (7, 12))
    left, right = n.g.ops("Split", n.conv(n.x, 4, 14), results=2, axis=1)
    right = n.relu(n.conv(right, 7, 7, 3, pad=1))
    y = n.g.op("Reshape", n.g.op("Concat", left, right, axis=1), n.g.ints([1, 2, 7, 7, 12]))
    y = n.g.op("Reshape", n.g.op("Transpose", y, perm=[0, 2, 1, 3, 4]), n.g.ints([1, 14, 7, 12]))
    return n.build(n.conv(y, 14, 6, 3, pad=1), (1, 6, 7, 12))


def _upsampled() -> onnx.ModelProto:
    n = _Network(3, (6, 5))
    y = n.relu(n.conv(n.x, 3, 10, 3, pad=1))
    y = n.g.op("ConvTranspose", y, n.g.weight([10, 8, 2, 2], fan_in=10), n.g.vector(8), strides=[2, 2])
    return n.build(n.conv(n.relu(y), 8, 5, 3, pad=1), (1, 5, 12, 10))


def _padded() -> onnx.ModelProto:
    """Channels in whole runs, which contractions read under the guards of pads."""
    n = _Network(16, (13, 27), batch=2)
    y = n.relu(n.conv(n.x, 16, 24, 3, pad=1))
    y = n.relu(n.conv(y, 24, 8, 3, pad=2, dilation=2))
    y = n.relu(n.conv(y, 8, 32, 5, pad=2, stride=2))
    return n.build(n.conv(y, 32, 6, 3, pad=1, stride=2), (2, 6, 4, 7))


def _grouped() -> onnx.ModelProto:
    n = _Network(6, (11, 26))
    y = n.relu(n.conv(n.x, 6, 24, 1))
    y = n.relu(n.conv(y, 24, 40, 3, pad=1, groups=4))
    y = n.relu(n.conv(y, 40, 48, 3, pad=1, stride=2, groups=2))
    y = n.relu(n.conv(y, 48, 16, 3, groups=8))
    return n.build(n.conv(y, 16, 5), (1, 5, 4, 11))


def _shuffled() -> onnx.ModelProto:
    """Channels change places between groups, as in ShuffleNet."""
    n = _Network(5, (9, 10))
    y = n.relu(n.conv(n.x, 5, 24))
    y = n.g.op("Reshape", y, n.g.ints([1, 3, 8, 9, 10]))
    y = n.g.op("Reshape", n.g.op("Transpose", y, perm=[0, 2, 1, 3, 4]), n.g.ints([1, 24, 9, 10]))
    return n.build(n.conv(n.relu(y), 24, 16, 3, pad=1, groups=2), (1, 16, 9, 10))


def _deconvolved() -> onnx.ModelProto:
    """Transposed convolutions whose windows overlap, with and without points that no whole window reaches."""
    n = _Network(3, (5, 7), batch=2)
    y = n.relu(n.conv(n.x, 3, 8, 3, pad=1))
    weights = n.g.weight([8, 16, 3, 4], fan_in=20)
    y = n.g.op(
        "ConvTranspose", y, weights, n.g.vector(16), strides=[2, 3], pads=[1, 0, 1, 2], output_padding=[1, 0]
    )
    y = n.g.op(
        "ConvTranspose", n.relu(y), n.g.weight([16, 4, 4, 4], fan_in=64), strides=[2, 2], pads=[3, 1, 0, 2]
    )
    return n.build(n.conv(n.relu(y), 4, 3), (2, 3, 19, 39))


def _other_readers() -> onnx.ModelProto:
    """A matmul over the points, and a result in another layout."""
    n = _Network(3, (5, 8))
    y = n.relu(n.conv(n.x, 3, 9, 3, pad=1))
    last = n.g.op("Transpose", y, perm=[0, 2, 3, 1])
    rows = n.g.op("Reshape", last, n.g.ints([40, 9]))
    n.g.output(n.g.op("MatMul", rows, n.g.weight([9, 17], fan_in=9)), [40, 17])
    return n.build(n.conv(y, 9, 4, 3), (1, 4, 3, 6))


def _lines() -> onnx.ModelProto:
    n = _Network(6, (53,))
    return n.build(n.conv(n.relu(n.conv(n.x, 6, 18, 7, pad=3)), 18, 20, 3, stride=2, pad=1), (1, 20, 27))


def _volumes() -> onnx.ModelProto:
    n = _Network(3, (5, 6, 7))
    y = n.relu(n.conv(n.x, 3, 8, 3, pad=1))
    return n.build(n.conv(y, 8, 6, 3, stride=2, pad=1), (1, 6, 3, 3, 4))


_NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "residual": _residual,
    "inverted-residual": _inverted_residual,
    "squeeze-and-excite": _squeeze_and_excite,
    "concatenated": _concatenated,
    "pooled": _pooled,
    "split": _split,
    "upsampled": _upsampled,
    "padded": _padded,
    "grouped": _grouped,
    "shuffled": _shuffled,
    "deconvolved": _deconvolved,
    "other-readers": _other_readers,
    "lines": _lines,
    "volumes": _volumes,
}


@pytest.mark.parametrize("name", _NETWORKS)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("threads", [1, 2])
def test_network_is_right(name: str, dtype: str, threads: int) -> None:
    model = _NETWORKS[name]()
    if dtype != "f32":
        model = to_narrow(model, dtype)
    program = tilewright.compile(model, threads=threads)
    arrays = random_inputs(program.signature, seed=5)
    for expected, actual in zip(float64_reference(model, arrays), program(*arrays), strict=True):
        assert relative_error(actual, expected) <= tolerance(actual.dtype)


def test_no_matrix_of_windows_is_in_memory() -> None:
    """Kernels move the images, once more with their pads, and the weights; a matrix of windows has 25 images.

    3x3 windows may become sums of points, of which there are four images (Winograd).
    """
    n = _Network(32, (28, 28))
    y = n.relu(n.conv(n.relu(n.conv(n.x, 32, 32, 5, pad=2)), 32, 32, 5, pad=2))
    model = n.build(y, (1, 32, 28, 28))
    program = tilewright.compile(model, threads=1, strict=True)
    image, padded, weights = 28 * 28 * 32 * 4, 32 * 32 * 32 * 4, 25 * 32 * 32 * 4
    moved = sum(kernel.predicted_bytes for kernel in program.kernels)
    assert moved < 4 * image + 4 * padded + 3 * weights, program.explain(verbose=True)


def test_nothing_is_transposed_between_convolutions() -> None:
    """Every kernel between the input and the result reads and writes channels as its lanes: none gathers or copies."""
    n = _Network(16, (20, 20))
    y = n.relu(n.conv(n.relu(n.conv(n.x, 16, 16)), 16, 16))
    program = tilewright.compile(n.build(y, (1, 16, 20, 20)), threads=1, strict=True)
    names = [op.op for kernel in program.kernels for op in kernel.ops]
    assert "linalg.transpose" not in names, program.explain(verbose=True)


def test_weights_of_depthwise_convolutions_are_laid_out_ahead() -> None:
    model = _inverted_residual()
    program = tilewright.compile(model, threads=1, strict=True)
    arrays = random_inputs(program.signature, seed=7)
    (expected,) = float64_reference(model, arrays)
    (actual,) = program(*arrays)
    assert relative_error(actual, expected) <= tolerance(actual.dtype)
    assert "linalg.transpose" not in [op.op for kernel in program.kernels for op in kernel.ops]
