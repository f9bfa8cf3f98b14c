// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-normalize))' | FileCheck %s

// Batch heads that were merged for a matmul become dims of the matmul and of its result.
// CHECK-LABEL: func.func @batch_dims_apart
// CHECK-SAME: (%[[A:.+]]: tensor<2x3x4x5xf32>, %[[B:.+]]: tensor<2x3x5x6xf32>)
// CHECK-NOT: tensor.collapse_shape
// CHECK: %[[Y:.+]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%[[A]], %[[B]] : {{.*}}) outs(%{{.+}} : tensor<2x3x4x6xf32>)
// CHECK-NOT: tensor.expand_shape
// CHECK: return %[[Y]]
func.func @batch_dims_apart(%a: tensor<2x3x4x5xf32>, %b: tensor<2x3x5x6xf32>) -> tensor<2x3x4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6x4x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x4x6xf32>) -> tensor<6x4x6xf32>
  %u = tensor.collapse_shape %a [[0, 1], [2], [3]] : tensor<2x3x4x5xf32> into tensor<6x4x5xf32>
  %v = tensor.collapse_shape %b [[0, 1], [2], [3]] : tensor<2x3x5x6xf32> into tensor<6x5x6xf32>
  %y = linalg.batch_matmul ins(%u, %v : tensor<6x4x5xf32>, tensor<6x5x6xf32>) outs(%zeros : tensor<6x4x6xf32>)
      -> tensor<6x4x6xf32>
  %z = tensor.expand_shape %y [[0, 1], [2], [3]] output_shape [2, 3, 4, 6] : tensor<6x4x6xf32> into tensor<2x3x4x6xf32>
  return %z : tensor<2x3x4x6xf32>
}

// Elementwise ops behind the matmul get these dims, too, for all readers.
// CHECK-LABEL: func.func @elementwise_behind_batch_dims
// CHECK-NOT: linalg.batch_matmul
// CHECK: arith.truncf
// CHECK: -> tensor<2x3x4x6xf16>
// CHECK: %[[SCALED:.*]] = linalg.generic {{.*}} ins({{.*}} : tensor<2x3x4x6xf16>, tensor<f16>)
// CHECK: arith.mulf
// CHECK: %[[TOGETHER:.*]] = tensor.collapse_shape %[[SCALED]] {{.*}} into tensor<6x4x6xf16>
// CHECK-NEXT: return %[[SCALED]], %[[TOGETHER]]
#same = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#one = affine_map<(d0, d1, d2) -> ()>
func.func @elementwise_behind_batch_dims(%a: tensor<2x3x4x5xf32>, %b: tensor<2x3x5x6xf32>, %s: tensor<f16>)
    -> (tensor<2x3x4x6xf16>, tensor<6x4x6xf16>) {
  %u = tensor.collapse_shape %a [[0, 1], [2], [3]] : tensor<2x3x4x5xf32> into tensor<6x4x5xf32>
  %v = tensor.collapse_shape %b [[0, 1], [2], [3]] : tensor<2x3x5x6xf32> into tensor<6x5x6xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x4x6xf32>
  %h = tensor.empty() : tensor<6x4x6xf16>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<6x4x6xf32>) -> tensor<6x4x6xf32>
  %y = linalg.batch_matmul ins(%u, %v : tensor<6x4x5xf32>, tensor<6x5x6xf32>) outs(%zeros : tensor<6x4x6xf32>)
      -> tensor<6x4x6xf32>
  %half = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y : tensor<6x4x6xf32>) outs(%h : tensor<6x4x6xf16>) {
  ^bb0(%x: f32, %o: f16):
    %t = arith.truncf %x : f32 to f16
    linalg.yield %t : f16
  } -> tensor<6x4x6xf16>
  %scaled = linalg.generic {indexing_maps = [#same, #one, #same], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%half, %s : tensor<6x4x6xf16>, tensor<f16>) outs(%h : tensor<6x4x6xf16>) {
  ^bb0(%x: f16, %by: f16, %o: f16):
    %t = arith.mulf %x, %by : f16
    linalg.yield %t : f16
  } -> tensor<6x4x6xf16>
  %z = tensor.expand_shape %scaled [[0, 1], [2], [3]] output_shape [2, 3, 4, 6]
      : tensor<6x4x6xf16> into tensor<2x3x4x6xf16>
  return %z, %scaled : tensor<2x3x4x6xf16>, tensor<6x4x6xf16>
}

