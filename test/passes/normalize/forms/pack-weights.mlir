// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-pack-weights{target=x86-64-avx512}))' \
// RUN:   --split-input-file | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-pack-weights{target=x86-64-avx2}))' \
// RUN:   --split-input-file | FileCheck %s --check-prefix=AVX2
// RUN: not tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-pack-weights{target=pdp11}))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: pdp11

// Columns come in blocks of 64 lanes (four registers), the last one zero-padded; the reduced dim is inside a block.
// CHECK-DAG: #[[$FROM:.*]] = affine_map<(d0, d1, d2) -> (d1, d0 * 64 + d2)>
// CHECK-DAG: #[[$PACKED:.*]] = affine_map<(d0, d1, d2) -> (d1 floordiv 64, d2, d1 mod 64)>
// CHECK-LABEL: func @columns
// CHECK: %[[PAD:.*]] = tensor.pad %{{.*}} low[0, 0] high[0, 58]
// CHECK: %[[W:.*]] = linalg.generic {indexing_maps = [#[[$FROM]], {{.*}} ins(%[[PAD]] : tensor<5x128xf32>) {{.*}}tensor<2x5x64xf32>
// CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[$PACKED]], {{.*}} ins(%arg0, %[[W]]
// AVX2-LABEL: func @columns
// AVX2: tensor<5x5x16xf32>
func.func @columns(%a: tensor<9x5xf32>) -> tensor<9x70xf32> {
  %v = arith.constant dense_resource<weights> : tensor<5x70xf32>
  %z = arith.constant dense<0.0> : tensor<9x70xf32>
  %m = linalg.matmul ins(%a, %v : tensor<9x5xf32>, tensor<5x70xf32>) outs(%z : tensor<9x70xf32>) -> tensor<9x70xf32>
  return %m : tensor<9x70xf32>
}

// -----

// The rows of a transposed weight are its lanes.
// CHECK-DAG: #[[$FROM:.*]] = affine_map<(d0, d1, d2) -> (d0 * 64 + d2, d1)>
// CHECK-LABEL: func @transposed
// CHECK-NOT: tensor.pad
// CHECK: linalg.generic {indexing_maps = [#[[$FROM]], {{.*}}tensor<2x5x64xf32>
func.func @transposed(%a: tensor<9x5xf32>) -> tensor<9x128xf32> {
  %w = arith.constant dense_resource<weights> : tensor<128x5xf32>
  %z = arith.constant dense<0.0> : tensor<9x128xf32>
  %m = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%a, %w : tensor<9x5xf32>, tensor<128x5xf32>) outs(%z : tensor<9x128xf32>) -> tensor<9x128xf32>
  return %m : tensor<9x128xf32>
}

// -----

// An operand computed in each call that few rows read stays as it is, and so does one that no register block reads.
// CHECK-LABEL: func @leaves
// CHECK: linalg.matmul ins(%arg0, %arg1
// CHECK: linalg.matmul ins(%arg2, %{{.*}} : tensor<9x5xf16>
func.func @leaves(%a: tensor<9x5xf32>, %b: tensor<5x70xf32>, %h: tensor<9x5xf16>) -> (tensor<9x70xf32>, tensor<9x70xf16>) {
  %w = arith.constant dense_resource<weights> : tensor<5x70xf16>
  %z = arith.constant dense<0.0> : tensor<9x70xf32>
  %y = arith.constant dense<0.0> : tensor<9x70xf16>
  %m = linalg.matmul ins(%a, %b : tensor<9x5xf32>, tensor<5x70xf32>) outs(%z : tensor<9x70xf32>) -> tensor<9x70xf32>
  %n = linalg.matmul ins(%h, %w : tensor<9x5xf16>, tensor<5x70xf16>) outs(%y : tensor<9x70xf16>) -> tensor<9x70xf16>
  return %m, %n : tensor<9x70xf32>, tensor<9x70xf16>
}

// -----

// IREE computes a product of constants once, as it is.
// CHECK-LABEL: func @of_constants
// CHECK-NOT: floordiv
// CHECK: linalg.matmul
func.func @of_constants() -> tensor<9x70xf32> {
  %a = arith.constant dense_resource<rows> : tensor<9x5xf32>
  %w = arith.constant dense_resource<weights> : tensor<5x70xf32>
  %z = arith.constant dense<0.0> : tensor<9x70xf32>
  %m = linalg.matmul ins(%a, %w : tensor<9x5xf32>, tensor<5x70xf32>) outs(%z : tensor<9x70xf32>) -> tensor<9x70xf32>
  return %m : tensor<9x70xf32>
}

