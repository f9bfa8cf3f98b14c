// RUN: tilewright-opt %s --split-input-file --allow-unregistered-dialect --remark-format=emitRemark \
// RUN:   --remarks-filter=tile-merge-contractions \
// RUN:   --pass-pipeline='builtin.module(func.func(tile-merge-contractions{target=x86-64-avx512}))' 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
// RUN: not tilewright-opt %s --split-input-file --allow-unregistered-dialect \
// RUN:   --pass-pipeline='builtin.module(func.func(tile-merge-contractions{target=pdp11}))' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: pdp11

// Two projections of one tensor with biases: readers split their columns into heads, so the columns of a head are
// contiguous for both parts, and so are the biases. A weight that stands behind the first part moves in front of it.
// REMARK: tile: form 'merged contractions' 0 of linalg.matmul, linalg.matmul is taken, heads 3, width 64: fewer launches and reads of the shared tensor save
// CHECK-DAG: #[[$X:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4)>
// CHECK-DAG: #[[$W:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d4, d1, d2, d3)>
// CHECK-DAG: #[[$BIAS:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
// CHECK-LABEL: func @heads
// CHECK: %[[W:.*]] = tensor.concat dim(2) %{{.*}}, %{{.*}} : (tensor<5x3x1x64xf32>, tensor<5x3x1x64xf32>) -> tensor<5x3x2x64xf32>
// CHECK: linalg.fill {{.*}} -> tensor<9x3x2x64xf32>
// CHECK: %[[M:.*]] = linalg.generic {indexing_maps = [#[[$X]], #[[$W]], {{.*}} ins(%arg0, %[[W]] :
// CHECK: %[[B:.*]] = tensor.concat dim(1) {{.*}} {tile.packed_weight} : {{.*}} -> tensor<3x2x64xf32>
// CHECK: %[[A:.*]] = linalg.generic {indexing_maps = [{{.*}}, #[[$BIAS]], {{.*}} ins(%[[M]], %[[B]] :
// CHECK: %[[S:.*]] = tensor.extract_slice %[[A]][0, 0, 0, 0] [9, 3, 1, 64]
// CHECK: %[[P:.*]] = tensor.collapse_shape %[[S]] {{.*}} into tensor<9x192xf32>
// CHECK: %[[T:.*]] = tensor.extract_slice %[[A]][0, 0, 1, 0] [9, 3, 1, 64]
// CHECK: %[[Q:.*]] = tensor.collapse_shape %[[T]] {{.*}} into tensor<9x192xf32>
// CHECK-NOT: linalg.matmul
// CHECK: tensor.expand_shape %[[P]]
// CHECK: "use"(%[[Q]])
#rows = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>
func.func @heads(%x: tensor<9x5xf32>) -> tensor<9x3x64xf32> {
  %v = arith.constant dense_resource<v> : tensor<5x192xf32>
  %b = arith.constant dense_resource<b> : tensor<192xf32>
  %e = tensor.empty() : tensor<9x192xf32>
  %z = arith.constant dense<0.0> : tensor<9x192xf32>
  %0 = linalg.matmul ins(%x, %v : tensor<9x5xf32>, tensor<5x192xf32>) outs(%z : tensor<9x192xf32>) -> tensor<9x192xf32>
  %1 = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%0, %b : tensor<9x192xf32>, tensor<192xf32>) outs(%e : tensor<9x192xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<9x192xf32>
  %2 = tensor.expand_shape %1 [[0], [1, 2]] output_shape [9, 3, 64] : tensor<9x192xf32> into tensor<9x3x64xf32>
  %w = arith.constant dense_resource<w> : tensor<5x192xf32>
  %c = arith.constant dense_resource<c> : tensor<192xf32>
  %3 = linalg.matmul ins(%x, %w : tensor<9x5xf32>, tensor<5x192xf32>) outs(%z : tensor<9x192xf32>) -> tensor<9x192xf32>
  %4 = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%3, %c : tensor<9x192xf32>, tensor<192xf32>) outs(%e : tensor<9x192xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<9x192xf32>
  "use"(%4) : (tensor<9x192xf32>) -> ()
  return %2 : tensor<9x3x64xf32>
}

// -----

