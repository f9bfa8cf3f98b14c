"""IR as Python objects: operations, attributes, types and locations are read."""

from __future__ import annotations

from typing import Any

import pytest
from ir_modules import NEGATIONS, PLANNED, first, names
from test_module import SOFTMAX
from tilewright import Module, ir, passes
from tilewright.dialects import tile


@pytest.fixture
def module() -> Module:
    return Module.parse(NEGATIONS)


@pytest.fixture
def planned() -> Module:
    return Module.parse(PLANNED, name="planned.mlir")


# Analyses may rely on seeing an operation before what is inside it.
def test_a_walk_visits_every_operation_outermost_first(module: Module) -> None:
    expected = ["builtin.module", "func.func", "arith.negf", "arith.negf", "arith.addf", "func.return"]
    assert names(module.operation) == expected


# A plan in the IR is read without parsing text: tiles are lists, scopes enums, numerics a record.
def test_attributes_of_a_plan_are_python_values(planned: Module) -> None:
    group = first(planned, "tile.subprogram")
    assert type(group).__name__ == "SubprogramOp"
    assert (group.sym_name.value, group.extents.value, group.tiles.value) == ("sum_mul", [5, 7], [1, 7])
    assert (list(group.grid), group.vector.value, group.workgroups.value) == ([0], 1, 5)
    assert group.numerics.value == tile.Numerics(
        tile.Roundings.relaxed, tile.Math.fast, ("two-moment variance",)
    )
    assert group.target.value.name == "cpu"
    assert group.target.value.overrides.value["cores"].value == 2
    assert group.streamed is None


# Scopes compare by how far in the machine they are, so that passes need no table of their own.
def test_scopes_and_tilings_of_expressions_are_python_values(planned: Module) -> None:
    connect = first(planned, "tile.connect")
    assert connect.scope.value is tile.Scope.block
    assert tile.Scope.thread < connect.scope.value < tile.Scope.grid
    assert not connect.recompute
    tiling = first(planned, "tile.expr").tilings[0].value
    assert tiling == tile.Tiling(tile.Scope.block, (1, 7), (1, 0))


# Index maps and guards can be evaluated at a point, which is how a pass checks an access.
def test_maps_and_guards_are_objects(planned: Module) -> None:
    scaled = ir.view(list(planned.operation.walk("tile.expr"))[1])
    rows = scaled.maps[1].value
    assert str(rows) == "(d0, d1) -> (d0)"
    assert (rows.n_dims, rows.results[0].kind, rows.results[0].position) == (2, "dim", 0)
    assert rows.evaluate([3, 4]) == [3]
    guard = scaled.guards[0].value
    assert [guard.contains([2, j]) for j in (0, 1)] == [False, True]
    assert isinstance(scaled.guards[1], ir.UnitAttr)


# Division and remainder round down, as MLIR defines them, and not toward zero as C does.
def test_quasi_affine_expressions_have_their_value_below_zero() -> None:
    with ir.Context():
        i = ir.AffineExpr.dim(0)
        division = ir.AffineMap.get(1, [i // 4, i % 4, (i + 3) * 2])
        assert division.evaluate([-5]) == [-2, 3, -4]
        assert str(division) == "(d0) -> (d0 floordiv 4, d0 mod 4, (d0 + 3) * 2)"


# Types of the dialect have their parts as fields, like attributes.
def test_the_type_of_a_slice_is_a_python_value() -> None:
    with ir.Context():
        parsed = ir.Type.parse("!tile.slice<4x8xf32, block>")
        assert isinstance(parsed, ir.TileType)
        assert parsed.value == tile.Slice((4, 8), ir.Type.parse("f32"), tile.Space.block)


# A pass finds its way along values in both directions.
def test_values_know_their_owner_and_users(module: Module) -> None:
    inner, outer = module.operation.walk("arith.negf")
    assert [(use.owner, use.operand_number) for use in inner.result.uses] == [(outer, 0)]
    x = inner.operands[0]
    assert isinstance(x, ir.BlockArgument) and x.arg_number == 0
    assert isinstance(x.owner, ir.Block) and x.owner.arguments[0] == x
    assert outer.operands[0].owner == inner


# Messages of a pass in Python can name the place in the model.
def test_locations_name_the_place_in_the_model(planned: Module) -> None:
    assert str(first(planned, "tile.connect").location) == "planned.mlir:15:10"


# The result of a pass in C++ is read at once, without printing and parsing.
def test_an_output_of_a_stage_is_walked_in_place() -> None:
    softmax = Module.parse(SOFTMAX)
    passes.raise_tensor_exprs(softmax)
    domains = [ir.view(op).domain.value for op in softmax.operation.walk("tile.expr")]
    assert domains == [[7, 37]] * 4


# A pass that explains a plan reads where inputs are and which forms were taken.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("#tile.lifetime<workgroup>", tile.Lifetime.workgroup),
        ("#tile.access<direct>", tile.Access.direct),
        (
            '#tile.form<form = "winograd", number = 2, taken = false>',
            tile.OfferedForm(tile.Form.winograd, 2, False),
        ),
        (
            "#tile.blocking<vectors = 4, panel_k = 32, k_outermost = true>",
            tile.Blocking(4, panel_k=32, k_outermost=True),
        ),
    ],
)
def test_attributes_of_a_plan_outside_of_groups_are_python_values(text: str, value: object) -> None:
    with ir.Context():
        attribute = ir.Attribute.parse(text)
        assert isinstance(attribute, ir.TileAttr)
        assert attribute.value == value


FORM = tile.OfferedForm(
    tile.Form.twoPhaseReduction,
    3,
    True,
    ('a "sum"', "b"),
    {"dims": (1, 2), "parts": (4,)},
    "f32",
    True,
    2,
    1.25e-6,
    3e-6,
    "quicker",
    "nothing",
    ("x.py:1",),
)


@pytest.mark.parametrize(
    "value", [FORM, tile.Blocking(2, 3, 24, 1024, even_rows=8, wider_last=True)], ids=["form", "blocking"]
)
def test_a_value_makes_the_attribute_that_it_was_read_from(value: Any) -> None:
    with ir.Context():
        attribute = value.attribute()
        assert isinstance(attribute, ir.TileAttr)
        assert attribute.value == value
