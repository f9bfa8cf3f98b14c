// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-compose))' | FileCheck %s

#id = affine_map<(i) -> (i)>

// Over an unrounded edge, the reader gets the value before its rounding; over other edges, the rounded value.
// CHECK-LABEL: func @unrounded_edges_lose_their_rounding
// CHECK: %[[P:.*]] = math.absf %{{.*}} : f32
// CHECK-NEXT: %[[Y:.*]] = math.sqrt %[[P]] : f32
// CHECK: %[[Q:.*]] = math.absf %{{.*}} : f32
// CHECK-NEXT: %[[R:.*]] = arith.truncf %[[Q]] : f32 to bf16
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[R]] : bf16 to f32
// CHECK-NEXT: math.sqrt %[[W]] : f32
func.func @unrounded_edges_lose_their_rounding(%x: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>) {
  %r:2 = tile.subprogram "k" (%x) extents [7] tiles [7] grid [0] vector 0 workgroups 1 numerics <relaxed, fast>
      : (tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>) {
  ^bb0(%in: tensor<7xf32>):
    %p = tile.expr domain [7] reduce [] (%in) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<7xf32>) -> tensor<7xbf16> {
    ^bb0(%a: f32):
      %b = math.absf %a : f32
      %c = arith.truncf %b : f32 to bf16
      tile.yield %c : bf16
    }
    %u = tile.connect %p <thread> recompute unrounded : tensor<7xbf16>
    %y = tile.expr domain [7] reduce [] (%u) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<7xbf16>) -> tensor<7xf32> {
    ^bb0(%a: bf16):
      %b = arith.extf %a : bf16 to f32
      %c = math.sqrt %b : f32
      tile.yield %c : f32
    }
    %v = tile.connect %p <thread> recompute : tensor<7xbf16>
    %z = tile.expr domain [7] reduce [] (%v) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<7xbf16>) -> tensor<7xf32> {
    ^bb0(%a: bf16):
      %b = arith.extf %a : bf16 to f32
      %c = math.sqrt %b : f32
      tile.yield %c : f32
    }
    tile.yield %y, %z : tensor<7xf32>, tensor<7xf32>
  }
  return %r#0, %r#1 : tensor<7xf32>, tensor<7xf32>
}
