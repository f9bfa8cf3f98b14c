"""Patterns written in Python."""

from __future__ import annotations

from typing import Any

import pytest
from ir_modules import NEGATIONS, double_negation, names
from tilewright import IrError, Module, ir
from tilewright.dialects import arith


@pytest.fixture
def module() -> Module:
    return Module.parse(NEGATIONS)


# The greedy driver applies patterns to a fixed point.
def test_a_pattern_rewrites_until_it_matches_no_more(module: Module) -> None:
    ir.apply_patterns(module.operation, [double_negation])
    assert names(module.operation) == ["builtin.module", "func.func", "arith.addf", "func.return"]
    module.verify()


# New operations stand where the matched one stood, so that they dominate its readers.
def test_a_pattern_builds_before_its_operation(module: Module) -> None:
    @ir.pattern("arith.addf")
    def as_subtraction(op: Any) -> bool:
        op.replace(arith.subf(op.lhs, arith.negf(op.rhs)))
        return True

    ir.apply_patterns(module.operation, [as_subtraction])
    module.verify()
    assert "arith.subf" in names(module.operation)
    assert "arith.addf" not in names(module.operation)


# Benefits order patterns, as in C++.
def test_the_pattern_with_the_highest_benefit_matches_first(module: Module) -> None:
    tried: list[str] = []

    @ir.pattern("arith.addf", benefit=1)
    def later(_op: ir.OpView) -> bool:
        tried.append("later")
        return False

    @ir.pattern("arith.addf", benefit=5)
    def sooner(_op: ir.OpView) -> bool:
        tried.append("sooner")
        return False

    ir.apply_patterns(module.operation, [later, sooner])
    assert tried[:2] == ["sooner", "later"]


# The user sees the own exception with its traceback, and not an error of MLIR.
def test_an_exception_in_a_pattern_is_raised_as_it_is(module: Module) -> None:
    @ir.pattern("arith.addf")
    def broken(_op: ir.OpView) -> bool:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ir.apply_patterns(module.operation, [broken])
    module.verify()


# A forgotten `return` would look like a pattern that does not match.
def test_a_pattern_says_whether_it_has_rewritten(module: Module) -> None:
    @ir.pattern("arith.addf")
    def silent(_op: ir.OpView) -> Any:
        return None

    with pytest.raises(TypeError, match="returns True"):
        ir.apply_patterns(module.operation, [silent])


# Patterns that undo each other end in an error instead of a hang.
def test_patterns_that_never_stop_matching_are_stopped(module: Module) -> None:
    @ir.pattern("arith.addf")
    def again(op: Any) -> bool:
        op.replace(arith.addf(op.rhs, op.lhs))
        return True

    with pytest.raises(IrError, match="still match after 50 rewrites"):
        ir.apply_patterns(module.operation, [again], max_rewrites=50)


# A failed pattern leaves a valid module.
def test_what_a_pattern_has_built_wrongly_is_undone_before_its_exception(module: Module) -> None:
    @ir.pattern("arith.addf")
    def wrong(op: Any) -> bool:
        ir.Operation.create("arith.negf", results=[ir.Type.parse("i1", op.context)], operands=[op.lhs])
        return True

    with pytest.raises(IrError, match="must be floating-point-like"):
        ir.apply_patterns(module.operation, [wrong])
    module.verify()


# Handles that a pattern kept do not outlive the rewrite.
def test_operations_of_a_pattern_are_gone_after_it(module: Module) -> None:
    kept: list[Any] = []

    @ir.pattern("arith.addf")
    def keeping(op: Any) -> bool:
        kept.append(op)
        return False

    ir.apply_patterns(module.operation, [keeping])
    with pytest.raises(IrError, match="no longer exists"):
        kept[0].name  # noqa: B018 - the access raises
