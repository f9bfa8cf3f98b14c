"""IR as Python objects: reading, building and changing modules, and passes and patterns written in Python."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from test_module import SOFTMAX
from tilewright import IrError, Module, PassError, PythonPassError, ir, passes
from tilewright.dialects import arith, func, tile
from tilewright.dialects import math as math_ops

NEGATIONS = """
func.func @twice_negated(%x: f32, %y: f32) -> f32 {
  %a = arith.negf %x : f32
  %b = arith.negf %a : f32
  %c = arith.addf %b, %y : f32
  return %c : f32
}
"""

PLANNED = """
func.func @scaled_rows(%x: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %r = tile.subprogram "sum_mul" (%x) extents [5, 7] tiles [1, 7] grid [0] vector 1 workgroups 5
      target <"cpu", {cores = 2 : i64}> numerics <relaxed, fast, forms = ["deferred"]>
      : (tensor<5x7xf32>) -> tensor<5x7xf32> {
  ^bb0(%a: tensor<5x7xf32>):
    %s = tile.expr domain [5, 7] reduce [1](%a) maps [affine_map<(i, j) -> (i, j)>] guards [unit]
        into [affine_map<(i, j) -> (i)>] inits [0.0 : f32] dims [0, 1]
        tilings [#tile.tiling<block, sizes = [1, 7], order = [1, 0]>]
        : (tensor<5x7xf32>) -> tensor<5xf32> {
    ^bb0(%e: f32, %acc: f32):
      %n = arith.addf %acc, %e : f32
      tile.yield %n : f32
    }
    %c = tile.connect %s <block> : tensor<5xf32>
    %m = tile.expr domain [5, 7] reduce [](%a, %c)
        maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>]
        guards [affine_set<(i, j) : (j - 1 >= 0)>, unit]
        into [affine_map<(i, j) -> (i, j)>] inits [] dims [0, 1]
        : (tensor<5x7xf32>, tensor<5xf32>) -> tensor<5x7xf32> {
    ^bb0(%e: f32, %t: f32):
      %p = arith.mulf %e, %t : f32
      tile.yield %p : f32
    }
    tile.yield %m : tensor<5x7xf32>
  }
  return %r : tensor<5x7xf32>
}
"""


@ir.pattern("arith.negf")
def double_negation(op: ir.OpView) -> bool:
    inner = op.operands[0].owner
    if not (isinstance(inner, ir.Operation) and inner.name == "arith.negf"):
        return False
    op.replace(inner.operands[0])
    return True


def names(operation: ir.Operation) -> list[str]:
    return [op.name for op in operation.walk()]


def first(module: Module, name: str) -> Any:
    return ir.view(next(iter(module.operation.walk(name))))


@pytest.fixture
def module() -> Module:
    return Module.parse(NEGATIONS)


@pytest.fixture
def planned() -> Module:
    return Module.parse(PLANNED, name="planned.mlir")


@pytest.fixture
def register() -> Iterator[Callable[..., ir.Pass]]:
    """Registers a pass under a name of this test's own; MLIR cannot forget passes."""

    def make(function: Callable[[Any], object], *, on: str = "builtin.module") -> ir.Pass:
        return ir.python_pass(f"test-{function.__name__.replace('_', '-')}", on=on)(function)

    yield make


# Reading.


def test_a_walk_visits_every_operation_outermost_first(module: Module) -> None:
    expected = ["builtin.module", "func.func", "arith.negf", "arith.negf", "arith.addf", "func.return"]
    assert names(module.operation) == expected


def test_attributes_of_a_plan_are_python_values(planned: Module) -> None:
    group = first(planned, "tile.subprogram")
    assert type(group).__name__ == "SubprogramOp"
    assert (group.sym_name.value, group.extents.value, group.tiles.value) == ("sum_mul", [5, 7], [1, 7])
    assert (list(group.grid), group.vector.value, group.workgroups.value) == ([0], 1, 5)
    assert group.numerics.value == tile.Numerics(tile.Roundings.relaxed, tile.Math.fast, ("deferred",))
    assert group.target.value.name == "cpu"
    assert group.target.value.overrides.value["cores"].value == 2
    assert group.streamed is None