// The result keeps the order of its dims, and its initial value; readers with a merged batch dim still get that.
// CHECK-LABEL: func.func @batch_inside_the_result
// CHECK-SAME: (%[[A:.+]]: tensor<2x3x4x5xf32>, %[[B:.+]]: tensor<2x3x5x6xf32>)
// CHECK-DAG: %[[ONE:.+]] = arith.constant 1.0
// CHECK: %[[START:.+]] = linalg.fill ins(%[[ONE]] : f32) outs(%{{.+}} : tensor<4x2x3x6xf32>)
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} ins(%[[A]], %[[B]] : {{.*}}) outs(%[[START]] : tensor<4x2x3x6xf32>)
// CHECK: %[[Z:.+]] = tensor.collapse_shape %[[Y]] {{\[\[}}0], [1, 2], [3]]
// CHECK: return %[[Z]]
func.func @batch_inside_the_result(%a: tensor<2x3x4x5xf32>, %b: tensor<2x3x5x6xf32>) -> tensor<4x6x6xf32> {
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<4x6x6xf32>
  %ones = linalg.fill ins(%one : f32) outs(%empty : tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %u = tensor.collapse_shape %a [[0, 1], [2], [3]] : tensor<2x3x4x5xf32> into tensor<6x4x5xf32>
  %v = tensor.collapse_shape %b [[0, 1], [2], [3]] : tensor<2x3x5x6xf32> into tensor<6x5x6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>,
                                        affine_map<(b, m, n, k) -> (m, b, n)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%u, %v : tensor<6x4x5xf32>, tensor<6x5x6xf32>) outs(%ones : tensor<4x6x6xf32>) {
  ^bb0(%e: f32, %f: f32, %s: f32):
    %p = arith.mulf %e, %f : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x6x6xf32>
  return %y : tensor<4x6x6xf32>
}

// A contraction that reads a result without a reshape between gets separate dims as well.
// CHECK-LABEL: func.func @chain_of_batches
// CHECK-NOT: linalg.batch_matmul
// CHECK: %[[X:.+]] = linalg.generic {{.*}} outs(%{{.+}} : tensor<2x3x4x6xf32>)
// CHECK-NOT: linalg.batch_matmul
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} ins(%[[X]], %{{.+}}) outs(%{{.+}} : tensor<2x3x4x7xf32>)
// CHECK: tensor.collapse_shape %[[Y]]
func.func @chain_of_batches(%a: tensor<2x3x4x5xf32>, %b: tensor<2x3x5x6xf32>, %c: tensor<2x3x6x7xf32>)
    -> tensor<6x4x7xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6x4x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x4x6xf32>) -> tensor<6x4x6xf32>
  %empty2 = tensor.empty() : tensor<6x4x7xf32>
  %zeros2 = linalg.fill ins(%zero : f32) outs(%empty2 : tensor<6x4x7xf32>) -> tensor<6x4x7xf32>
  %u = tensor.collapse_shape %a [[0, 1], [2], [3]] : tensor<2x3x4x5xf32> into tensor<6x4x5xf32>
  %v = tensor.collapse_shape %b [[0, 1], [2], [3]] : tensor<2x3x5x6xf32> into tensor<6x5x6xf32>
  %w = tensor.collapse_shape %c [[0, 1], [2], [3]] : tensor<2x3x6x7xf32> into tensor<6x6x7xf32>
  %x = linalg.batch_matmul ins(%u, %v : tensor<6x4x5xf32>, tensor<6x5x6xf32>) outs(%zeros : tensor<6x4x6xf32>)
      -> tensor<6x4x6xf32>
  %y = linalg.batch_matmul ins(%x, %w : tensor<6x4x6xf32>, tensor<6x6x7xf32>) outs(%zeros2 : tensor<6x4x7xf32>)
      -> tensor<6x4x7xf32>
  return %y : tensor<6x4x7xf32>
}