// -----

// A weight that repeats along a batch, or is transposed first, is recognised: its original is packed, once.
// CHECK-DAG: #[[$FROM:.*]] = affine_map<(d0, d1, d2) -> (d0 * 64 + d2, d1)>
// CHECK-DAG: #[[$PACKED:.*]] = affine_map<(d0, d1, d2, d3) -> (d2 floordiv 64, d3, d2 mod 64)>
// CHECK-LABEL: func @repeated
// CHECK: %[[W:.*]] = linalg.generic {indexing_maps = [#[[$FROM]], {{.*}} ins(%{{.*}} : tensor<128x5xf32>) {{.*}}tensor<2x5x64xf32>
// CHECK-NOT: tensor<3x5x128xf32>
// CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[$PACKED]], {{.*}} ins(%arg0, %[[W]]
func.func @repeated(%a: tensor<3x9x5xf32>) -> tensor<3x9x128xf32> {
  %w = arith.constant dense_resource<weights> : tensor<128x5xf32>
  %e = tensor.empty() : tensor<3x5x128xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, k, j) -> (j, k)>, affine_map<(b, k, j) -> (b, k, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w : tensor<128x5xf32>) outs(%e : tensor<3x5x128xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x5x128xf32>
  %z = arith.constant dense<0.0> : tensor<3x9x128xf32>
  %m = linalg.batch_matmul ins(%a, %r : tensor<3x9x5xf32>, tensor<3x5x128xf32>) outs(%z : tensor<3x9x128xf32>) -> tensor<3x9x128xf32>
  return %m : tensor<3x9x128xf32>
}

// -----

// Padding so many lanes to whole blocks overflows: the operand stays as it is, and the allocation reports the error.
// CHECK-LABEL: func @uncountable
// CHECK-NOT: floordiv
func.func @uncountable(%a: tensor<9x5xf32>) -> tensor<9x461168601842738790xf32> {
  %w = arith.constant dense_resource<weights> : tensor<5x461168601842738790xf32>
  %z = tensor.empty() : tensor<9x461168601842738790xf32>
  %m = linalg.matmul ins(%a, %w : tensor<9x5xf32>, tensor<5x461168601842738790xf32>) outs(%z : tensor<9x461168601842738790xf32>) -> tensor<9x461168601842738790xf32>
  return %m : tensor<9x461168601842738790xf32>
}

// -----

// Keys come one after another, and are the columns of their product with queries: a tensor of its own has the lanes
// innermost, and the planner decides which kernel computes it. The rows of a matmul may have any layout.
// CHECK-DAG: #[[$TURNED:.*]] = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
// CHECK-LABEL: func @keys_are_laid_along_lanes
// CHECK: %[[T:.*]] = linalg.generic {indexing_maps = [#[[$TURNED]], {{.*}} ins(%arg1 : tensor<3x53x19xf32>) outs(%{{.*}} : tensor<3x19x53xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[T]] : tensor<3x37x19xf32>, tensor<3x19x53xf32>)
func.func @keys_are_laid_along_lanes(%q: tensor<3x37x19xf32>, %k: tensor<3x53x19xf32>) -> tensor<3x37x53xf32> {
  %z = arith.constant dense<0.0> : tensor<3x37x53xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, i, j, k) -> (b, i, k)>, affine_map<(b, i, j, k) -> (b, j, k)>, affine_map<(b, i, j, k) -> (b, i, j)>]
      ins(%q, %k : tensor<3x37x19xf32>, tensor<3x53x19xf32>) outs(%z : tensor<3x37x53xf32>) -> tensor<3x37x53xf32>
  return %s : tensor<3x37x53xf32>
}

// -----

