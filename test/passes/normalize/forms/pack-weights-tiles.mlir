// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-pack-weights{target=x86-64-amx}))' | FileCheck %s
// RUN: tilewright-opt %s \
// RUN:   --pass-pipeline='builtin.module(func.func(tile-pack-weights{target=x86-64-amx numerics=strict}))' \
// RUN:   | FileCheck %s --check-prefix=STRICT

// Tile registers take whole steps of 16 groups, here of pairs, and blocks of 32 columns: K = 37 is padded to 64, and 70
// columns to 96. Strict numerics take the vector kernel, which needs no more than whole pairs.
// CHECK: #[[$FROM:.*]] = affine_map<(d0, d1, d2, d3) -> (d1 * 2 + d3, d0 * 32 + d2)>
// CHECK-LABEL: func.func @pairs
// CHECK: tensor.pad {{.*}} low[0, 0] high[27, 26]
// CHECK: linalg.generic {indexing_maps = [#[[$FROM]], {{.*}}tensor<3x32x32x2xbf16>
// STRICT-LABEL: func.func @pairs
// STRICT: tensor<2x19x64x2xbf16>
func.func @pairs(%a: tensor<9x37xbf16>) -> tensor<9x70xf32> {
  %v = arith.constant dense_resource<weights> : tensor<37x70xbf16>
  %z = arith.constant dense<0.0> : tensor<9x70xf32>
  %m = linalg.matmul ins(%a, %v : tensor<9x37xbf16>, tensor<37x70xbf16>) outs(%z : tensor<9x70xf32>) -> tensor<9x70xf32>
  return %m : tensor<9x70xf32>
}