// Groups of heads count as heads if the other operand has these. Dims of one element are ignored.
// CHECK-LABEL: func.func @groups_of_heads
// CHECK-SAME: (%[[A:.+]]: tensor<2x6x4x5xf32>, %[[B:.+]]: tensor<1x2x2x3x1x5x6xf32>)
// CHECK: %[[HEADS:.+]] = tensor.collapse_shape %[[B]] {{\[\[}}0, 1], [2, 3, 4], [5], [6]] : {{.*}} into tensor<2x6x5x6xf32>
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[HEADS]] : {{.*}}) outs(%{{.+}} : tensor<2x6x4x6xf32>)
func.func @groups_of_heads(%a: tensor<2x6x4x5xf32>, %b: tensor<1x2x2x3x1x5x6xf32>) -> tensor<12x4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<12x4x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<12x4x6xf32>) -> tensor<12x4x6xf32>
  %u = tensor.collapse_shape %a [[0, 1], [2], [3]] : tensor<2x6x4x5xf32> into tensor<12x4x5xf32>
  %v = tensor.collapse_shape %b [[0, 1, 2, 3, 4], [5], [6]] : tensor<1x2x2x3x1x5x6xf32> into tensor<12x5x6xf32>
  %y = linalg.batch_matmul ins(%u, %v : tensor<12x4x5xf32>, tensor<12x5x6xf32>) outs(%zeros : tensor<12x4x6xf32>)
      -> tensor<12x4x6xf32>
  return %y : tensor<12x4x6xf32>
}

// They are groups if a reader of the result splits them so: the heads of the other operand are split, too.
// CHECK-LABEL: func.func @groups_behind
// CHECK-SAME: (%[[A:.+]]: tensor<2x6x4x5xf32>, %[[B:.+]]: tensor<2x2x3x5x6xf32>)
// CHECK: %[[GROUPS:.+]] = tensor.expand_shape %[[A]] {{\[\[}}0], [1, 2], [3], [4]] {{.*}} into tensor<2x2x3x4x5xf32>
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} ins(%[[GROUPS]], %[[B]] : {{.*}}) outs(%{{.+}} : tensor<2x2x3x4x6xf32>)
// CHECK-NOT: tensor.expand_shape
// CHECK: return %[[Y]]
func.func @groups_behind(%a: tensor<2x6x4x5xf32>, %b: tensor<2x2x3x5x6xf32>) -> tensor<2x2x3x4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<12x4x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<12x4x6xf32>) -> tensor<12x4x6xf32>
  %u = tensor.collapse_shape %a [[0, 1], [2], [3]] : tensor<2x6x4x5xf32> into tensor<12x4x5xf32>
  %v = tensor.collapse_shape %b [[0, 1, 2], [3], [4]] : tensor<2x2x3x5x6xf32> into tensor<12x5x6xf32>
  %y = linalg.batch_matmul ins(%u, %v : tensor<12x4x5xf32>, tensor<12x5x6xf32>) outs(%zeros : tensor<12x4x6xf32>)
      -> tensor<12x4x6xf32>
  %z = tensor.expand_shape %y [[0, 1, 2], [3], [4]] output_shape [2, 2, 3, 4, 6] : tensor<12x4x6xf32> into tensor<2x2x3x4x6xf32>
  return %z : tensor<2x2x3x4x6xf32>
}

