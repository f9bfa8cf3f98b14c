// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-swizzle-weights))' --verify-diagnostics

#rows = affine_map<(m, n, k) -> (m, k)>
#lanes = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// A weight with more columns than the plan's layout is not given another layout.
func.func @too_long(%a: tensor<41x37xf16>, %w: tensor<37x67xf16>) -> tensor<41x67xf32> {
  %0 = tile.subprogram "too_long"(%a, %w) extents [41, 67, 37] tiles [41, 67, 37] grid [0, 1] vector 1 workgroups 1 : (tensor<41x37xf16>, tensor<37x67xf16>) -> tensor<41x67xf32> {
  ^bb0(%x: tensor<41x37xf16>, %y: tensor<37x67xf16>):
    // expected-error @+1 {{no weight can get the swizzled layout that 'tile.swizzled' states: its rhs is not a matrix with an N of at most 64}}
    %p = tile.expr domain [41, 67, 37] reduce [2](%x, %y) maps [#rows, #lanes] guards [unit, unit] into [#out] inits [0.0 : f32] dims [0, 1, 2] {micro_kernel = "wgmma-64x8", tile.swizzled = array<i64: 64, 32>} : (tensor<41x37xf16>, tensor<37x67xf16>) -> tensor<41x67xf32> {
    ^bb1(%u: f16, %v: f16, %s: f32):
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %m = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %m : f32
      tile.yield %n : f32
    }
    tile.yield %p : tensor<41x67xf32>
  }
  return %0 : tensor<41x67xf32>
}
