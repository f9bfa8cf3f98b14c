"""Tests of Loop, Scan and If: right, or refused with the node's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import tilewright
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=4)]

Array = np.ndarray[Any, Any]
Shape = Sequence[int | str | None] | None

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64


def value(name: str, shape: Shape, kind: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    return helper.make_node(op, list(inputs), list(outputs), name=outputs[0] or op, **attributes)


def graph_of(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: Mapping[str, Any] | None = None,
) -> GraphProto:
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    return helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), tensors)


def compiled(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: Mapping[str, Any] | None = None,
    *,
    opset: int = 17,
) -> tilewright.Program:
    graph = graph_of(nodes, inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return tilewright.compile(model, threads=1)


def equal(results: Sequence[Array], *expected: Any) -> None:
    assert len(results) == len(expected)
    for ours, exact in zip(results, expected, strict=True):
        exact = np.asarray(exact)
        assert ours.shape == exact.shape
        np.testing.assert_allclose(ours, exact, rtol=1e-6)


# Loop: x' = 2 x + w + i, collected, as long as the sum of x' is below a bound; w and the bound are outside.

START, W = np.array([1.0, -0.5, 2.0], np.float32), np.array([0.5, 0.25, 1.0], np.float32)


def doubling_body(*, is_counted: bool, state_shape: Shape = (3,)) -> GraphProto:
    nodes = [
        node("Cast", ["i"], ["i_float"], to=FLOAT),
        node("Add", ["x", "x"], ["doubled"]),
        node("Add", ["doubled", "w"], ["moved"]),
        node("Add", ["moved", "i_float"], ["next"]),
        node("Identity", ["next"], ["slice"]),
        node("ReduceSum", ["next"], ["total"], keepdims=0),
        node("Identity", ["going"], ["still"]) if is_counted else node("Less", ["total", "bound"], ["still"]),
    ]
    return graph_of(
        nodes,
        [value("i", [], INT64), value("going", [], BOOL), value("x", state_shape)],
        [value("still", [], BOOL), value("next", state_shape), value("slice", state_shape)],
    )


def double(limit: float, *, begins: bool, bound: float) -> tuple[Array, Array]:
    x, slices, step = START.astype(np.float64), [], 0
    while step < limit and begins:
        x = 2 * x + W + step
        slices.append(x)
        begins, step = bool(x.sum() < bound), step + 1
    return x, np.stack(slices) if slices else np.zeros((0, 3))


@pytest.mark.parametrize("is_counted", [True, False])
@pytest.mark.parametrize("condition", ["", "true", "false", "input"])
@pytest.mark.parametrize("trips", ["", "constant", "input"])
def test_loop(trips: str, condition: str, is_counted: bool) -> None:  # noqa: FBT001
    """Trip count and initial condition are absent, constant or inputs; the body keeps or computes the condition."""
    names = [f"{trips}_count" if trips else "", f"{condition}_condition" if condition else ""]
    constants = {
        "constant_count": np.int64(5),
        "true_condition": np.True_,
        "false_condition": np.False_,
        "w": W,
    }
    inputs = [value("x0", [3]), value("bound", [])]
    inputs += [value("input_count", [], INT64)] if trips == "input" else []
    inputs += [value("input_condition", [], BOOL)] if condition == "input" else []
    loop = node("Loop", [*names, "x0"], ["last", "all"], body=doubling_body(is_counted=is_counted))
    outputs = [value("last", [3]), value("all", [None, 3])]
    if not trips and is_counted:
        with pytest.raises(tilewright.ModelError, match="'last': a Loop without a trip count"):
            compiled([loop], inputs, outputs, constants)
        return
    program = compiled([loop], inputs, outputs, constants)
    for count in (0, 1, 7) if trips == "input" else (5,):
        for begins in (True, False) if condition == "input" else (condition != "false",):
            for bound in (40.0, -100.0):
                given: list[Array] = [START, np.float32(bound)]
                given += [np.int64(count)] if trips == "input" else []
                given += [np.bool_(begins)] if condition == "input" else []
                expected = double(
                    count if trips else np.inf, begins=begins, bound=np.inf if is_counted else bound
                )
                equal(program(*given), *expected)


@pytest.mark.parametrize("state_shape", [None, [None], ["n"]])
def test_a_body_need_not_declare_shapes(state_shape: Shape) -> None:
    """ONNX infers no shape for a state, which IREE's importer takes as a single number."""
    body = doubling_body(is_counted=True, state_shape=state_shape)
    loop = node("Loop", ["count", "", "x0"], ["last", "all"], body=body)
    program = compiled(
        [loop], [value("x0", [3])], [value("last", None), value("all", None)], {"count": np.int64(4), "w": W}
    )
    equal(program(START), *double(4, begins=True, bound=np.inf))