// Keys that many rows read are packed once, in front of the contraction, if blocks of lanes are single lines. With few
// rows, or with columns that do not fill the blocks, they are transposed only.
// CHECK-LABEL: func @keys_of_many_rows
// CHECK-NOT: tensor<3x4x19x16xf32>
// CHECK: tensor<3x19x64xf32>
// CHECK: return
// AVX2-DAG: #[[$FROM:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1 * 16 + d3, d2)>
// AVX2-DAG: #[[$READ:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2 floordiv 16, d3, d2 mod 16)>
// AVX2-LABEL: func @keys_of_many_rows
// AVX2: %[[KEYS:.*]] = linalg.generic {indexing_maps = [#[[$FROM]], {{.*}} ins(%arg2 {{.*}}tensor<3x4x19x16xf32>
// AVX2: linalg.generic {indexing_maps = [{{.*}}, #[[$READ]], {{.*}} ins(%arg0, %[[KEYS]]
// AVX2: linalg.generic {{.*}}tensor<3x19x64xf32>
// AVX2: linalg.generic {indexing_maps = {{.*}} ins(%arg1
func.func @keys_of_many_rows(%many: tensor<3x67x19xf32>, %few: tensor<3x63x19xf32>, %k: tensor<3x64x19xf32>)
    -> (tensor<3x67x64xf32>, tensor<3x63x64xf32>) {
  %y = arith.constant dense<0.0> : tensor<3x67x64xf32>
  %z = arith.constant dense<0.0> : tensor<3x63x64xf32>
  %m = linalg.batch_matmul indexing_maps = [affine_map<(b, i, j, k) -> (b, i, k)>, affine_map<(b, i, j, k) -> (b, j, k)>,
        affine_map<(b, i, j, k) -> (b, i, j)>]
      ins(%many, %k : tensor<3x67x19xf32>, tensor<3x64x19xf32>) outs(%y : tensor<3x67x64xf32>) -> tensor<3x67x64xf32>
  %n = linalg.batch_matmul indexing_maps = [affine_map<(b, i, j, k) -> (b, i, k)>, affine_map<(b, i, j, k) -> (b, j, k)>,
        affine_map<(b, i, j, k) -> (b, i, j)>]
      ins(%few, %k : tensor<3x63x19xf32>, tensor<3x64x19xf32>) outs(%z : tensor<3x63x64xf32>) -> tensor<3x63x64xf32>
  return %m, %n : tensor<3x67x64xf32>, tensor<3x63x64xf32>
}

// -----

// A second contraction reads the same copy.
// AVX2-LABEL: func @keys_of_two_queries
// AVX2-COUNT-1: tensor.empty() : tensor<3x4x19x16xf32>
// AVX2-NOT: tensor.empty() : tensor<3x4x19x16xf32>
// AVX2: return
func.func @keys_of_two_queries(%first: tensor<3x67x19xf32>, %second: tensor<3x67x19xf32>, %k: tensor<3x64x19xf32>)
    -> (tensor<3x67x64xf32>, tensor<3x67x64xf32>) {
  %z = arith.constant dense<0.0> : tensor<3x67x64xf32>
  %m = linalg.batch_matmul indexing_maps = [affine_map<(b, i, j, k) -> (b, i, k)>, affine_map<(b, i, j, k) -> (b, j, k)>,
        affine_map<(b, i, j, k) -> (b, i, j)>]
      ins(%first, %k : tensor<3x67x19xf32>, tensor<3x64x19xf32>) outs(%z : tensor<3x67x64xf32>) -> tensor<3x67x64xf32>
  %n = linalg.batch_matmul indexing_maps = [affine_map<(b, i, j, k) -> (b, i, k)>, affine_map<(b, i, j, k) -> (b, j, k)>,
        affine_map<(b, i, j, k) -> (b, i, j)>]
      ins(%second, %k : tensor<3x67x19xf32>, tensor<3x64x19xf32>) outs(%z : tensor<3x67x64xf32>) -> tensor<3x67x64xf32>
  return %m, %n : tensor<3x67x64xf32>, tensor<3x67x64xf32>
}

// -----

// Pairs of bf16 are adjacent in a lane: K = 5 makes three pairs, the last one padded with a zero.
// CHECK-DAG: #[[$FROM:.*]] = affine_map<(d0, d1, d2, d3) -> (d1 * 2 + d3, d0 * 64 + d2)>
// CHECK-DAG: #[[$PACKED:.*]] = affine_map<(d0, d1, d2) -> (d1 floordiv 64, d2 floordiv 2, d1 mod 64, d2 mod 2)>
// CHECK-LABEL: func @pairs
// CHECK: tensor.pad %{{.*}} low[0, 0] high[1, 58]
// CHECK: linalg.generic {indexing_maps = [#[[$FROM]], {{.*}}tensor<2x3x64x2xbf16>
// CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[$PACKED]], {{.*}}
func.func @pairs(%a: tensor<9x5xbf16>) -> tensor<9x70xf32> {
  %v = arith.constant dense_resource<weights> : tensor<5x70xbf16>
  %z = arith.constant dense<0.0> : tensor<9x70xf32>
  %m = linalg.matmul ins(%a, %v : tensor<9x5xbf16>, tensor<5x70xbf16>) outs(%z : tensor<9x70xf32>) -> tensor<9x70xf32>
  return %m : tensor<9x70xf32>
}
