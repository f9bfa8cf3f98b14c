"""Shapes that the program of a larger one computes, because each row is computed by itself."""

from __future__ import annotations

from typing import Any

import pytest
from dynamic_models import assert_right, encoder, inputs_of, mlp
from open_dims_cases import cache as cache
from open_dims_cases import compile as compile
from open_dims_cases import settle
from tilewright.system.deadline import Deadline

pytestmark = pytest.mark.usefixtures("full_priority")


def _why_not(program: Any, sizes: dict[str, int], larger: dict[str, int]) -> Any:
    return program._shapes._compile.rows(sizes, larger, background_deadline=Deadline(None))


def test_hardly_fewer_rows_are_filled_up_for_good(compile: Any) -> None:
    model = encoder()
    program = compile(model)
    program.build(batch=11, seq=7)
    inputs = inputs_of(model, 10, 7)
    program(*inputs)
    settle(program)
    assert_right(model, inputs, program(*inputs))
    [large, small] = sorted(program.shapes, key=lambda shape: -shape.sizes["batch"])
    assert (large.state, small.state) == ("ready", "covered")
    assert "filled up to batch=11, seq=7, as each row is computed by itself" in program.explain()


def test_far_fewer_rows_get_a_program_of_their_own(compile: Any) -> None:
    model = mlp()
    program = compile(model)
    program.build({"x.0": 32})
    inputs = inputs_of(model, 16)
    program(*inputs)
    settle(program)
    assert_right(model, inputs, program(*inputs))
    assert {shape.state for shape in program.shapes} == {"ready"}


def test_fewer_rows_are_filled_up_where_there_is_no_room(
    compile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = mlp()
    program = compile(model)
    program.build({"x.0": 32})
    monkeypatch.setattr(program._shapes, "_most", 1)
    inputs = inputs_of(model, 16)
    program(*inputs)
    settle(program)
    [shape] = [shape for shape in program.shapes if shape.sizes["x.0"] == 16]
    assert shape.bucket is not None and shape.program is None
    found = program._find(inputs)
    assert found is shape.bucket
    assert_right(model, inputs, found.cut(found.program(*found.filled(inputs))))


@pytest.mark.parametrize("batch", [1, 3])
def test_the_rows_of_a_batch_are_independent(compile: Any, batch: int) -> None:
    program = compile(encoder())
    rows = _why_not(program, {"batch": batch, "seq": 7}, {"batch": 4, "seq": 7})
    assert not isinstance(rows, str), rows
    assert rows.inputs == (0, 0) and rows.outputs == ((0, batch),)


def test_a_sequence_that_attends_to_itself_is_not_filled_up(compile: Any) -> None:
    program = compile(encoder())
    reason = _why_not(program, {"batch": 2, "seq": 7}, {"batch": 2, "seq": 8})
    assert isinstance(reason, str) and reason


def test_a_dim_that_is_refuted_once_is_not_tried_again(compile: Any) -> None:
    model = encoder()
    program = compile(model)
    program.build(batch=2, seq=8)
    program(*inputs_of(model, 2, 7))
    settle(program)
    program(*inputs_of(model, 2, 6))
    settle(program)
    assert [shape.state for shape in program.shapes] == ["ready"] * 3
    assert list(program._shapes._refuted) == ["seq"]
