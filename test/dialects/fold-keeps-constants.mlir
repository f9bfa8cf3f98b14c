// RUN: tilewright-opt %s --canonicalize | FileCheck %s

// A folded constant stays in the expression that uses it, so that the subprogram holds nothing else.
// CHECK-LABEL: tile.subprogram "s"
// CHECK-NOT: arith.constant
// CHECK: tile.expr
// CHECK: arith.constant 3.000000e+00
func.func @keeps_constants_in_bodies(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = tile.subprogram "s" (%x) extents [4] tiles [4] grid [0] vector 0 workgroups 1 : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %e = tile.expr domain [4] reduce [] (%a) maps [affine_map<(i) -> (i)>] guards [unit] into [affine_map<(i) -> (i)>]
        inits [] dims [0] : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%v: f32):
      %one = arith.constant 1.0 : f32
      %two = arith.constant 2.0 : f32
      %three = arith.addf %one, %two : f32
      %y = arith.mulf %v, %three : f32
      tile.yield %y : f32
    }
    tile.yield %e : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
