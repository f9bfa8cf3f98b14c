// RUN: tilewright-opt %s --allow-unregistered-dialect --split-input-file --remark-format=emitRemark \
// RUN:   --remarks-filter='tile-swizzle-weights|tile-store-weights' \
// RUN:   --pass-pipeline='builtin.module(func.func(tile-swizzle-weights),tile-store-weights{scopes=model recipes=-})' \
// RUN:   2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
// RUN: tilewright-opt %s --allow-unregistered-dialect --split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(tile-swizzle-weights),tile-store-weights)' | FileCheck %s --check-prefix=PLAIN

#rows = affine_map<(m, n, k) -> (m, k)>
#lanes = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// 67 columns are padded to the plan's 72 lines, and K = 37 to two steps of 32; a line holds a column's elements of a
// step, and its four atoms of 8 elements are permuted from one pair of lines to the next.
// REMARK: stored as model::w/packed-2x72x32: swizzle(transpose(reshape(pad(model::w : 37x67, low 0x0) : 64x72) : 2x32x72, order 0x2x1) : 2x72x32, atom 8) : 2x72x32
// CHECK: "atom": 8
// CHECK: "step": "swizzle"
// CHECK: "unused": [
// CHECK: "name": "w"
// CHECK-DAG: #[[$IMAGE:.*]] = affine_map<(d0, d1, d2) -> (d2 floordiv 32, d1, d2 mod 32)>
// CHECK-LABEL: func.func @fills_up_lanes_and_terms
// CHECK: %[[W:.*]] = "util.global.load"() <{global = @w_packed}> : () -> tensor<2x72x32xf16>
// CHECK: tile.subprogram "product"(%arg0, %[[W]])
// CHECK: ^bb0(%{{.*}}: tensor<41x37xf16>, %[[IN:.*]]: tensor<2x72x32xf16>):
// CHECK: tile.expr domain [41, 67, 37] reduce [2](%{{.*}}, %[[IN]]) maps [#{{.*}}, #[[$IMAGE]]]
// CHECK-SAME: tile.swizzled = array<i64: 72, 32>
// IREE computes a layout that is not stored: it pads with zeros, orders lines by steps, and gathers atoms.
// PLAIN-LABEL: func.func @fills_up_lanes_and_terms
// PLAIN: tensor.pad %{{.*}} low[0, 0] high[27, 5]
// PLAIN: linalg.generic
// PLAIN: linalg.generic
// PLAIN: arith.xori
// PLAIN: tensor.extract
// PLAIN-NOT: tile.swizzle
// PLAIN: tile.subprogram
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<37x67xf16>, sym_name = "w", sym_visibility = "private", type = tensor<37x67xf16>}> : () -> ()
func.func @fills_up_lanes_and_terms(%a: tensor<41x37xf16>) -> tensor<41x67xf32> {
  %w = "util.global.load"() <{global = @w}> : () -> tensor<37x67xf16>
  %0 = tile.subprogram "product"(%a, %w) extents [41, 67, 37] tiles [41, 67, 37] grid [0, 1] vector 1 workgroups 1 : (tensor<41x37xf16>, tensor<37x67xf16>) -> tensor<41x67xf32> {
  ^bb0(%x: tensor<41x37xf16>, %y: tensor<37x67xf16>):
    %p = tile.expr domain [41, 67, 37] reduce [2](%x, %y) maps [#rows, #lanes] guards [unit, unit] into [#out] inits [0.0 : f32] dims [0, 1, 2] {micro_kernel = "wgmma-64x8", tile.swizzled = array<i64: 72, 32>} : (tensor<41x37xf16>, tensor<37x67xf16>) -> tensor<41x67xf32> {
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

// -----

#rows = affine_map<(m, n, k) -> (m, k)>
#lanes = affine_map<(m, n, k) -> (0, n, k)>
#out = affine_map<(m, n, k) -> (m, n)>

// A weight that is contiguous along K is split into steps in place; dims of one element vanish.
// REMARK: stored as model::w/packed-2x64x32: swizzle(transpose(reshape(reshape(model::w : 1x64x64) : 64x64) : 64x2x32, order 1x0x2) : 2x64x32, atom 16) : 2x64x32
// CHECK-LABEL: func.func @lies_along_terms
// CHECK: tile.subprogram "product"(%arg0, %{{.*}}) {{.*}} : (tensor<64x64xi8>, tensor<2x64x32xi8>)
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<1x64x64xi8>, sym_name = "w", sym_visibility = "private", type = tensor<1x64x64xi8>}> : () -> ()
func.func @lies_along_terms(%a: tensor<64x64xi8>) -> tensor<64x64xi32> {
  %w = "util.global.load"() <{global = @w}> : () -> tensor<1x64x64xi8>
  %0 = tile.subprogram "product"(%a, %w) extents [64, 64, 64] tiles [64, 64, 64] grid [0, 1] vector 1 workgroups 1 : (tensor<64x64xi8>, tensor<1x64x64xi8>) -> tensor<64x64xi32> {
  ^bb0(%x: tensor<64x64xi8>, %y: tensor<1x64x64xi8>):
    %p = tile.expr domain [64, 64, 64] reduce [2](%x, %y) maps [#rows, #lanes] guards [unit, unit] into [#out] inits [0 : i32] dims [0, 1, 2] {micro_kernel = "wgmma-64x8", tile.swizzled = array<i64: 64, 32>} : (tensor<64x64xi8>, tensor<1x64x64xi8>) -> tensor<64x64xi32> {
    ^bb1(%u: i8, %v: i8, %s: i32):
      %ue = arith.extsi %u : i8 to i32
      %ve = arith.extsi %v : i8 to i32
      %m = arith.muli %ue, %ve : i32
      %n = arith.addi %s, %m : i32
      tile.yield %n : i32
    }
    tile.yield %p : tensor<64x64xi32>
  }
  return %0 : tensor<64x64xi32>
}

// -----

#rows = affine_map<(m, n, k) -> (m, k)>
#lanes = affine_map<(m, n, k) -> (k, n)>
#out = affine_map<(m, n, k) -> (m, n)>

// A weight that the plan does not name stays as it is.
// CHECK-LABEL: func.func @leaves
// CHECK: tile.subprogram "unnamed"(%arg0, %arg1)
// CHECK-NOT: tile.swizzled
func.func @leaves(%a: tensor<41x37xf16>, %w: tensor<37x67xf16>) -> tensor<41x67xf32> {
  %0 = tile.subprogram "unnamed"(%a, %w) extents [41, 67, 37] tiles [41, 67, 37] grid [0, 1] vector 1 workgroups 1 : (tensor<41x37xf16>, tensor<37x67xf16>) -> tensor<41x67xf32> {
  ^bb0(%x: tensor<41x37xf16>, %y: tensor<37x67xf16>):
    %p = tile.expr domain [41, 67, 37] reduce [2](%x, %y) maps [#rows, #lanes] guards [unit, unit] into [#out] inits [0.0 : f32] dims [0, 1, 2] {micro_kernel = "wgmma-64x8"} : (tensor<41x37xf16>, tensor<37x67xf16>) -> tensor<41x67xf32> {
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
