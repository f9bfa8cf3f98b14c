// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-cse-subprograms))' | FileCheck %s

#id = affine_map<(d0) -> (d0)>

// What a subprogram in a loop computes twice is computed once; ops outside subprograms stay as they are.
// CHECK-LABEL: func @subprogram_in_a_loop
// CHECK-COUNT-2: tensor.empty
// CHECK: scf.for
// CHECK:   tile.subprogram
// CHECK:     %[[ONCE:.*]] = tile.expr
// CHECK:     tile.expr domain [37] reduce [](%[[ONCE]], %[[ONCE]])
// CHECK-NOT: tile.expr
func.func @subprogram_in_a_loop(%x: tensor<37xf32>) -> tensor<37xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %a = tensor.empty() : tensor<37xf32>
  %b = tensor.empty() : tensor<37xf32>
  "test.use"(%a, %b) : (tensor<37xf32>, tensor<37xf32>) -> ()
  %last = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %x) -> (tensor<37xf32>) {
    %next = tile.subprogram "twice" (%h) extents [37] tiles [37] grid [] vector 0 workgroups 1
        : (tensor<37xf32>) -> tensor<37xf32> {
    ^bb0(%in: tensor<37xf32>):
      %p = tile.expr domain [37] reduce [](%in) maps [#id] guards [unit] into [#id] inits [] dims [0]
          : (tensor<37xf32>) -> tensor<37xf32> {
      ^bb0(%v: f32):
        %e = math.exp %v : f32
        tile.yield %e : f32
      }
      %q = tile.expr domain [37] reduce [](%in) maps [#id] guards [unit] into [#id] inits [] dims [0]
          : (tensor<37xf32>) -> tensor<37xf32> {
      ^bb0(%v: f32):
        %e = math.exp %v : f32
        tile.yield %e : f32
      }
      %s = tile.expr domain [37] reduce [](%p, %q) maps [#id, #id] guards [unit, unit] into [#id] inits [] dims [0]
          : (tensor<37xf32>, tensor<37xf32>) -> tensor<37xf32> {
      ^bb0(%v: f32, %w: f32):
        %e = arith.addf %v, %w : f32
        tile.yield %e : f32
      }
      tile.yield %s : tensor<37xf32>
    }
    scf.yield %next : tensor<37xf32>
  }
  return %last : tensor<37xf32>
}
