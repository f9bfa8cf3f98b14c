"""IR as Python objects: what would be invalid raises, and leaves the module as it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ir_modules import NEGATIONS, PLANNED, first, names
from tilewright import IrError, Module, PassError, ir
from tilewright.dialects import func, tile


@pytest.fixture
def module() -> Module:
    return Module.parse(NEGATIONS)


@pytest.fixture
def planned() -> Module:
    return Module.parse(PLANNED, name="planned.mlir")


# The error says what MLIR says, where the builder was, and leaves nothing half-built in the module.
def test_an_invalid_operation_raises_with_the_message_of_mlir_and_its_location(module: Module) -> None:
    add = first(module, "arith.addf").operation
    with ir.InsertionPoint(add):
        where = ir.Location.file("mine.py", 3, 4)
        i32 = ir.Type.parse("i32")
        with pytest.raises(
            IrError, match=r"^mine\.py:3:4: .*op result #0 must be floating-point-like"
        ) as raised:
            ir.Operation.create("arith.negf", results=[i32], operands=[add.operands[0]], loc=where)
    assert raised.value.operation == "arith.negf"
    assert raised.value.location == "mine.py:3:4"
    assert names(module.operation).count("arith.negf") == 2  # nothing is left behind


# The dialect's own constraints are checked when an expression is built, by their number.
def test_an_expression_that_breaks_a_constraint_raises_and_is_not_left_behind(module: Module) -> None:
    with ir.InsertionPoint(module.operation.regions[0][0]):
        rows = ir.RankedTensorType.get([5, 7], ir.Type.parse("f32"))
        function = func.FuncOp("outside", ir.TypeAttr.get(ir.FunctionType.get([rows], [rows])))
        entry = function.regions[0].append_block([rows])
    with pytest.raises(IrError, match=r"op E2: input 0 is read at \[1, 5\]") as raised:
        tile.tensor_expr(
            [rows],
            entry.arguments,
            lambda element: element,
            domain=[5, 7],
            maps=["(d0, d1) -> (d0 + 1, d1)"],
            result_maps=["(d0, d1) -> (d0, d1)"],
            ip=ir.InsertionPoint(entry),
        )
    assert raised.value.operation == "tile.expr"
    assert entry.operations == []


# Bad text and bad numbers raise, and do not end the process, as MLIR's assertions would.
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tile.Tiling(tile.Scope.block, (0,), (0,)).attribute(), "A1: tile sizes"),
        (lambda: tile.Tiling(tile.Scope.block, (4, 4), (0, 0)).attribute(), "A2: order"),
        (lambda: tile.Gemm(3, 1, step=8, stages=2).attribute(), "A4: m must be a power of two"),
        (lambda: tile.Blocking(17).attribute(), "A10: vectors must be between 1 and 16, not 17"),
        (lambda: ir.Attribute.parse("#tile.nothing"), "unknown attribute"),
        (lambda: ir.Type.parse("tensor<4x"), "expected"),
        (lambda: ir.AffineMap.parse("(d0) -> (d1)"), "undeclared identifier"),
        (lambda: ir.VectorType.get([-3], ir.Type.parse("f32")), "vector types must have positive"),
        (lambda: ir.Operation.parse("arith.nothing"), "arith.nothing"),
        (lambda: ir.IntegerAttr.get(ir.IntegerType.get_signless(8), 256), "does not fit into 8 bits"),
        (lambda: ir.AffineMap.get(1, [ir.AffineExpr.dim(1)]), "a dim that the map does not have"),
        (lambda: ir.AffineMap.identity(2).results[0].value, "only a constant"),
    ],
)
def test_what_is_no_attribute_type_or_operation_raises(build: Callable[[], object], message: str) -> None:
    with ir.Context(), pytest.raises(IrError, match=message):
        build()


# Objects of two contexts share no memory, so that mixing them must be refused.
def test_objects_of_different_contexts_do_not_mix(module: Module) -> None:
    other = Module.parse(NEGATIONS)
    add = first(module, "arith.addf").operation
    with pytest.raises(IrError, match="different contexts"):
        add.operands[0] = first(other, "arith.addf").operands[0]
    with other.context, pytest.raises(IrError, match="different contexts"):
        add.attributes["x"] = ir.StringAttr.get("y")


# The first mistake of a newcomer has its remedy in the message.
def test_without_a_context_the_error_says_how_to_give_one() -> None:
    with pytest.raises(IrError, match="with` block"):
        ir.StringAttr.get("x")


# Erasing it would leave uses of a value that is gone.
def test_an_operation_whose_results_are_used_cannot_be_erased(module: Module) -> None:
    with pytest.raises(IrError, match="replace them first"):
        first(module, "arith.negf").erase()


# The same holds for values inside, which invalid IR can use from outside.
def test_an_operation_is_not_erased_while_its_inside_is_used_elsewhere(planned: Module) -> None:
    inner, outer = planned.operation.walk("tile.expr")
    mul = next(outer.walk("arith.mulf"))
    mul.operands[0] = next(inner.walk("arith.addf")).result  # invalid, but not yet verified
    with pytest.raises(IrError, match="cannot be erased"):
        first(planned, "tile.subprogram").regions[0][0].operations[0].erase()
    with pytest.raises(IrError, match="does not dominate"):
        planned.operation.verify()


# Deleting an attribute that has a default is not an error in MLIR, and reads as the default.
def test_a_deleted_attribute_with_a_default_gets_it(module: Module) -> None:
    add = first(module, "arith.addf").operation
    with module.context:
        add.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<fast>")
    del add.attributes["fastmath"]
    assert str(add.attributes["fastmath"]) == "#arith.fastmath<none>"
    assert str(add).endswith("arith.addf %1, %arg1 : f32")


# Verifiers and printers read the surrounding operation, which may be the one that is broken.
def test_an_operation_inside_an_invalid_one_is_verified_and_printed(module: Module) -> None:
    function = first(module, "func.func").operation
    back = next(module.operation.walk("func.return"))
    del function.attributes["function_type"]  # which the verifier of func.return reads
    with pytest.raises(IrError, match=r"'func\.func' op requires attribute 'function_type'"):
        back.verify()
    assert str(back).startswith('"func.return"')
    with pytest.raises(PassError, match="requires attribute 'function_type'"):
        module.run("builtin.module(canonicalize)")


# The value would be erased with the operation.
def test_an_operation_is_not_replaced_by_a_value_inside_it(planned: Module) -> None:
    group = first(planned, "tile.subprogram")
    with pytest.raises(IrError, match="a value of the operation itself"):
        group.replace(group.regions[0][0].arguments[0])


# MLIR verifies functions in several threads; the message must reach the thread that asked, and stderr stays clean.
def test_an_error_in_one_of_many_functions_is_raised_with_its_message(
    capfd: pytest.CaptureFixture[str],
) -> None:
    functions = Module.parse("".join(NEGATIONS.replace("@", f"@f{i}_") for i in range(9)))
    for function in list(functions.operation.walk("func.func"))[4:]:
        function.regions[0][0].operations[-1].erase()  # MLIR verifies functions on several threads
    with pytest.raises(IrError, match="block with no terminator"):
        functions.operation.verify()
    assert capfd.readouterr().err == ""


# A failed assignment changes nothing.
def test_an_attribute_of_another_kind_is_refused_and_the_old_one_stays(planned: Module) -> None:
    group = first(planned, "tile.subprogram")
    with planned.context, pytest.raises(IrError, match="'tiles' is of another kind"):
        group.tiles = ir.StringAttr.get("wide")
    assert group.tiles.value == [1, 7]


# The module owns itself, and other handles refer to it.
def test_the_module_itself_cannot_be_erased(module: Module) -> None:
    with pytest.raises(IrError, match="outermost"):
        module.operation.erase()


# Readers of the old result would get a value that they cannot take.
def test_an_operation_is_not_replaced_by_values_of_another_type(planned: Module) -> None:
    exprs = list(planned.operation.walk("tile.expr"))
    with pytest.raises(IrError, match="another type"):
        exprs[1].replace(exprs[0].result)