def test_the_number_of_an_iteration_may_be_a_vector() -> None:
    """Some exporters declare the inputs of a body as vectors of one element."""
    body = doubling_body(is_counted=False)
    for number in (0, 1):
        body.input[number].type.tensor_type.shape.dim.add().dim_value = 1
    loop = node("Loop", ["count", "condition", "x0"], ["last", "all"], body=body)
    inputs = [value("x0", [3]), value("bound", []), value("count", [1], INT64), value("condition", [1], BOOL)]
    program = compiled([loop], inputs, [value("last", None), value("all", None)], {"w": W})
    given = START, np.float32(40), np.array([7]), np.array([True])
    equal(program(*given), *double(7, begins=True, bound=40))


@pytest.mark.parametrize("is_counted", [True, False])
@pytest.mark.parametrize("width", [2, "n"])
def test_a_state_that_grows(width: int | str, is_counted: bool) -> None:  # noqa: FBT001
    """The state gets another row in each iteration. Its first shape is known, but not that of any iteration."""
    nodes = [
        node("Concat", ["x", "row"], ["longer"], axis=0),
        node("Shape", ["longer"], ["shape"]),
        node("Gather", ["shape", "zero"], ["rows"], axis=0),
        node("Identity", ["going"], ["still"]) if is_counted else node("Less", ["rows", "most"], ["still"]),
    ]
    body = graph_of(
        nodes,
        [value("i", [], INT64), value("going", [], BOOL), value("x", None)],
        [value("still", [], BOOL), value("longer", None), value("rows", [], INT64)],
        {"zero": np.int64(0)},
    )
    loop = node("Loop", ["count", "", "x0"], ["last", "lengths"], body=body)
    program = compiled(
        [loop],
        [value("x0", [1, width]), value("row", [1, width]), value("count", [], INT64)],
        [value("last", [None, width]), value("lengths", [None], INT64)],
        {"most": np.int64(4)},
    )
    first, row = np.ones((1, 2), np.float32), np.array([[2, 3]], np.float32)
    for count in (0, 1, 6):
        done = count if is_counted else min(count, 3)
        rows = np.concatenate([first] + [row] * done)
        equal(program(first, row, np.int64(count)), rows, np.arange(2, 2 + done))


def test_slices_of_a_shape_that_is_not_known_before_the_loop() -> None:
    """Each slice is cut to a length that an operand holds."""
    nodes = [
        node("Slice", ["x", "zero", "length"], ["cut"]),
        node("Add", ["cut", "cut"], ["slice"]),
        node("Identity", ["going"], ["still"]),
    ]
    body = graph_of(
        nodes,
        [value("i", [], INT64), value("going", [], BOOL)],
        [value("still", [], BOOL), value("slice", None)],
        {"zero": np.array([0])},
    )
    loop = node("Loop", ["count", ""], ["all"], body=body)
    inputs = [value("x", [4]), value("length", [1], INT64), value("count", [], INT64)]
    program = compiled([loop], inputs, [value("all", [None, None])])
    x = np.arange(4, dtype=np.float32)
    for count, length in ((3, 2), (1, 4)):
        equal(program(x, np.array([length]), np.int64(count)), np.stack([2 * x[:length]] * count))


def test_slices_of_different_shapes_end_the_program() -> None:
    nodes = [
        node("Reshape", ["i", "one"], ["length"]),
        node("Slice", ["x", "zero", "length"], ["slice"]),
        node("Identity", ["going"], ["still"]),
    ]
    body = graph_of(
        nodes,
        [value("i", [], INT64), value("going", [], BOOL)],
        [value("still", [], BOOL), value("slice", None)],
        {"zero": np.array([0]), "one": np.array([1])},
    )
    loop = node("Loop", ["count", ""], ["all"], body=body)
    program = compiled([loop], [value("x", [4]), value("count", [], INT64)], [value("all", [None, None])])
    with pytest.raises(tilewright.ProgramError, match="iterations give 'slice' different shapes"):
        program(np.zeros(4, np.float32), np.int64(3))