// Grouped heads: each head of keys and of values stands beside four heads of queries. A weight that repeats along a
// batch is taken once, and so is a transposed one.
// REMARK: is taken, heads 2, width 64:
// CHECK-LABEL: func @grouped
// CHECK: tensor.concat dim(1) %{{.*}} : (tensor<2x4x64x7xf32>, tensor<2x1x64x7xf32>, tensor<2x1x64x7xf32>) -> tensor<2x6x64x7xf32>
// CHECK: %[[M:.*]] = linalg.generic {{.*}} ins(%arg0, {{.*}} outs({{.*}} : tensor<3x9x2x6x64xf32>)
// CHECK: tensor.extract_slice %[[M]][0, 0, 0, 0, 0] [3, 9, 2, 4, 64]
// CHECK: tensor.collapse_shape {{.*}} into tensor<3x9x512xf32>
// CHECK: tensor.extract_slice %[[M]][0, 0, 0, 4, 0] [3, 9, 2, 1, 64]
// CHECK: tensor.extract_slice %[[M]][0, 0, 0, 5, 0] [3, 9, 2, 1, 64]
// CHECK-NOT: linalg.generic
#repeat = affine_map<(b, k, j) -> (j, k)>
#all = affine_map<(b, k, j) -> (b, k, j)>
func.func @grouped(%x: tensor<3x9x7xf32>) -> (tensor<3x9x8x64xf32>, tensor<3x9x2x64xf32>, tensor<3x9x128xf32>) {
  %wq = arith.constant dense_resource<q> : tensor<512x7xf32>
  %wk = arith.constant dense_resource<k> : tensor<128x7xf32>
  %wv = arith.constant dense_resource<v> : tensor<128x7xf32>
  %zq = arith.constant dense<0.0> : tensor<3x9x512xf32>
  %z = arith.constant dense<0.0> : tensor<3x9x128xf32>
  %eq = tensor.empty() : tensor<3x7x512xf32>
  %e = tensor.empty() : tensor<3x7x128xf32>
  %rq = linalg.generic {indexing_maps = [#repeat, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%wq : tensor<512x7xf32>) outs(%eq : tensor<3x7x512xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x7x512xf32>
  %q = linalg.batch_matmul ins(%x, %rq : tensor<3x9x7xf32>, tensor<3x7x512xf32>) outs(%zq : tensor<3x9x512xf32>) -> tensor<3x9x512xf32>
  %rk = linalg.generic {indexing_maps = [#repeat, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%wk : tensor<128x7xf32>) outs(%e : tensor<3x7x128xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x7x128xf32>
  %k = linalg.batch_matmul ins(%x, %rk : tensor<3x9x7xf32>, tensor<3x7x128xf32>) outs(%z : tensor<3x9x128xf32>) -> tensor<3x9x128xf32>
  %rv = linalg.generic {indexing_maps = [#repeat, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%wv : tensor<128x7xf32>) outs(%e : tensor<3x7x128xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x7x128xf32>
  %v = linalg.batch_matmul ins(%x, %rv : tensor<3x9x7xf32>, tensor<3x7x128xf32>) outs(%z : tensor<3x9x128xf32>) -> tensor<3x9x128xf32>
  %hq = tensor.expand_shape %q [[0], [1], [2, 3]] output_shape [3, 9, 8, 64] : tensor<3x9x512xf32> into tensor<3x9x8x64xf32>
  %hk = tensor.expand_shape %k [[0], [1], [2, 3]] output_shape [3, 9, 2, 64] : tensor<3x9x128xf32> into tensor<3x9x2x64xf32>
  return %hq, %hk, %v : tensor<3x9x8x64xf32>, tensor<3x9x2x64xf32>, tensor<3x9x128xf32>
}

// -----

// Without heads, parts of equally many columns alternate for any number of them; heads that are no whole register
// blocks would only increase it. Arithmetic of one part alone comes after the slice.
// REMARK: is taken, heads 1, width 70:
// CHECK-LABEL: func @gated
// CHECK: %[[M:.*]] = linalg.generic {{.*}} ins(%arg0, {{.*}} outs({{.*}} : tensor<9x2x70xf32>)
// CHECK: tensor.extract_slice %[[M]][0, 0, 0] [9, 1, 70]
// CHECK: %[[G:.*]] = tensor.collapse_shape
// CHECK: tensor.extract_slice %[[M]][0, 1, 0] [9, 1, 70]
// CHECK: %[[U:.*]] = tensor.collapse_shape
// CHECK: %[[S:.*]] = linalg.exp ins(%[[G]]
// CHECK: linalg.mul ins(%[[S]], %[[U]]
func.func @gated(%x: tensor<9x5xf32>) -> (tensor<9x70xf32>, tensor<9x7x10xf32>) {
  %v = arith.constant dense_resource<v> : tensor<5x70xf32>
  %w = arith.constant dense_resource<w> : tensor<5x70xf32>
  %e = tensor.empty() : tensor<9x70xf32>
  %z = arith.constant dense<0.0> : tensor<9x70xf32>
  %gate = linalg.matmul ins(%x, %v : tensor<9x5xf32>, tensor<5x70xf32>) outs(%z : tensor<9x70xf32>) -> tensor<9x70xf32>
  %up = linalg.matmul ins(%x, %w : tensor<9x5xf32>, tensor<5x70xf32>) outs(%z : tensor<9x70xf32>) -> tensor<9x70xf32>
  %s = linalg.exp ins(%gate : tensor<9x70xf32>) outs(%e : tensor<9x70xf32>) -> tensor<9x70xf32>
  %y = linalg.mul ins(%s, %up : tensor<9x70xf32>, tensor<9x70xf32>) outs(%e : tensor<9x70xf32>) -> tensor<9x70xf32>
  %h = tensor.expand_shape %y [[0], [1, 2]] output_shape [9, 7, 10] : tensor<9x70xf32> into tensor<9x7x10xf32>
  return %y, %h : tensor<9x70xf32>, tensor<9x7x10xf32>
}