// Heads of an operand that was never merged are split, too, unless an op computes it over the merged dim.
// CHECK-LABEL: func.func @values_of_all_batches
// CHECK-SAME: (%[[A:.+]]: tensor<2x3x4x5xf32>, %[[B:.+]]: tensor<5x6x7xf32>, %[[C:.+]]: tensor<6x5x7xf32>)
// CHECK: %[[V:.+]] = linalg.transpose ins(%[[B]]
// CHECK: %[[APART:.+]] = tensor.expand_shape %[[V]] {{\[\[}}0, 1], [2], [3]] {{.*}} into tensor<2x3x5x7xf32>
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[APART]] : {{.*}}) outs(%{{.+}} : tensor<2x3x4x7xf32>)
// CHECK: linalg.exp
// CHECK: linalg.batch_matmul
func.func @values_of_all_batches(%a: tensor<2x3x4x5xf32>, %b: tensor<5x6x7xf32>, %c: tensor<6x5x7xf32>)
    -> (tensor<2x3x4x7xf32>, tensor<2x3x4x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6x4x7xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x4x7xf32>) -> tensor<6x4x7xf32>
  %e = tensor.empty() : tensor<6x5x7xf32>
  %u = tensor.collapse_shape %a [[0, 1], [2], [3]] : tensor<2x3x4x5xf32> into tensor<6x4x5xf32>
  %v = linalg.transpose ins(%b : tensor<5x6x7xf32>) outs(%e : tensor<6x5x7xf32>) permutation = [1, 0, 2]
  %y = linalg.batch_matmul ins(%u, %v : tensor<6x4x5xf32>, tensor<6x5x7xf32>) outs(%zeros : tensor<6x4x7xf32>)
      -> tensor<6x4x7xf32>
  %z = tensor.expand_shape %y [[0, 1], [2], [3]] output_shape [2, 3, 4, 7] : tensor<6x4x7xf32> into tensor<2x3x4x7xf32>
  %w = linalg.exp ins(%c : tensor<6x5x7xf32>) outs(%e : tensor<6x5x7xf32>) -> tensor<6x5x7xf32>
  %s = linalg.batch_matmul ins(%u, %w : tensor<6x4x5xf32>, tensor<6x5x7xf32>) outs(%zeros : tensor<6x4x7xf32>)
      -> tensor<6x4x7xf32>
  %t = tensor.expand_shape %s [[0, 1], [2], [3]] output_shape [2, 3, 4, 7] : tensor<6x4x7xf32> into tensor<2x3x4x7xf32>
  return %z, %t : tensor<2x3x4x7xf32>, tensor<2x3x4x7xf32>
}

// An operand whose reduced dim was merged as well, as by rotary embeddings of neighbours, keeps that dim whole.
// CHECK-LABEL: func.func @reduced_dim_merged_as_well
// CHECK-SAME: (%[[A:.+]]: tensor<2x3x4x5x2xf32>, %[[B:.+]]: tensor<2x3x10x7xf32>)
// CHECK: %[[TOGETHER:.+]] = tensor.collapse_shape %[[A]] {{\[\[}}0, 1], [2], [3, 4]] {{.*}} into tensor<6x4x10xf32>
// CHECK: %[[APART:.+]] = tensor.expand_shape %[[TOGETHER]] {{\[\[}}0, 1], [2], [3]] {{.*}} into tensor<2x3x4x10xf32>
// CHECK: linalg.generic {{.*}} ins(%[[APART]], %[[B]] : {{.*}}) outs(%{{.+}} : tensor<2x3x4x7xf32>)
func.func @reduced_dim_merged_as_well(%a: tensor<2x3x4x5x2xf32>, %b: tensor<2x3x10x7xf32>) -> tensor<2x3x4x7xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6x4x7xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x4x7xf32>) -> tensor<6x4x7xf32>
  %u = tensor.collapse_shape %a [[0, 1], [2], [3, 4]] : tensor<2x3x4x5x2xf32> into tensor<6x4x10xf32>
  %v = tensor.collapse_shape %b [[0, 1], [2], [3]] : tensor<2x3x10x7xf32> into tensor<6x10x7xf32>
  %y = linalg.batch_matmul ins(%u, %v : tensor<6x4x10xf32>, tensor<6x10x7xf32>) outs(%zeros : tensor<6x4x7xf32>)
      -> tensor<6x4x7xf32>
  %z = tensor.expand_shape %y [[0, 1], [2], [3]] output_shape [2, 3, 4, 7] : tensor<6x4x7xf32> into tensor<2x3x4x7xf32>
  return %z : tensor<2x3x4x7xf32>
}