def test_loops_in_loops() -> None:
    """The inner one runs as often as the number of the outer iteration says, and reads its state."""
    inner = graph_of(
        [node("Mul", ["y", "x"], ["y_next"]), node("Identity", ["g"], ["s"])],
        [value("j", [], INT64), value("g", [], BOOL), value("y", None)],
        [value("s", [], BOOL), value("y_next", None)],
    )
    outer = graph_of(
        [
            node("Loop", ["i", "", "x"], ["power"], body=inner),
            node("Identity", ["going"], ["still"]),
        ],
        [value("i", [], INT64), value("going", [], BOOL), value("x", None)],
        [value("still", [], BOOL), value("power", None)],
    )
    program = compiled(
        [node("Loop", ["count", "", "x0"], ["y"], body=outer)],
        [value("x0", [2])],
        [value("y", [2])],
        {"count": np.int64(3)},
    )
    x = np.array([1.5, -0.5], np.float32)
    equal(program(x), x ** (1 * 2 * 3))


def test_bodies_of_old_opsets() -> None:
    """The ops in a body have the meaning of the model's opset, too: Softmax 11 flattens, and Squeeze has attributes."""
    body = graph_of(
        [
            node("Softmax", ["x"], ["soft"], axis=1),
            node("Unsqueeze", ["soft"], ["wide"], axes=[0]),
            node("Squeeze", ["wide"], ["next"], axes=[0]),
            node("Identity", ["going"], ["still"]),
        ],
        [value("i", [], INT64), value("going", [], BOOL), value("x", [2, 3, 5])],
        [value("still", [], BOOL), value("next", [2, 3, 5])],
    )
    program = compiled(
        [node("Loop", ["count", "", "x0"], ["y"], body=body)],
        [value("x0", [2, 3, 5])],
        [value("y", [2, 3, 5])],
        {"count": np.int64(1)},
        opset=11,
    )
    x = np.random.default_rng(0).standard_normal((2, 3, 5)).astype(np.float32)
    powers = np.exp(x.astype(np.float64))
    equal(program(x), powers / powers.sum((1, 2), keepdims=True))


def test_weights_and_constants_are_captured() -> None:
    """A large weight is a parameter of the program, and the body has a constant of its own."""
    rng = np.random.default_rng(1)
    weight = (rng.standard_normal((20, 20)) / 5).astype(np.float32)
    body = graph_of(
        [
            node("MatMul", ["x", "weight"], ["product"]),
            node("Mul", ["product", "half"], ["next"]),
            node("Identity", ["going"], ["still"]),
        ],
        [value("i", [], INT64), value("going", [], BOOL), value("x", [3, 20])],
        [value("still", [], BOOL), value("next", [3, 20])],
        {"half": np.float32(0.5)},
    )
    program = compiled(
        [node("Loop", ["count", "", "x0"], ["y"], body=body)],
        [value("x0", [3, 20])],
        [value("y", [3, 20])],
        {"count": np.int64(3), "weight": weight},
    )
    x = rng.standard_normal((3, 20)).astype(np.float32)
    expected = x @ np.linalg.matrix_power(weight.astype(np.float64) / 2, 3)
    np.testing.assert_allclose(program(x)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [3, "n"])