def test_scopes_and_tilings_of_expressions_are_python_values(planned: Module) -> None:
    connect = first(planned, "tile.connect")
    assert connect.scope.value is tile.Scope.block
    assert tile.Scope.thread < connect.scope.value < tile.Scope.grid
    assert not connect.recompute
    tiling = first(planned, "tile.expr").tilings[0].value
    assert tiling == tile.Tiling(tile.Scope.block, (1, 7), (1, 0))


def test_maps_and_guards_are_objects(planned: Module) -> None:
    scaled = ir.view(list(planned.operation.walk("tile.expr"))[1])
    rows = scaled.maps[1].value
    assert str(rows) == "(d0, d1) -> (d0)"
    assert (rows.n_dims, rows.results[0].kind, rows.results[0].position) == (2, "dim", 0)
    assert rows.evaluate([3, 4]) == [3]
    guard = scaled.guards[0].value
    assert [guard.contains([2, j]) for j in (0, 1)] == [False, True]
    assert isinstance(scaled.guards[1], ir.UnitAttr)


def test_quasi_affine_expressions_have_their_value_below_zero() -> None:
    with ir.Context():
        i = ir.AffineExpr.dim(0)
        division = ir.AffineMap.get(1, [i // 4, i % 4, (i + 3) * 2])
        assert division.evaluate([-5]) == [-2, 3, -4]
        assert str(division) == "(d0) -> (d0 floordiv 4, d0 mod 4, (d0 + 3) * 2)"


def test_the_type_of_a_slice_is_a_python_value() -> None:
    with ir.Context():
        parsed = ir.Type.parse("!tile.slice<4x8xf32, block>")
        assert isinstance(parsed, ir.TileType)
        assert parsed.value == tile.Slice((4, 8), ir.Type.parse("f32"), tile.Space.block)


def test_values_know_their_owner_and_users(module: Module) -> None:
    inner, outer = module.operation.walk("arith.negf")
    assert [(use.owner, use.operand_number) for use in inner.result.uses] == [(outer, 0)]
    x = inner.operands[0]
    assert isinstance(x, ir.BlockArgument) and x.arg_number == 0
    assert isinstance(x.owner, ir.Block) and x.owner.arguments[0] == x
    assert outer.operands[0].owner == inner


def test_locations_name_the_place_in_the_model(planned: Module) -> None:
    assert str(first(planned, "tile.connect").location) == "planned.mlir:15:10"


def test_an_output_of_a_stage_is_walked_in_place() -> None:
    softmax = Module.parse(SOFTMAX)
    passes.raise_tensor_exprs(softmax)
    domains = [ir.view(op).domain.value for op in softmax.operation.walk("tile.expr")]
    assert domains == [[7, 37]] * 4


# Building and changing.


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


def test_an_attribute_of_the_dialect_is_built_from_its_value(planned: Module) -> None:
    expr = first(planned, "tile.expr")
    with planned.context:
        expr.tilings = ir.ArrayAttr.get([tile.Tiling(tile.Scope.thread, (1, 1), (0, 1)).attribute()])
        first(planned, "tile.connect").scope = ir.Attribute.parse(f"#tile.scope<{tile.Scope.thread}>")
    planned.verify()
    assert expr.tilings[0].value.level is tile.Scope.thread
    assert "<thread> : tensor<5xf32>" in planned.to_text()


def test_operands_can_be_replaced_and_operations_erased(module: Module) -> None:
    _, outer = module.operation.walk("arith.negf")
    add = first(module, "arith.addf")
    add.operands[0] = add.operands[1]
    outer.erase()
    module.verify()
    assert names(module.operation).count("arith.negf") == 1


def test_operations_may_be_erased_during_a_walk(module: Module) -> None:
    for op in module.operation.walk():
        if op.name == "func.func":
            op.erase()
    assert names(module.operation) == ["builtin.module"]


def test_operations_are_copied_and_moved(module: Module) -> None:
    add = first(module, "arith.addf").operation
    copy = add.clone(ip=ir.InsertionPoint.after(add))
    copy.move_before(add)
    assert [op.name for op in add.block.operations][2:4] == ["arith.addf", "arith.addf"]
    assert add.block.operations[2] == copy
    module.verify()


def test_an_operation_without_a_class_is_built_by_name(module: Module) -> None:
    add = first(module, "arith.addf").operation
    made = ir.Operation.create(
        "arith.maximumf", operands=[add.operands[0], add.operands[1]], ip=ir.InsertionPoint(add)
    )
    assert str(made.result.type) == "f32"  # inferred
    add.replace(made)
    module.verify()


# Invalid IR.


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


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tile.Tiling(tile.Scope.block, (0,), (0,)).attribute(), "A1: tile sizes"),
        (lambda: tile.Tiling(tile.Scope.block, (4, 4), (0, 0)).attribute(), "A2: order"),
        (lambda: tile.Gemm(3, 1, step=8, stages=2).attribute(), "A4: m must be a power of two"),
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


def test_objects_of_different_contexts_do_not_mix(module: Module) -> None:
    other = Module.parse(NEGATIONS)
    add = first(module, "arith.addf").operation
    with pytest.raises(IrError, match="different contexts"):
        add.operands[0] = first(other, "arith.addf").operands[0]
    with other.context, pytest.raises(IrError, match="different contexts"):
        add.attributes["x"] = ir.StringAttr.get("y")


def test_without_a_context_the_error_says_how_to_give_one() -> None:
    with pytest.raises(IrError, match="with` block"):
        ir.StringAttr.get("x")


def test_an_operation_whose_results_are_used_cannot_be_erased(module: Module) -> None:
    with pytest.raises(IrError, match="replace them first"):
        first(module, "arith.negf").erase()


def test_an_operation_is_not_erased_while_its_inside_is_used_elsewhere(planned: Module) -> None:
    inner, outer = planned.operation.walk("tile.expr")
    mul = next(outer.walk("arith.mulf"))
    mul.operands[0] = next(inner.walk("arith.addf")).result  # invalid, but not yet verified
    with pytest.raises(IrError, match="cannot be erased"):
        first(planned, "tile.subprogram").regions[0][0].operations[0].erase()
    with pytest.raises(IrError, match="does not dominate"):
        planned.operation.verify()


def test_a_deleted_attribute_with_a_default_gets_it(module: Module) -> None:
    add = first(module, "arith.addf").operation
    with module.context:
        add.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<fast>")
    del add.attributes["fastmath"]
    assert str(add.attributes["fastmath"]) == "#arith.fastmath<none>"
    assert str(add).endswith("arith.addf %1, %arg1 : f32")


def test_an_operation_inside_an_invalid_one_is_verified_and_printed(module: Module) -> None:
    function = first(module, "func.func").operation
    back = next(module.operation.walk("func.return"))
    del function.attributes["function_type"]  # which the verifier of func.return reads
    with pytest.raises(IrError, match=r"'func\.func' op requires attribute 'function_type'"):
        back.verify()
    assert str(back).startswith('"func.return"')
    with pytest.raises(PassError, match="requires attribute 'function_type'"):
        module.run("builtin.module(canonicalize)")


def test_an_operation_is_not_replaced_by_a_value_inside_it(planned: Module) -> None:
    group = first(planned, "tile.subprogram")
    with pytest.raises(IrError, match="a value of the operation itself"):
        group.replace(group.regions[0][0].arguments[0])


def test_an_error_in_one_of_many_functions_is_raised_with_its_message(
    capfd: pytest.CaptureFixture[str],
) -> None:
    functions = Module.parse("".join(NEGATIONS.replace("@", f"@f{i}_") for i in range(9)))
    for function in list(functions.operation.walk("func.func"))[4:]:
        function.regions[0][0].operations[-1].erase()  # MLIR verifies functions on several threads
    with pytest.raises(IrError, match="block with no terminator"):
        functions.operation.verify()
    assert capfd.readouterr().err == ""


def test_an_attribute_of_another_kind_is_refused_and_the_old_one_stays(planned: Module) -> None:
    group = first(planned, "tile.subprogram")
    with planned.context, pytest.raises(IrError, match="'tiles' is of another kind"):
        group.tiles = ir.StringAttr.get("wide")
    assert group.tiles.value == [1, 7]


def test_the_module_itself_cannot_be_erased(module: Module) -> None:
    with pytest.raises(IrError, match="outermost"):
        module.operation.erase()


def test_an_operation_is_not_replaced_by_values_of_another_type(planned: Module) -> None:
    exprs = list(planned.operation.walk("tile.expr"))
    with pytest.raises(IrError, match="another type"):
        exprs[1].replace(exprs[0].result)


# Lifetimes.


def test_objects_outlive_their_module() -> None:
    operation = Module.parse(PLANNED).operation
    exprs = list(operation.walk("tile.expr"))
    kept = exprs[0].attributes["domain"], exprs[0].result.type, exprs[0].regions[0][0]
    del operation, exprs
    gc.collect()
    domain, kind, block = kept
    assert (domain.value, str(kind), len(block.operations)) == ([5, 7], "tensor<5xf32>", 2)


def test_an_erased_operation_raises(module: Module) -> None:
    function = first(module, "func.func").operation
    add = first(module, "arith.addf").operation
    value, block = add.result, add.block
    function.erase()
    assert not add.is_valid
    for use in (
        lambda: add.name,
        lambda: add.attributes["x"],
        lambda: value.type,
        lambda: block.operations,
        lambda: function.regions,
        lambda: str(add),
        lambda: ir.InsertionPoint(add),
    ):
        with pytest.raises(IrError, match="no longer exists"):
            use()
    assert repr(add) == "<operation that is gone or in use>"


def test_operations_from_before_a_pass_raise(module: Module) -> None:
    add = first(module, "arith.addf").operation
    top = module.operation
    module.run("builtin.module(func.func(canonicalize))")
    with pytest.raises(IrError, match="no longer exists"):
        add.erase()
    assert names(top)[:2] == ["builtin.module", "func.func"]  # the module itself stays


def test_operations_from_before_a_replaced_body_raise(module: Module) -> None:
    block = module.operation.regions[0][0]
    with module.context:
        other = ir.Operation.parse(f"builtin.module {{ {PLANNED} }}")
    module.operation.regions[0].take_body(other.regions[0])
    with pytest.raises(IrError, match="block no longer exists"):
        block.operations  # noqa: B018 - the access raises
    module.verify()
    assert "tile.subprogram" in names(module.operation)


def test_an_operation_that_is_never_placed_is_destroyed_with_its_handle() -> None:
    with ir.Context():
        kept = ir.Operation.create("test.outer", results=[], regions=1)
        with ir.InsertionPoint(kept.regions[0].append_block()):
            inner = ir.Operation.create("test.inner", results=[])
    del kept
    gc.collect()
    with pytest.raises(IrError, match="no longer exists"):
        inner.name  # noqa: B018 - the access raises


# Patterns.


def test_a_pattern_rewrites_until_it_matches_no_more(module: Module) -> None:
    ir.apply_patterns(module.operation, [double_negation])
    assert names(module.operation) == ["builtin.module", "func.func", "arith.addf", "func.return"]
    module.verify()


def test_a_pattern_builds_before_its_operation(module: Module) -> None:
    @ir.pattern("arith.addf")
    def as_subtraction(op: Any) -> bool:
        op.replace(arith.subf(op.lhs, arith.negf(op.rhs)))
        return True

    ir.apply_patterns(module.operation, [as_subtraction])
    module.verify()
    assert "arith.subf" in names(module.operation)
    assert "arith.addf" not in names(module.operation)


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


def test_an_exception_in_a_pattern_is_raised_as_it_is(module: Module) -> None:
    @ir.pattern("arith.addf")
    def broken(_op: ir.OpView) -> bool:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ir.apply_patterns(module.operation, [broken])
    module.verify()


def test_a_pattern_says_whether_it_has_rewritten(module: Module) -> None:
    @ir.pattern("arith.addf")
    def silent(_op: ir.OpView) -> Any:
        return None

    with pytest.raises(TypeError, match="returns True"):
        ir.apply_patterns(module.operation, [silent])


def test_patterns_that_never_stop_matching_are_stopped(module: Module) -> None:
    @ir.pattern("arith.addf")
    def again(op: Any) -> bool:
        op.replace(arith.addf(op.rhs, op.lhs))
        return True

    with pytest.raises(IrError, match="still match after 50 rewrites"):
        ir.apply_patterns(module.operation, [again], max_rewrites=50)


def test_what_a_pattern_has_built_wrongly_is_undone_before_its_exception(module: Module) -> None:
    @ir.pattern("arith.addf")
    def wrong(op: Any) -> bool:
        ir.Operation.create("arith.negf", results=[ir.Type.parse("i1", op.context)], operands=[op.lhs])
        return True

    with pytest.raises(IrError, match="must be floating-point-like"):
        ir.apply_patterns(module.operation, [wrong])
    module.verify()


def test_operations_of_a_pattern_are_gone_after_it(module: Module) -> None:
    kept: list[Any] = []

    @ir.pattern("arith.addf")
    def keeping(op: Any) -> bool:
        kept.append(op)
        return False

    ir.apply_patterns(module.operation, [keeping])
    with pytest.raises(IrError, match="no longer exists"):
        kept[0].name  # noqa: B018 - the access raises


# Passes.


def test_a_pass_joins_a_textual_pipeline(module: Module, register: Callable[..., ir.Pass]) -> None:
    def fold_negations(op: ir.OpView) -> None:
        ir.apply_patterns(op, [double_negation])

    register(fold_negations, on="func.func")
    module.run("builtin.module(func.func(test-fold-negations,cse),canonicalize)")
    assert "arith.negf" not in names(module.operation)


def test_a_pass_runs_on_every_operation_that_it_is_anchored_on(register: Callable[..., ir.Pass]) -> None:
    functions = Module.parse("".join(NEGATIONS.replace("@", f"@f{i}_") for i in range(20)))
    seen: list[str] = []

    def collect_names(op: Any) -> None:
        seen.append(op.sym_name.value)
        with ir.InsertionPoint.at_block_begin(op.regions[0][0]):
            math_ops.exp(op.regions[0][0].arguments[0])  # of a dialect that the module has not used

    functions.run(register(collect_names, on="func.func"))
    assert sorted(seen) == sorted(f"f{i}_twice_negated" for i in range(20))
    assert names(functions.operation).count("math.exp") == 20


def test_an_exception_in_a_pass_names_the_pass(module: Module, register: Callable[..., ir.Pass]) -> None:
    def divides_by_zero(_op: ir.OpView) -> None:
        raise ZeroDivisionError("no")

    register(divides_by_zero)
    with pytest.raises(
        PythonPassError, match="pass 'test-divides-by-zero' raised ZeroDivisionError: no"
    ) as raised:
        module.run("builtin.module(canonicalize,test-divides-by-zero)")
    assert raised.value.pass_name == "test-divides-by-zero"
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_pass_that_leaves_invalid_ir_is_named(planned: Module, register: Callable[..., ir.Pass]) -> None:
    def breaks_a_tile(op: ir.OpView) -> None:
        group: Any = ir.view(next(op.walk("tile.subprogram")))
        with op.context:
            group.tiles = ir.DenseI64ArrayAttr.get([9, 7])

    with pytest.raises(PythonPassError, match=r"pass 'test-breaks-a-tile' left invalid IR: .* S3") as raised:
        planned.run(register(breaks_a_tile))
    assert raised.value.operation == "tile.subprogram"
    assert raised.value.location is not None and raised.value.location.startswith("planned.mlir:3")


def test_a_pass_uses_its_operation_and_not_the_module(
    module: Module, register: Callable[..., ir.Pass]
) -> None:
    def prints_the_module(_op: ir.OpView) -> None:
        module.to_text()

    with pytest.raises(PythonPassError, match="cannot use the module that it runs on"):
        module.run(register(prints_the_module))


def test_a_pass_can_be_defined_again(module: Module) -> None:
    seen: list[str] = []
    ir.python_pass("test-again")(lambda op: seen.append("first"))
    again = ir.python_pass("test-again", on="func.func")(lambda op: seen.append(op.name))
    module.run(again)
    module.run("builtin.module(func.func(test-again))")
    assert seen == ["func.func", "func.func"]


def test_the_name_of_a_pass_in_cpp_is_taken() -> None:
    with pytest.raises(IrError, match="named 'canonicalize' already"):
        ir.python_pass("canonicalize")(lambda op: None)
    with pytest.raises(IrError, match="not a name for a pass"):
        ir.python_pass("a,b")(lambda op: None)


def test_a_pass_on_another_operation_is_refused_by_the_pipeline(
    module: Module, register: Callable[..., ir.Pass]
) -> None:
    def only_on_functions(_op: ir.OpView) -> None: ...

    register(only_on_functions, on="func.func")
    with pytest.raises(PassError, match=r"func\.func"):
        module.run("builtin.module(test-only-on-functions)")


def test_threads_use_modules_of_their_own(register: Callable[..., ir.Pass]) -> None:
    def folds_in_threads(op: ir.OpView) -> None:
        ir.apply_patterns(op, [double_negation])

    fold = register(folds_in_threads)
    left: list[int] = []

    def work() -> None:
        for _ in range(10):
            mine = Module.parse(NEGATIONS)
            mine.run(fold)
            left.append(names(mine.operation).count("arith.negf"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert left == [0] * 40