// Left alone: merged rows are one dim of a matrix, dims of one element need no split, the operands' other dims differ,
// and an f16 accumulator is IREE's.
// CHECK-LABEL: func.func @leaves_the_rest_together
// CHECK: linalg.matmul
// CHECK: linalg.batch_matmul
// CHECK: linalg.batch_matmul
// CHECK: linalg.batch_matmul
func.func @leaves_the_rest_together(%a: tensor<2x3x5xf32>, %b: tensor<5x6xf32>, %c: tensor<1x6x4x5xf32>,
                                    %d: tensor<1x6x5x6xf32>, %e: tensor<2x3x4x5xf32>, %f: tensor<3x2x5x6xf32>,
                                    %g: tensor<2x3x4x5xf16>, %h: tensor<2x3x5x6xf16>)
    -> (tensor<6x6xf32>, tensor<6x4x6xf32>, tensor<6x4x6xf32>, tensor<6x4x6xf16>) {
  %zero = arith.constant 0.0 : f32
  %matrix = tensor.empty() : tensor<6x6xf32>
  %matrices = tensor.empty() : tensor<6x4x6xf32>
  %start = linalg.fill ins(%zero : f32) outs(%matrix : tensor<6x6xf32>) -> tensor<6x6xf32>
  %starts = linalg.fill ins(%zero : f32) outs(%matrices : tensor<6x4x6xf32>) -> tensor<6x4x6xf32>
  %a2 = tensor.collapse_shape %a [[0, 1], [2]] : tensor<2x3x5xf32> into tensor<6x5xf32>
  %rows = linalg.matmul ins(%a2, %b : tensor<6x5xf32>, tensor<5x6xf32>) outs(%start : tensor<6x6xf32>) -> tensor<6x6xf32>
  %c3 = tensor.collapse_shape %c [[0, 1], [2], [3]] : tensor<1x6x4x5xf32> into tensor<6x4x5xf32>
  %d3 = tensor.collapse_shape %d [[0, 1], [2], [3]] : tensor<1x6x5x6xf32> into tensor<6x5x6xf32>
  %one = linalg.batch_matmul ins(%c3, %d3 : tensor<6x4x5xf32>, tensor<6x5x6xf32>) outs(%starts : tensor<6x4x6xf32>)
      -> tensor<6x4x6xf32>
  %e3 = tensor.collapse_shape %e [[0, 1], [2], [3]] : tensor<2x3x4x5xf32> into tensor<6x4x5xf32>
  %f3 = tensor.collapse_shape %f [[0, 1], [2], [3]] : tensor<3x2x5x6xf32> into tensor<6x5x6xf32>
  %other = linalg.batch_matmul ins(%e3, %f3 : tensor<6x4x5xf32>, tensor<6x5x6xf32>) outs(%starts : tensor<6x4x6xf32>)
      -> tensor<6x4x6xf32>
  %half = arith.constant 0.0 : f16
  %halves = tensor.empty() : tensor<6x4x6xf16>
  %from = linalg.fill ins(%half : f16) outs(%halves : tensor<6x4x6xf16>) -> tensor<6x4x6xf16>
  %g3 = tensor.collapse_shape %g [[0, 1], [2], [3]] : tensor<2x3x4x5xf16> into tensor<6x4x5xf16>
  %h3 = tensor.collapse_shape %h [[0, 1], [2], [3]] : tensor<2x3x5x6xf16> into tensor<6x5x6xf16>
  %narrow = linalg.batch_matmul ins(%g3, %h3 : tensor<6x4x5xf16>, tensor<6x5x6xf16>) outs(%from : tensor<6x4x6xf16>)
      -> tensor<6x4x6xf16>
  return %rows, %one, %other, %narrow : tensor<6x6xf32>, tensor<6x4x6xf32>, tensor<6x4x6xf32>, tensor<6x4x6xf16>
}
