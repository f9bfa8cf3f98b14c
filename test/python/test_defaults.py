"""Initializers that are inputs, too: defaults that callers may override."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import TensorProto, helper
from tilewright.errors import InputError
from tilewright.reference.oracle import float64_reference
from tilewright.runtime.inputs import random_inputs, read_arrays

Array = np.ndarray[Any, Any]

_SIZE = 300  # more than stays in the graph as a constant
_X = np.linspace(-1, 1, _SIZE).astype(np.float32)
_SCALE, _SHIFT = np.full(_SIZE, 2, np.float32), np.full(_SIZE, 5, np.float32)


def _model(*, ir_version: int = 8) -> onnx.ModelProto:
    """Returns a model of x · scale + shift; scale and shift are initializers and inputs, before and behind x."""
    nodes = [helper.make_node("Mul", ["x", "scale"], ["p"]), helper.make_node("Add", ["p", "shift"], ["y"])]
    inputs = [value(name, [_SIZE]) for name in ("scale", "x", "shift")]
    model = make_model(nodes, inputs, [value("y", [_SIZE])], {"scale": _SCALE, "shift": _SHIFT})
    model.ir_version = ir_version
    return model


@pytest.fixture(scope="module")
def program() -> tilewright.Program:
    return tilewright.compile(_model(), threads=1)


def test_the_signature_has_defaults_behind_other_inputs(program: tilewright.Program) -> None:
    assert program.signature is not None
    assert [(spec.name, spec.has_default) for spec in program.signature.inputs] == [
        ("x", False),
        ("scale", True),
        ("shift", True),
    ]


def test_a_caller_may_leave_defaults_out(program: tilewright.Program) -> None:
    np.testing.assert_allclose(program(_X)[0], _X * 2 + 5, rtol=1e-6)
    np.testing.assert_allclose(program(_X, _X)[0], _X * _X + 5, rtol=1e-6)
    np.testing.assert_allclose(program(_X, _X, _X)[0], _X * _X + _X, rtol=1e-6)
    np.testing.assert_allclose(program(_X)[0], _X * 2 + 5, rtol=1e-6)


def test_defaults_need_no_iree(program: tilewright.Program) -> None:
    assert program.runtime == "direct"
    for arrays in ([_X], [_X, _X], [_X, _X, _X]):
        assert program(*arrays)[0].tobytes() == program.session()(arrays, program.signature)[0].tobytes()
    call = program.bind(_X)
    call()
    np.testing.assert_array_equal(call.outputs()[0], program(_X)[0])


def test_a_default_in_the_middle_is_left_out_by_name(program: tilewright.Program) -> None:
    np.testing.assert_allclose(program(_X, shift=_X)[0], _X * 2 + _X, rtol=1e-6)
    np.testing.assert_allclose(program(x=_X, scale=_X)[0], _X * _X + 5, rtol=1e-6)


@pytest.mark.parametrize(
    ("arrays", "named", "said"),
    [
        ((), {}, "0 inputs were given but the program takes 1 to 3"),
        ((_X,), {"x": _X}, "'x' was given by name, but no input that is left has this name"),
        ((_X,), {"bias": _X}, "'bias' was given by name"),
        ((), {"scale": _X}, "input 'x' is missing"),
    ],
)
def test_wrong_names_and_numbers_are_refused(
    program: tilewright.Program, arrays: tuple[Array, ...], named: dict[str, Array], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        program(*arrays, **named)


def test_a_note_says_what_a_default_costs(program: tilewright.Program) -> None:
    assert any(
        "both an initializer and an input of the model (2: " in note for note in program.metadata.notes
    )


def test_a_saved_program_keeps_its_defaults(program: tilewright.Program, tmp_path: Path) -> None:
    loaded = tilewright.load(program.save(tmp_path / "model.vmfb"))
    assert loaded.signature == program.signature
    np.testing.assert_allclose(loaded(_X, _X)[0], _X * _X + 5, rtol=1e-6)


def test_before_version_4_an_initializer_is_a_constant() -> None:
    program = tilewright.compile(_model(ir_version=3), threads=1)
    assert program.signature is not None
    assert [spec.name for spec in program.signature.inputs] == ["x"]
    np.testing.assert_allclose(program(_X)[0], _X * 2 + 5, rtol=1e-6)


def test_integers_stay_constants() -> None:
    inputs = [value("x", [6]), value("shape", [2], TensorProto.INT64)]
    reshape = helper.make_node("Reshape", ["x", "shape"], ["y"])
    model = make_model([reshape], inputs, [value("y", [2, 3])], {"shape": np.array([2, 3])})
    program = tilewright.compile(model, threads=1)
    assert program.signature is not None
    assert [spec.name for spec in program.signature.inputs] == ["x"]
    assert program(np.zeros(6, np.float32))[0].shape == (2, 3)


def test_what_must_be_constant_is_with_a_note() -> None:
    resize = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest")
    inputs = [value("x", [1, 1, 2, 2]), value("scales", [4])]
    scales = np.array([1, 1, 2, 2], np.float32)
    model = make_model([resize], inputs, [value("y", [1, 1, 4, 4])], {"scales": scales})
    program = tilewright.compile(model, threads=1)
    assert any("no initializer can be overridden" in note for note in program.metadata.notes)
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    np.testing.assert_array_equal(program(x)[0], x.repeat(2, 2).repeat(2, 3))


def test_defaults_are_not_drawn_at_random(program: tilewright.Program) -> None:
    assert program.signature is not None
    inputs = random_inputs(program.signature)
    assert len(inputs) == 1
    (expected,) = float64_reference(_model(), inputs)
    np.testing.assert_allclose(program(*inputs)[0], expected, rtol=1e-6)


def test_the_reference_takes_overriding_values(program: tilewright.Program) -> None:
    (expected,) = float64_reference(_model(), [_X, _X])
    np.testing.assert_allclose(program(_X, _X)[0], expected, rtol=1e-6)


def test_files_may_leave_defaults_out(program: tilewright.Program, tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", scale=_X, x=_SHIFT)
    read = read_arrays([tmp_path / "one.npz"], program.signature)
    np.testing.assert_array_equal(read, [_SHIFT, _X])
    np.savez(tmp_path / "gap.npz", x=_X, shift=_X)
    with pytest.raises(InputError, match="'shift' is given without 'scale'"):
        read_arrays([tmp_path / "gap.npz"], program.signature)
