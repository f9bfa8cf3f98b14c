"""Scan of ONNX: a running sum of one input, times the other one, in all directions and along all axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import tilewright
from control_flow_models import INT64, Array, Shape, compiled, equal, graph_of, node, value
from onnx import GraphProto, NodeProto

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]


def summing_body(state: Shape, first: Shape, second: Shape) -> GraphProto:
    return graph_of(
        [
            node("Add", ["total", "a"], ["next"]),
            node("Mul", ["next", "b"], ["product"]),
            node("Neg", ["product"], ["negative"]),
        ],
        [value("total", state), value("a", first), value("b", second)],
        [value("next", state), value("product", state), value("negative", state)],
    )


def summing_scan(**directions: Sequence[int]) -> NodeProto:
    """Builds a Scan over two inputs with a body of undeclared shapes."""
    body = summing_body(None, None, None)
    return node("Scan", ["start", "xa", "xb"], ["last", "p", "n"], body=body, num_scan_inputs=2, **directions)


def near(results: Sequence[Array], expected: Sequence[Array]) -> None:
    """Compares with float64, for sums of at most five terms around one in f32."""
    for ours, exact in zip(results, expected, strict=True):
        np.testing.assert_allclose(ours, exact, rtol=1e-5, atol=1e-5)


def scanned(
    a: Array, b: Array, start: Array, *, back: tuple[int, int], out_back: tuple[int, int]
) -> list[Array]:
    """Scans along the first axes."""
    total, products = start.astype(np.float64), []
    first, second = (x[::-1] if is_back else x for x, is_back in zip((a, b), back, strict=True))
    for x, y in zip(first, second, strict=True):
        total = total + x
        products.append(total * y)
    both = [np.stack(products), -np.stack(products)]
    return [total, *(x[::-1] if is_back else x for x, is_back in zip(both, out_back, strict=True))]


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("axes", [(0, 0, 0, 0), (1, 0, -1, 1), (-2, 2, 1, -3)])
@pytest.mark.parametrize("directions", [(0, 0, 0, 0), (1, 0, 0, 1), (1, 1, 1, 0)])
def test_scan(directions: Sequence[int], axes: Sequence[int], is_dynamic: bool) -> None:  # noqa: FBT001
    """The axes and directions of two inputs and two outputs."""
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((5, 2, 3)).astype(np.float32) for _ in range(2))
    start = rng.standard_normal((2, 3)).astype(np.float32)
    moved_a, moved_b = np.moveaxis(a, 0, axes[0]), np.moveaxis(b, 0, axes[1])
    expected = scanned(a, b, start, back=directions[:2], out_back=directions[2:])
    expected[1:] = [np.moveaxis(x, 0, axis) for x, axis in zip(expected[1:], axes[2:], strict=True)]
    shapes = [list(x.shape) for x in (moved_a, moved_b)]
    if is_dynamic:
        for shape in shapes:
            shape[shape.index(5)] = "steps"
    scan = summing_scan(
        scan_input_axes=axes[:2],
        scan_output_axes=axes[2:],
        scan_input_directions=directions[:2],
        scan_output_directions=directions[2:],
    )
    program = compiled(
        [scan],
        [value("start", [2, 3]), value("xa", shapes[0]), value("xb", shapes[1])],
        [value(name, None) for name in ("last", "p", "n")],
    )
    near(program(start, np.ascontiguousarray(moved_a), np.ascontiguousarray(moved_b)), expected)


def test_scan_of_dynamic_batch() -> None:
    """Only the names of dims tell that the slices are as long as the state."""
    scan = summing_scan()
    shape = ["steps", "batch", 3]
    program = compiled(
        [scan],
        [value("start", ["batch", 3]), value("xa", shape), value("xb", shape)],
        [value("last", None), value("p", None), value("n", None)],
    )
    rng = np.random.default_rng(3)
    for steps, batch in ((4, 2), (1, 5)):
        a, b = (rng.standard_normal((steps, batch, 3)).astype(np.float32) for _ in range(2))
        start = rng.standard_normal((batch, 3)).astype(np.float32)
        near(program(start, a, b), scanned(a, b, start, back=(0, 0), out_back=(0, 0)))


# A scan without states is a map over slices.
def test_scan_without_states() -> None:
    body = graph_of([node("Mul", ["a", "a"], ["square"])], [value("a", None)], [value("square", None)])
    program = compiled(
        [node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1, scan_output_directions=[1])],
        [value("x", [4, 3])],
        [value("y", [4, 3])],
    )
    x = np.random.default_rng(4).standard_normal((4, 3)).astype(np.float32)
    equal(program(x), (x * x)[::-1])


# All scanned inputs have one length, and the model is told which do not.
def test_scan_over_different_lengths_is_refused() -> None:
    scan = summing_scan()
    with pytest.raises(
        tilewright.ModelError, match=r"'last': a Scan over inputs of different lengths: \[4, 5\]"
    ):
        compiled(
            [scan],
            [value("start", [3]), value("xa", [5, 3]), value("xb", [4, 3])],
            [value("last", [3]), value("p", [None, 3]), value("n", [None, 3])],
        )


def scan_of_opset_8(lengths: str) -> tilewright.Program:
    scan = node(
        "Scan",
        [lengths, "start", "xa", "xb"],
        ["last", "p", "n"],
        body=summing_body([3], [3], [3]),
        num_scan_inputs=2,
        directions=[1, 0],
    )
    inputs = [value("start", [2, 3]), value("xa", [2, 4, 3]), value("xb", [2, 4, 3])]
    inputs += [value("lens", [2], INT64)] if lengths else []
    outputs = [value("last", [2, 3]), value("p", [2, 4, 3]), value("n", [2, 4, 3])]
    return compiled([scan], inputs, outputs, opset=8)


def test_scan_of_opset_8() -> None:
    """All inputs and outputs have a batch dim."""
    program = scan_of_opset_8("")
    rng = np.random.default_rng(5)
    start = rng.standard_normal((2, 3)).astype(np.float32)
    a, b = (rng.standard_normal((2, 4, 3)).astype(np.float32) for _ in range(2))
    samples = [scanned(a[n], b[n], start[n], back=(1, 0), out_back=(0, 0)) for n in range(2)]
    for number, ours in enumerate(program(start, a, b)):
        np.testing.assert_allclose(ours, np.stack([s[number] for s in samples]), rtol=1e-5, atol=1e-5)


# Lengths per batch exist in opset 8 alone.
def test_sequence_lengths_of_scan_8_are_refused() -> None:
    with pytest.raises(tilewright.ModelError, match="'last': a Scan of opset 8 with sequence lengths"):
        scan_of_opset_8("lens")