def test_computed_values_are_captured_by_several_loops(batch: int | str) -> None:
    """Loops and branches read what was computed just before them from weights and inputs, and each other's results.
    In models of dynamic shapes, IREE 3.13 may not wait for that, or take another tensor for it."""
    rng = np.random.default_rng(2)
    weights = {name: (rng.standard_normal((8, 8)) / 3).astype(np.float32) for name in "abcde"}

    def looped(captured: str, weight: str, state: str) -> GraphProto:
        nodes = [
            node("Transpose", [weight], [f"{state}_t"], perm=[1, 0]),
            node("MatMul", [f"{state}_x", f"{state}_t"], [f"{state}_m"]),
            node("Add", [f"{state}_m", captured], [f"{state}_a"]),
            node("Tanh", [f"{state}_a"], [f"{state}_next"]),
            node("Sub", [f"{state}_next", f"{state}_y"], [f"{state}_y_next"]),
            node("Identity", [f"{state}_y_next"], [f"{state}_slice"]),
            node("Identity", [f"{state}_g"], [f"{state}_still"]),
        ]
        inputs = [value(f"{state}_i", [], INT64), value(f"{state}_g", [], BOOL)]
        inputs += [value(f"{state}_x", None), value(f"{state}_y", None)]
        names = [f"{state}_next", f"{state}_y_next", f"{state}_slice"]
        return graph_of(
            nodes, inputs, [value(f"{state}_still", [], BOOL), *(value(name, None) for name in names)]
        )

    branches = {
        "then_branch": graph_of([node("MatMul", ["r", "d"], ["u"])], [], [value("u", None)]),
        "else_branch": graph_of([node("MatMul", ["p", "e"], ["v"])], [], [value("v", None)]),
    }
    nodes = [
        node("MatMul", ["x", "a"], ["p"]),
        node("Loop", ["count", "", "x", "x"], ["l1", "m1", "s1"], body=looped("p", "b", "first")),
        node("MatMul", ["p", "c"], ["q"]),
        node("Loop", ["count", "", "x", "q"], ["l2", "m2", "s2"], body=looped("q", "d", "second")),
        node("MatMul", ["m1", "e"], ["r"]),
        node("If", ["k"], ["z"], **branches),
        node("Add", ["z", "m2"], ["y"]),
    ]
    program = compiled(
        nodes,
        [value("k", [], BOOL), value("x", [batch, 8])],
        [value("y", [batch, 8]), value("s1", [4, batch, 8]), value("s2", [4, batch, 8])],
        {"count": np.int64(4), **weights},
    )
    x = rng.standard_normal((3, 8)).astype(np.float32)
    wide = {name: weight.astype(np.float64) for name, weight in weights.items()}

    def run(captured: Array, weight: Array, first: Array, second: Array) -> tuple[Array, Array]:
        slices = []
        for _ in range(4):
            first = np.tanh(first @ weight.T + captured)
            second = first - second
            slices.append(second)
        return second, np.stack(slices)

    p = x @ wide["a"]
    m1, s1 = run(p, wide["b"], x, x)
    q = p @ wide["c"]
    m2, s2 = run(q, wide["d"], x, q)
    for truth in (True, False):
        z = m1 @ wide["e"] @ wide["d"] if truth else p @ wide["e"]
        for ours, exact in zip(program(np.bool_(truth), x), (z + m2, s1, s2), strict=True):
            np.testing.assert_allclose(ours, exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.uint8, np.bool_])
def test_states_of_other_types(dtype: Any) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    op = "Xor" if dtype is np.bool_ else "Add"
    body = graph_of(
        [
            node(op, ["x", "step"], ["next"]),
            node("Identity", ["next"], ["s"]),
            node("Identity", ["g"], ["still"]),
        ],
        [value("i", [], INT64), value("g", [], BOOL), value("x", [3], kind)],
        [value("still", [], BOOL), value("next", [3], kind), value("s", [3], kind)],
    )
    program = compiled(
        [node("Loop", ["count", "", "x0"], ["y", "all"], body=body)],
        [value("x0", [3], kind), value("step", [3], kind)],
        [value("y", [3], kind), value("all", [3, 3], kind)],
        {"count": np.int64(3)},
    )
    x, step = np.array([1, 0, 250]).astype(dtype), np.array([1, 1, 3]).astype(dtype)
    slices = [x ^ step, x, x ^ step] if dtype is np.bool_ else [x + step, x + 2 * step, x + 3 * step]
    slices = [np.asarray(s, dtype) for s in slices]
    equal(program(x, step), slices[-1], np.stack(slices))


def test_a_sequence_as_state_is_refused() -> None:
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [3]))
    body = graph_of(
        [node("SequenceInsert", ["s", "x"], ["longer"]), node("Identity", ["g"], ["still"])],
        [value("i", [], INT64), value("g", [], BOOL), helper.make_value_info("s", kind)],
        [value("still", [], BOOL), helper.make_value_info("longer", kind)],
    )
    nodes = [
        node("SequenceConstruct", ["x"], ["s0"]),
        node("Loop", ["count", "", "s0"], ["s1"], body=body),
        node("ConcatFromSequence", ["s1"], ["y"], axis=0),
    ]
    with pytest.raises(tilewright.ModelError, match=r"'s1'.*no tensor"):
        compiled(nodes, [value("x", [3])], [value("y", [None])], {"count": np.int64(2)})


# Scan: a running sum of one input, times the other one.


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


def test_scan_without_states() -> None:
    body = graph_of([node("Mul", ["a", "a"], ["square"])], [value("a", None)], [value("square", None)])
    program = compiled(
        [node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1, scan_output_directions=[1])],
        [value("x", [4, 3])],
        [value("y", [4, 3])],
    )
    x = np.random.default_rng(4).standard_normal((4, 3)).astype(np.float32)
    equal(program(x), (x * x)[::-1])


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


