// RUN: tilewright-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-compose))'

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A sum is complete only after its loop: no consumer can compute it per element.
func.func @reduction_behind_a_thread_edge(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = tile.subprogram "k"(%a) extents [3, 5] tiles [3, 5] grid [] vector 1 workgroups 1 : (tensor<3x5xf32>) -> tensor<3x5xf32> {
  ^bb0(%in: tensor<3x5xf32>):
    %s = tile.expr domain [3, 5] reduce [1](%in) maps [#id] guards [unit] into [#row] inits [0.0 : f32] dims [0, 1] : (tensor<3x5xf32>) -> tensor<3xf32> {
    ^bb1(%e: f32, %acc: f32):
      %v = arith.addf %e, %acc : f32
      tile.yield %v : f32
    }
    // expected-error @below {{a reduction cannot be handed over at scope thread}}
    %c = tile.connect %s <thread> : tensor<3xf32>
    %y = tile.expr domain [3, 5] reduce [](%in, %c) maps [#id, #row] guards [unit, unit] into [#id] inits [] dims [0, 1] : (tensor<3x5xf32>, tensor<3xf32>) -> tensor<3x5xf32> {
    ^bb1(%e: f32, %t: f32):
      %v = arith.divf %e, %t : f32
      tile.yield %v : f32
    }
    tile.yield %y : tensor<3x5xf32>
  }
  return %0 : tensor<3x5xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

func.func @thread_edge_from_an_input(%a: tensor<5xf32>) -> tensor<5xf32> {
  %0 = tile.subprogram "k"(%a) extents [5] tiles [5] grid [] vector 0 workgroups 1 : (tensor<5xf32>) -> tensor<5xf32> {
  ^bb0(%in: tensor<5xf32>):
    // expected-error @below {{a thread edge must come from a tile.expr}}
    %c = tile.connect %in <thread> : tensor<5xf32>
    %y = tile.expr domain [5] reduce [](%c) maps [#id] guards [unit] into [#id] inits [] dims [0] : (tensor<5xf32>) -> tensor<5xf32> {
    ^bb1(%e: f32):
      tile.yield %e : f32
    }
    tile.yield %y : tensor<5xf32>
  }
  return %0 : tensor<5xf32>
}
