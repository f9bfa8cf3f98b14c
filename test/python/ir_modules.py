"""Modules, patterns and short ways for the tests of IR in Python."""

from __future__ import annotations

from typing import Any

from tilewright import Module, ir

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
      target <"cpu", {cores = 2 : i64}> numerics <relaxed, fast, forms = ["two-moment variance"]>
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
