"""State that stays on the device: outputs that continue inputs in place."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from click.testing import CliRunner
from conftest import make_model, value
from onnx import TensorProto, helper
from tilewright.cli.main import cli
from tilewright.records.signature import TensorSpec

Array = np.ndarray[Any, Any]

_BATCH, _HEADS, _MAX, _SIZE = 2, 3, 11, 5
_CACHE = (_BATCH, _HEADS, _MAX, _SIZE)
_NEW = (_BATCH, _HEADS, 1, _SIZE)
_STATE = {"present": "past"}


def _position() -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info("position", TensorProto.INT64, [1])


def _appending(form: str, *, late_reader: bool = False) -> onnx.ModelProto:
    """Returns a model that appends a position to a cache [batch, heads, max, size] and multiplies the cache with a
    query."""
    constants: dict[str, Array] = {}
    if form == "elements":
        constants |= {"ones": np.array([1, 1, 1, 1]), "shape": np.array(_NEW)}
        nodes = [
            helper.make_node("Reshape", ["position", "ones"], ["one"]),
            helper.make_node("Expand", ["one", "shape"], ["index"]),
            helper.make_node("ScatterElements", ["past", "index", "new"], ["present"], axis=2),
        ]
    elif form == "tuples":
        places = np.stack(np.meshgrid(np.arange(_BATCH), np.arange(_HEADS), [0], indexing="ij"), axis=-1)
        constants |= {"places": places, "last": np.array([0, 0, 1])}
        nodes = [
            helper.make_node("Mul", ["position", "last"], ["offset"]),
            helper.make_node("Add", ["places", "offset"], ["index"]),
            helper.make_node("ScatterND", ["past", "index", "new"], ["present"]),
        ]
    else:
        constants |= {"starts": np.array([_BATCH])}
        nodes = [
            helper.make_node("Expand", ["position", "starts"], ["start"]),
            helper.make_node("TensorScatter", ["past", "new", "start"], ["present"], axis=2, mode=form),
        ]
    nodes += [
        helper.make_node("Transpose", ["present"], ["columns"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["query", "columns"], ["scores"]),
    ]
    inputs = [value("past", _CACHE), value("new", _NEW), value("query", _NEW), _position()]
    outputs = [value("present", _CACHE), value("scores", (_BATCH, _HEADS, 1, _MAX))]
    if late_reader:
        nodes.append(helper.make_node("Sub", ["present", "past"], ["difference"]))
        outputs.append(value("difference", _CACHE))
    opset = 24 if form in ("linear", "circular") else 20
    return make_model(nodes, inputs, outputs, constants, opset=opset)


@functools.cache  # compiled once for all tests
def _program(form: str) -> tilewright.Program:
    return tilewright.compile(_appending(form), threads=1, state=_STATE)


def _draw(seed: int) -> list[Array]:
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape, dtype=np.float32) for shape in (_CACHE, _NEW, _NEW)]


@pytest.mark.parametrize("form", ["elements", "tuples", "linear"])
def test_a_cache_goes_on_from_step_to_step(form: str) -> None:
    program = _program(form)
    past, _, _ = _draw(0)
    before = past.copy()
    steps = program.steps(past=past)
    began = steps._held["past"]
    cache = past.copy()
    for position in (4, 0, 10, 4):
        _, new, query = _draw(position + 1)
        (scores,) = steps(new, query, np.array([position]))
        cache[:, :, position] = new[:, :, 0]
        np.testing.assert_array_equal(steps.state("past"), cache)
        np.testing.assert_allclose(scores, query @ cache.swapaxes(2, 3), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(past, before)
    # The state still has its first buffer.
    np.testing.assert_array_equal(steps._session.read(began, TensorSpec("past", "float32", _CACHE)), cache)


def test_state_begins_with_zeros_and_each_has_its_own() -> None:
    program = _program("elements")
    first, second = program.steps(), program.steps()
    _, new, query = _draw(3)
    first(new, query, np.array([2]))
    assert np.count_nonzero(first.state("past")) == new.size
    assert not second.state("past").any()


def test_state_survives_saving(tmp_path: Path) -> None:
    program = _program("elements")
    assert "state: present continues past in place" in program.explain()
    loaded = tilewright.load(program.save(tmp_path / "step.vmfb"))
    steps = loaded.steps()
    _, new, query = _draw(4)
    steps(new, query, np.array([1]))
    np.testing.assert_array_equal(steps.state("past")[:, :, 1], new[:, :, 0])


@pytest.mark.parametrize("form", ["elements", "tuples", "linear", "circular"])
@pytest.mark.parametrize("position", [0, _MAX - 1, -1, _MAX + 2])
def test_positions_outside_stay_inside(form: str, position: int) -> None:
    if form in ("linear", "circular") and position < 0:
        pytest.skip("TensorScatter counts from the front only")
    past, new, query = _draw(5)
    present, _ = _program(form)(past, new, query, np.array([position]))
    expected = past.copy()
    expected[:, :, position % _MAX if form == "circular" else min(position, _MAX - 1)] = new[:, :, 0]
    np.testing.assert_array_equal(present, expected)


@pytest.mark.parametrize("target", ["cuda:h200", "cuda:a100"])
def test_a_gpu_updates_in_place_too(target: str) -> None:
    program = tilewright.compile(_appending("elements"), target, state=_STATE)
    assert program.metadata.state == _STATE


def test_what_would_be_copied_is_refused() -> None:
    with pytest.raises(tilewright.CompileError, match="'present' cannot continue input 'past' in place"):
        tilewright.compile(_appending("elements", late_reader=True), threads=1, state=_STATE)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"presents": "past"}, "no output is called 'presents'"),
        ({"present": "pasts"}, "no input is called 'pasts'"),
        ({"scores": "past"}, r"scores: float32\[2x3x1x11\] cannot continue past"),
        ({"present": "past", "again": "past"}, "no output is called 'again'"),
    ],
)
def test_state_that_does_not_fit_is_refused(state: dict[str, str], message: str) -> None:
    with pytest.raises(tilewright.CompileError, match=message):
        tilewright.compile(_appending("elements"), threads=1, state=state)


def test_steps_are_refused_what_they_do_not_take() -> None:
    program = _program("elements")
    with pytest.raises(tilewright.InputError, match="'new' is not state; state is: past"):
        program.steps(new=np.zeros(_NEW, np.float32))
    with pytest.raises(tilewright.InputError, match="shape"):
        program.steps(past=np.zeros(_NEW, np.float32))
    with pytest.raises(tilewright.InputError, match="'scores' is not state"):
        program.steps().state("scores")
    with pytest.raises(tilewright.ProgramError, match="it has no state"):
        tilewright.compile(_appending("circular"), threads=1).steps()


def _scattering(index: Array, *, opset: int, data: tuple[int | str, ...] = (6, 4)) -> onnx.ModelProto:
    """Returns a model that replaces rows of a matrix."""
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"])
    inputs = [value("x", data), value("u", (len(index), 4))]
    return make_model([node], inputs, [value("y", data)], {"i": index}, opset=opset)


@pytest.mark.parametrize(("opset", "data"), [(11, (6, 4)), (18, (6, 4)), (18, ("m", 4))])
def test_rows_are_counted_from_the_end(opset: int, data: tuple[int | str, ...]) -> None:
    x, new = np.arange(24, dtype=np.float32).reshape(6, 4), np.full((2, 4), -1, np.float32)
    model = _scattering(np.array([[1], [-2]]), opset=opset, data=data)
    (result,) = tilewright.compile(model, threads=1)(x, new)
    x[[1, -2]] = new
    np.testing.assert_array_equal(result, x)


@pytest.mark.parametrize("kind", ["two operands", "no result", "a scalar", "more indices than dims"])
def test_malformed_scatters_are_clean_errors(kind: str) -> None:
    index = np.ones((2, 3), np.int64) if kind == "more indices than dims" else np.array([[1], [2]])
    model = _scattering(index, opset=18)
    if kind == "two operands":
        del model.graph.node[0].input[2]
    if kind == "no result":
        del model.graph.node[0].output[:]
    if kind == "a scalar":
        del model.graph.input[0].type.tensor_type.shape.dim[:]
    with pytest.raises(tilewright.TilewrightError):
        tilewright.compile(model, threads=1)


def test_named_dims_are_the_same_in_state_and_inputs() -> None:
    nodes = [
        helper.make_node("ScatterND", ["past", "i", "u"], ["present"]),
        helper.make_node("Add", ["present", "mask"], ["sum"]),
    ]
    inputs = [value("past", ("m", 4)), value("u", (1, 4)), value("mask", ("m", 4))]
    outputs = [value("present", ("m", 4)), value("sum", ("m", 4))]
    model = make_model(nodes, inputs, outputs, {"i": np.array([[1]])})
    steps = tilewright.compile(model, threads=1, state=_STATE).steps(past=np.zeros((6, 4), np.float32))
    row = np.ones((1, 4), np.float32)
    assert steps(row, np.zeros((6, 4), np.float32))[0].sum() == 4
    with pytest.raises(tilewright.InputError, match="mask"):
        steps(row, np.zeros((3, 4), np.float32))


def test_state_is_a_mapping() -> None:
    with pytest.raises(tilewright.CompileError, match="state is not a mapping"):
        tilewright.compile(_appending("elements"), threads=1, state=["present"])  # type: ignore[arg-type]


def test_the_command_line_names_state(tmp_path: Path) -> None:
    onnx.save(_appending("elements"), tmp_path / "step.onnx")
    arguments = ["compile", str(tmp_path / "step.onnx"), "-o", str(tmp_path / "step.vmfb")]
    result = CliRunner().invoke(cli, [*arguments, "--state", "present=past"])
    assert result.exit_code == 0, result.output
    assert tilewright.load(tmp_path / "step.vmfb").metadata.state == _STATE
    assert (
        "not of the form OUTPUT=INPUT" in CliRunner().invoke(cli, [*arguments, "--state", "present"]).output
    )


def _with_open_batch(*, late_reader: bool = False) -> onnx.ModelProto:
    """Returns a model that writes one row of a cache [batch, max, size], and multiplies the cache."""
    nodes = [
        helper.make_node("ScatterND", ["past", "place", "new"], ["present"]),
        helper.make_node("MatMul", ["present", "query"], ["scores"]),
    ]
    cache = ["batch", _MAX, _SIZE]
    inputs = [value("past", cache), value("new", [1, _SIZE]), value("query", [_SIZE, 3])]
    inputs.append(value("place", [1, 2], TensorProto.INT64))
    outputs = [value("present", cache), value("scores", ["batch", _MAX, 3])]
    if late_reader:
        nodes.append(helper.make_node("Sub", ["present", "past"], ["difference"]))
        outputs.append(value("difference", cache))
    return make_model(nodes, inputs, outputs)


def test_a_dynamic_program_that_copies_its_state_says_so_and_shapes_are_refused() -> None:
    program = tilewright.compile(_with_open_batch(late_reader=True), threads=1, state=_STATE)
    assert "note: IREE's dynamic program copies its state" in program.explain()
    with pytest.raises(tilewright.CompileError, match="cannot continue input 'past' in place"):
        program.build(batch=2)


def test_state_of_an_open_dim_is_updated_in_place_by_the_kernels_of_a_shape() -> None:
    program = tilewright.compile(_with_open_batch(), threads=1, state=_STATE)
    program.build(batch=4)
    assert "copies its state" not in program.explain()
    generator = np.random.default_rng(0)
    past, query = (
        generator.standard_normal(shape, dtype=np.float32) for shape in ((4, _MAX, _SIZE), (_SIZE, 3))
    )
    for batch in (4, 3):
        steps = program.steps(past=past[:batch])
        expected = past[:batch].copy()
        for row, position in ((1, 4), (2, 0)):
            new = generator.standard_normal((1, _SIZE), dtype=np.float32)
            (scores,) = steps(new, query, np.array([[row, position]]))
            expected[row, position] = new[0]
            np.testing.assert_array_equal(steps.state("past"), expected)
            np.testing.assert_allclose(scores, expected @ query, rtol=1e-4, atol=1e-5)
    assert [(shape.sizes["batch"], shape.calls) for shape in program.shapes] == [(4, 1), (3, 1)]