def test_sequence_lengths_of_scan_8_are_refused() -> None:
    with pytest.raises(tilewright.ModelError, match="'last': a Scan of opset 8 with sequence lengths"):
        scan_of_opset_8("lens")


# If


def branch(op: str, operand: str = "x", shape: Shape = None, **attributes: Any) -> GraphProto:
    name = f"{op}_of_{operand}"
    return graph_of([node(op, [operand], [name], **attributes)], [], [value(name, shape)])


def test_if_chooses_when_the_program_runs() -> None:
    choice = node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Abs"))
    program = compiled([choice], [value("c", [1], BOOL), value("x", [3])], [value("y", [3])])
    x = np.array([1, -2, 3], np.float32)
    equal(program(np.array([True]), x), -x)
    equal(program(np.array([False]), x), np.abs(x))


def test_branches_may_differ_in_a_length() -> None:
    """The result has a dim of unknown length, and what reads it, too."""
    joined = graph_of([node("Concat", ["x", "x"], ["twice"], axis=0)], [], [value("twice", None)])
    nodes = [
        node("If", ["c"], ["z"], then_branch=joined, else_branch=branch("Abs")),
        node("Neg", ["z"], ["y"]),
    ]
    program = compiled(nodes, [value("c", [], BOOL), value("x", [3])], [value("y", [None])])
    x = np.array([1, -2, 3], np.float32)
    equal(program(np.True_, x), -np.concatenate([x, x]))
    equal(program(np.False_, x), -np.abs(x))


def test_branches_of_different_ranks_are_refused() -> None:
    flat = graph_of([node("ReduceSum", ["x"], ["sum"], keepdims=0)], [], [value("sum", None)])
    choice = node("If", ["c"], ["y"], then_branch=flat, else_branch=branch("Abs"))
    with pytest.raises(tilewright.ModelError, match="'y': the branches of an If give 'y' different ranks"):
        compiled([choice], [value("c", [], BOOL), value("x", [3])], [value("y", [None])])


@pytest.mark.parametrize("truth", [True, False])
def test_a_constant_condition_in_a_body_leaves_one_branch(truth: bool) -> None:  # noqa: FBT001
    """The other branch may have any shape."""
    flat = graph_of([node("ReduceSum", ["x"], ["sum"], keepdims=0)], [], [value("sum", None)])
    branches = {"then_branch": branch("Neg"), "else_branch": flat}
    if not truth:
        branches = {"then_branch": flat, "else_branch": branch("Neg")}
    body = graph_of(
        [node("If", ["c"], ["next"], **branches), node("Identity", ["g"], ["still"])],
        [value("i", [], INT64), value("g", [], BOOL), value("x", [3])],
        [value("still", [], BOOL), value("next", [3])],
    )
    program = compiled(
        [node("Loop", ["count", "", "x0"], ["y"], body=body)],
        [value("x0", [3])],
        [value("y", [3])],
        {"count": np.int64(3), "c": np.bool_(truth)},
    )
    equal(program(START), -START)


def test_if_in_a_loop_in_an_if() -> None:
    """Even iterations double, odd ones negate; the body and its branches capture values of all graphs around them."""
    doubled = graph_of([node("Add", ["x", "x"], ["twice"])], [], [value("twice", None)])
    body = graph_of(
        [
            node("Mod", ["i", "two"], ["parity"]),
            node("Equal", ["parity", "zero"], ["is_even"]),
            node("If", ["is_even"], ["z"], then_branch=doubled, else_branch=branch("Neg")),
            node("Add", ["z", "w"], ["next"]),
            node("Identity", ["g"], ["still"]),
        ],
        [value("i", [], INT64), value("g", [], BOOL), value("x", None)],
        [value("still", [], BOOL), value("next", None)],
        {"zero": np.int64(0), "two": np.int64(2)},
    )
    looped = graph_of([node("Loop", ["count", "", "x0"], ["looped"], body=body)], [], [value("looped", None)])
    choice = node("If", ["c"], ["y"], then_branch=looped, else_branch=branch("Abs", "x0"))
    inputs = [value("c", [], BOOL), value("x0", [3]), value("count", [], INT64)]
    program = compiled([choice], inputs, [value("y", [3])], {"w": W})
    x = START.astype(np.float64)
    for step in range(5):
        x = (2 * x if step % 2 == 0 else -x) + W
    equal(program(np.True_, START, np.int64(5)), x)
    equal(program(np.False_, START, np.int64(5)), np.abs(START))
