// RUN: tilewright-opt %s --tile-lower-to-program --verify-diagnostics

#id = affine_map<(i) -> (i)>

// Edges of scope thread are composed before this pass; the values that they pass have no iteration space.
func.func @not_composed(%x: tensor<7xf32>) -> tensor<7xf32> {
  %r = tile.subprogram "f" (%x) extents [7] tiles [7] grid [] vector 0 workgroups 1 : (tensor<7xf32>) -> tensor<7xf32> {
  ^bb0(%a: tensor<7xf32>):
    // expected-error @below {{has no dims: run tile-compose before tile-lower-to-program}}
    %p = tile.expr domain [7] reduce [] (%a) maps [#id] guards [unit] into [#id] inits []
        : (tensor<7xf32>) -> tensor<7xf32> {
    ^bb0(%v: f32):
      %n = math.exp %v : f32
      tile.yield %n : f32
    }
    %c = tile.connect %p <thread> : tensor<7xf32>
    %y = tile.expr domain [7] reduce [] (%c) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<7xf32>) -> tensor<7xf32> {
    ^bb0(%v: f32):
      %n = math.sqrt %v : f32
      tile.yield %n : f32
    }
    tile.yield %y : tensor<7xf32>
  }
  return %r : tensor<7xf32>
}
