"""IR as Python objects: operations are built, changed, moved and erased."""

from __future__ import annotations

import pytest
from ir_modules import NEGATIONS, PLANNED, first, names
from tilewright import Module, ir, passes
from tilewright.dialects import arith, func, tile
from tilewright.dialects import math as math_ops


@pytest.fixture
def module() -> Module:
    return Module.parse(NEGATIONS)


@pytest.fixture
def planned() -> Module:
    return Module.parse(PLANNED, name="planned.mlir")


# A tensor expression takes its body from a lambda, and the passes in C++ accept the result.
def test_an_expression_is_built_from_a_python_function(module: Module) -> None:
    with ir.InsertionPoint(module.operation.regions[0][0]):
        rows = ir.RankedTensorType.get([5, 7], ir.Type.parse("f32"))
        sums = ir.RankedTensorType.get([5], ir.Type.parse("f32"))
        function = func.FuncOp("sum_of_exp", ir.TypeAttr.get(ir.FunctionType.get([rows], [sums])))
        entry = function.regions[0].append_block([rows])
    with ir.InsertionPoint(entry):
        total = tile.tensor_expr(
            [sums],
            entry.arguments,
            lambda element, sum: arith.addf(sum, math_ops.exp(element)),
            domain=[5, 7],
            reductions=[1],
            maps=["(d0, d1) -> (d0, d1)"],
            result_maps=["(d0, d1) -> (d0)"],
            inits=[ir.FloatAttr.get(ir.Type.parse("f32"), 0.0)],
        )
        func.ReturnOp([total])
    module.verify()
    assert "math.exp" in str(total)
    passes.compose_exprs(module)
    assert [len(names(op)) for op in module.operation.walk("tile.expr")] == [4]


# A value that is read from an attribute can be written to one.
def test_an_attribute_of_the_dialect_is_built_from_its_value(planned: Module) -> None:
    expr = first(planned, "tile.expr")
    with planned.context:
        expr.tilings = ir.ArrayAttr.get([tile.Tiling(tile.Scope.thread, (1, 1), (0, 1)).attribute()])
        first(planned, "tile.connect").scope = ir.Attribute.parse(f"#tile.scope<{tile.Scope.thread}>")
    planned.verify()
    assert expr.tilings[0].value.level is tile.Scope.thread
    assert "<thread> : tensor<5xf32>" in planned.to_text()


# The plainest rewrite: another operand, and an operation that nothing reads any more.
def test_operands_can_be_replaced_and_operations_erased(module: Module) -> None:
    _, outer = module.operation.walk("arith.negf")
    add = first(module, "arith.addf")
    add.operands[0] = add.operands[1]
    outer.erase()
    module.verify()
    assert names(module.operation).count("arith.negf") == 1


# A walk over a module that loses operations meanwhile does not touch freed memory.
def test_operations_may_be_erased_during_a_walk(module: Module) -> None:
    for op in module.operation.walk():
        if op.name == "func.func":
            op.erase()
    assert names(module.operation) == ["builtin.module"]


# Copies and moved operations stand where the insertion point says.
def test_operations_are_copied_and_moved(module: Module) -> None:
    add = first(module, "arith.addf").operation
    copy = add.clone(ip=ir.InsertionPoint.after(add))
    copy.move_before(add)
    assert [op.name for op in add.block.operations][2:4] == ["arith.addf", "arith.addf"]
    assert add.block.operations[2] == copy
    module.verify()


# Dialects without generated classes can be built as well, with inferred types.
def test_an_operation_without_a_class_is_built_by_name(module: Module) -> None:
    add = first(module, "arith.addf").operation
    made = ir.Operation.create(
        "arith.maximumf", operands=[add.operands[0], add.operands[1]], ip=ir.InsertionPoint(add)
    )
    assert str(made.result.type) == "f32"  # inferred
    add.replace(made)
    module.verify()
