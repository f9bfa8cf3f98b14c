// RUN: tilewright-opt %s --verify-diagnostics

func.func @s6_constant_inside(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = tile.subprogram "s" (%x) extents [4] tiles [4] grid [0] vector 0 workgroups 1 : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @+1 {{S6: a subprogram holds tile.expr, tile.connect and its terminator only}}
    %c = arith.constant dense<1.0> : tensor<4xf32>
    tile.yield %c : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
