// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-normalize))' | FileCheck %s

// If nobody reads the index of a maximum, it is neither computed nor written.
// CHECK-LABEL: func @unread_result_is_erased
// CHECK: linalg.generic
// CHECK-SAME: outs(%{{[^,]+}} : tensor<3xf32>)
// CHECK-NOT: tensor<3xi64>
func.func @unread_result_is_erased(%a: tensor<3x5xf32>) -> tensor<3xf32> {
  %low = arith.constant dense<0xFF800000> : tensor<3xf32>
  %first = arith.constant dense<0> : tensor<3xi64>
  %m:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<3x5xf32>) outs(%low, %first : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%in: f32, %best: f32, %at: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %greater = arith.cmpf ogt, %in, %best : f32
    %max = arith.maximumf %in, %best : f32
    %where = arith.select %greater, %here, %at : i64
    linalg.yield %max, %where : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %m#0 : tensor<3xf32>
}

// CHECK-LABEL: func @unread_operand_is_erased
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0 : tensor<5xf32>)
func.func @unread_operand_is_erased(%a: tensor<5xf32>, %b: tensor<5xf32>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
      ins(%a, %b : tensor<5xf32>, tensor<5xf32>) outs(%e : tensor<5xf32>) {
  ^bb0(%u: f32, %v: f32, %out: f32):
    %y = math.exp %u : f32
    linalg.yield %y : f32
  } -> tensor<5xf32>
  return %x : tensor<5xf32>
}

// Unknown ops stay, even unused ones, and so does every op that is not a linalg.generic.
// CHECK-LABEL: func @leaves_the_rest
// CHECK: "some.op"
// CHECK: arith.addf
// CHECK: linalg.matmul
func.func @leaves_the_rest(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %s: f32) -> tensor<3x5xf32> {
  %zero = arith.constant dense<0.0> : tensor<3x5xf32>
  %unknown = "some.op"(%a) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %unused = arith.addf %s, %s : f32
  %c = linalg.matmul ins(%a, %b : tensor<3x4xf32>, tensor<4x5xf32>) outs(%zero : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %c : tensor<3x5xf32>
}

// A kernel cannot report a failed assertion, so an assertion does not keep an expression out of a kernel.
// CHECK-LABEL: func @assertion_is_dropped
// CHECK-NOT: cf.assert
// CHECK: linalg.yield
func.func @assertion_is_dropped(%a: tensor<5xf32>) -> tensor<5xf32> {
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<5xf32>) outs(%e : tensor<5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %fine = arith.cmpf one, %in, %zero : f32
    cf.assert %fine, "division by zero"
    %r = arith.divf %one, %in : f32
    linalg.yield %r : f32
  } -> tensor<5xf32>
  return %x : tensor<5xf32>
}

// A reduced dim of length zero needs no multiplication, and a result without elements no computation.
// CHECK-LABEL: func @sum_of_no_terms_is_its_init
// CHECK: %[[INIT:.+]] = linalg.fill
// CHECK-NOT: linalg.matmul
// CHECK: return %[[INIT]], %arg2
func.func @sum_of_no_terms_is_its_init(%a: tensor<4x0xf32>, %b: tensor<0x5xf32>, %e: tensor<0x7xf32>) -> (tensor<4x5xf32>, tensor<0x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x5xf32>) -> tensor<4x5xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x0xf32>, tensor<0x5xf32>) outs(%init : tensor<4x5xf32>) -> tensor<4x5xf32>
  %x = linalg.exp ins(%e : tensor<0x7xf32>) outs(%e : tensor<0x7xf32>) -> tensor<0x7xf32>
  return %c, %x : tensor<4x5xf32>, tensor<0x7xf32>
}

// A dim of dynamic length may have elements.
// CHECK-LABEL: func @unknown_lengths_are_kept
// CHECK: linalg.matmul
func.func @unknown_lengths_are_kept(%a: tensor<4x?xf32>, %b: tensor<?x5xf32>, %init: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %c = linalg.matmul ins(%a, %b : tensor<4x?xf32>, tensor<?x5xf32>) outs(%init : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %c : tensor<4x5xf32>
}

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

// A scalar that a body extracts from a tensor, and arithmetic on it, become an operand and part of the body.
// CHECK-LABEL: func @taken_scalar_becomes_an_operand
// CHECK-NOT: tensor.extract
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0, %arg1 : tensor<5xi32>, tensor<i8>)
// CHECK: ^bb0(%[[IN:.*]]: i32, %[[Z:.*]]: i8, %{{.*}}: i32):
// CHECK: %[[W:.*]] = arith.extui %[[Z]] : i8 to i32
// CHECK: %[[S:.*]] = arith.addi %[[W]], %{{.*}} : i32
// CHECK: arith.subi %[[IN]], %[[S]]
func.func @taken_scalar_becomes_an_operand(%x: tensor<5xi32>, %zero: tensor<i8>) -> tensor<5xi32> {
  %c = arith.constant -128 : i32
  %z = tensor.extract %zero[] : tensor<i8>
  %w = arith.extui %z : i8 to i32
  %s = arith.addi %w, %c : i32
  %e = tensor.empty() : tensor<5xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<5xi32>) outs(%e : tensor<5xi32>) {
  ^bb0(%in: i32, %out: i32):
    %d = arith.subi %in, %s : i32
    linalg.yield %d : i32
  } -> tensor<5xi32>
  return %y : tensor<5xi32>
}

// Padding the differences to a zero point with zeros pads the bytes with the zero point.
// CHECK-LABEL: func @taken_pad_becomes_constant
// CHECK: %[[D:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<5xi8>, tensor<i8>)
// CHECK: arith.subi
// CHECK: %[[P:.*]] = tensor.pad %[[D]]
// CHECK: tensor.yield %c0_i8
// CHECK: linalg.generic {{.*}} ins(%[[P]], %arg1 : tensor<8xi8>, tensor<i8>)
// CHECK: arith.addi
func.func @taken_pad_becomes_constant(%x: tensor<5xi8>, %zero: tensor<i8>) -> tensor<8xi8> {
  %z = tensor.extract %zero[] : tensor<i8>
  %p = tensor.pad %x low[1] high[2] {
  ^bb0(%i: index):
    tensor.yield %z : i8
  } : tensor<5xi8> to tensor<8xi8>
  return %p : tensor<8xi8>
}

// A scalar computed from arguments alone is not an element of a tensor.
// CHECK-LABEL: func @leaves_scalar_arguments_outside
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0 : tensor<5xi32>)
func.func @leaves_scalar_arguments_outside(%x: tensor<5xi32>, %z: i32) -> tensor<5xi32> {
  %e = tensor.empty() : tensor<5xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<5xi32>) outs(%e : tensor<5xi32>) {
  ^bb0(%in: i32, %out: i32):
    %d = arith.subi %in, %z : i32
    linalg.yield %d : i32
  } -> tensor<5xi32>
  return %y : tensor<5xi32>
}

// A front end reduces a maximum over two dims one after the other.
// CHECK-LABEL: func @maximum_of_maxima
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel", "reduction"]
// CHECK-SAME: outs(%{{.*}} : tensor<3x1xf32>)
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @maximum_of_maxima(%a: tensor<3x5x7xf32>) -> tensor<3x1xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %start = linalg.fill ins(%low : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a : tensor<3x5x7xf32>) outs(%start : tensor<3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  %kept = tensor.expand_shape %m [[0], [1, 2]] output_shape [3, 5, 1] : tensor<3x5xf32> into tensor<3x5x1xf32>
  %e2 = tensor.empty() : tensor<3x1xf32>
  %start2 = linalg.fill ins(%low : f32) outs(%e2 : tensor<3x1xf32>) -> tensor<3x1xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, k)>],
                       iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%kept : tensor<3x5x1xf32>) outs(%start2 : tensor<3x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<3x1xf32>
  return %n : tensor<3x1xf32>
}

// A dim of one element that was added is reduced, too, because it has no loop any more.
// CHECK-LABEL: func @maximum_along_an_added_dim
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "reduction"]
// CHECK-SAME: ins(%{{.*}} : tensor<3x5x7xf32>) outs(%{{.*}} : tensor<3xf32>)
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @maximum_along_an_added_dim(%a: tensor<3x5x7xf32>) -> tensor<3xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %start = linalg.fill ins(%low : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a : tensor<3x5x7xf32>) outs(%start : tensor<3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  %kept = tensor.expand_shape %m [[0, 1], [2]] output_shape [3, 1, 5] : tensor<3x5xf32> into tensor<3x1x5xf32>
  %e2 = tensor.empty() : tensor<3xf32>
  %start2 = linalg.fill ins(%low : f32) outs(%e2 : tensor<3xf32>) -> tensor<3xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i)>],
                       iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%kept : tensor<3x1x5xf32>) outs(%start2 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %n : tensor<3xf32>
}

// Left alone: sums would change their order of addition, and maxima with other readers are needed.
// CHECK-LABEL: func @sums_and_read_maxima_stay
// CHECK-COUNT-4: linalg.generic
func.func @sums_and_read_maxima_stay(%a: tensor<3x5x7xf32>) -> (tensor<3xf32>, tensor<3x5xf32>, tensor<3xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %e2 = tensor.empty() : tensor<3xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %lows2 = linalg.fill ins(%low : f32) outs(%e2 : tensor<3xf32>) -> tensor<3xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %zeros2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<3xf32>) -> tensor<3xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a : tensor<3x5x7xf32>) outs(%zeros : tensor<3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %x = arith.addf %in, %out : f32
    linalg.yield %x : f32
  } -> tensor<3x5xf32>
  %ss = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                        iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<3x5xf32>) outs(%zeros2 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %x = arith.addf %in, %out : f32
    linalg.yield %x : f32
  } -> tensor<3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a : tensor<3x5x7xf32>) outs(%lows : tensor<3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %x = arith.maximumf %in, %out : f32
    linalg.yield %x : f32
  } -> tensor<3x5xf32>
  %mm = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                        iterator_types = ["parallel", "reduction"]}
      ins(%m : tensor<3x5xf32>) outs(%lows2 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %x = arith.maximumf %in, %out : f32
    linalg.yield %x : f32
  } -> tensor<3xf32>
  return %ss, %m, %mm : tensor<3xf32>, tensor<3x5xf32>, tensor<3xf32>
}

// A slice of an expanded tensor becomes a slice of the tensor, so its reader may share a kernel with the producer.
// CHECK-LABEL: func @slice_before_reshape
// CHECK: %[[E:.+]] = linalg.exp
// CHECK-NEXT: %[[S:.+]] = tensor.extract_slice %[[E]][0, 768] [128, 768] [1, 1] : tensor<128x2304xf32> to tensor<128x768xf32>
// CHECK-NEXT: %[[R:.+]] = tensor.expand_shape %[[S]] {{\[}}[0, 1], [2]] output_shape [128, 1, 768]
// CHECK-NEXT: return %[[R]]
func.func @slice_before_reshape(%a: tensor<128x2304xf32>) -> tensor<128x1x768xf32> {
  %e = tensor.empty() : tensor<128x2304xf32>
  %b = linalg.exp ins(%a : tensor<128x2304xf32>) outs(%e : tensor<128x2304xf32>) -> tensor<128x2304xf32>
  %r = tensor.expand_shape %b [[0, 1], [2]] output_shape [128, 1, 2304] : tensor<128x2304xf32> into tensor<128x1x2304xf32>
  %s = tensor.extract_slice %r[0, 0, 768] [128, 1, 768] [1, 1, 1] : tensor<128x1x2304xf32> to tensor<128x1x768xf32>
  return %s : tensor<128x1x768xf32>
}

// Whole dims may have been merged before; a part of a dim that was split is not a range of the source.
// CHECK-LABEL: func @slice_of_cut_dim
// CHECK: %[[E:.+]] = linalg.exp
// CHECK: tensor.extract_slice %[[E]][64, 0] [32, 35] [1, 1] : tensor<128x35xf32> to tensor<32x35xf32>
// CHECK: tensor.extract_slice %{{.+}}[0, 0, 2] [128, 5, 3] [1, 1, 1]
func.func @slice_of_cut_dim(%a: tensor<128x35xf32>) -> (tensor<32x5x7xf32>, tensor<128x5x3xf32>) {
  %e = tensor.empty() : tensor<128x35xf32>
  %b = linalg.exp ins(%a : tensor<128x35xf32>) outs(%e : tensor<128x35xf32>) -> tensor<128x35xf32>
  %r = tensor.expand_shape %b [[0], [1, 2]] output_shape [128, 5, 7] : tensor<128x35xf32> into tensor<128x5x7xf32>
  %s = tensor.extract_slice %r[64, 0, 0] [32, 5, 7] [1, 1, 1] : tensor<128x5x7xf32> to tensor<32x5x7xf32>
  %t = tensor.extract_slice %r[0, 0, 2] [128, 5, 3] [1, 1, 1] : tensor<128x5x7xf32> to tensor<128x5x3xf32>
  return %s, %t : tensor<32x5x7xf32>, tensor<128x5x3xf32>
}

// Left alone: strides, offsets that are not constant, and slices with fewer dims.
// CHECK-LABEL: func @slice_by_strides
// CHECK: tensor.expand_shape
// CHECK-NEXT: tensor.extract_slice
// CHECK-NEXT: tensor.extract_slice
// CHECK-NEXT: tensor.extract_slice
func.func @slice_by_strides(%a: tensor<128x64xf32>, %n: index) -> (tensor<128x1x32xf32>, tensor<128x1x8xf32>, tensor<128x8xf32>) {
  %e = tensor.empty() : tensor<128x64xf32>
  %b = linalg.exp ins(%a : tensor<128x64xf32>) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>
  %r = tensor.expand_shape %b [[0, 1], [2]] output_shape [128, 1, 64] : tensor<128x64xf32> into tensor<128x1x64xf32>
  %s = tensor.extract_slice %r[0, 0, 0] [128, 1, 32] [1, 1, 2] : tensor<128x1x64xf32> to tensor<128x1x32xf32>
  %t = tensor.extract_slice %r[0, 0, %n] [128, 1, 8] [1, 1, 1] : tensor<128x1x64xf32> to tensor<128x1x8xf32>
  %u = tensor.extract_slice %r[0, 0, 3] [128, 1, 8] [1, 1, 1] : tensor<128x1x64xf32> to tensor<128x8xf32>
  return %s, %t, %u : tensor<128x1x32xf32>, tensor<128x1x8xf32>, tensor<128x8xf32>
}

// An op that only moves elements stays as it is.
// CHECK-LABEL: func @slice_of_movement
// CHECK: tensor.expand_shape
// CHECK-NEXT: tensor.extract_slice
func.func @slice_of_movement(%a: tensor<64x128xf32>) -> tensor<128x1x32xf32> {
  %e = tensor.empty() : tensor<128x64xf32>
  %b = linalg.transpose ins(%a : tensor<64x128xf32>) outs(%e : tensor<128x64xf32>) permutation = [1, 0]
  %r = tensor.expand_shape %b [[0, 1], [2]] output_shape [128, 1, 64] : tensor<128x64xf32> into tensor<128x1x64xf32>
  %s = tensor.extract_slice %r[0, 0, 0] [128, 1, 32] [1, 1, 1] : tensor<128x1x64xf32> to tensor<128x1x32xf32>
  return %s : tensor<128x1x32xf32>
}

// A copy that adds dims of length one becomes a reshape, so the weight of a product of one matrix stays a parameter.
// CHECK-LABEL: func @copies_that_add_ones_are_reshapes
// CHECK-NOT: linalg.generic
// CHECK: %[[A:.+]] = tensor.expand_shape %arg0 {{\[}}[0, 1], [2, 3]] output_shape [1, 5, 7, 1] : tensor<5x7xf16>
// CHECK: %[[B:.+]] = tensor.expand_shape %arg1 [] output_shape [1, 1] : tensor<f16> into tensor<1x1xf16>
// CHECK: return %[[A]], %[[B]]
func.func @copies_that_add_ones_are_reshapes(%a: tensor<5x7xf16>, %b: tensor<f16>) -> (tensor<1x5x7x1xf16>, tensor<1x1xf16>) {
  %e = tensor.empty() : tensor<1x5x7x1xf16>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j, k, l) -> (j, k)>, affine_map<(i, j, k, l) -> (i, j, k, l)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%a : tensor<5x7xf16>) outs(%e : tensor<1x5x7x1xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<1x5x7x1xf16>
  %f = tensor.empty() : tensor<1x1xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<f16>) outs(%f : tensor<1x1xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<1x1xf16>
  return %x, %y : tensor<1x5x7x1xf16>, tensor<1x1xf16>
}

// A copy that repeats, transposes or computes does not become one.
// CHECK-LABEL: func @copies_that_do_more_stay
// CHECK-NOT: tensor.expand_shape
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: tensor.expand_shape
func.func @copies_that_do_more_stay(%a: tensor<5x7xf16>) -> (tensor<2x5x7xf16>, tensor<1x7x5xf16>, tensor<1x5x7xf16>) {
  %e = tensor.empty() : tensor<2x5x7xf16>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : tensor<5x7xf16>) outs(%e : tensor<2x5x7xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x5x7xf16>
  %f = tensor.empty() : tensor<1x7x5xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : tensor<5x7xf16>) outs(%f : tensor<1x7x5xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<1x7x5xf16>
  %g = tensor.empty() : tensor<1x5x7xf16>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : tensor<5x7xf16>) outs(%g : tensor<1x5x7xf16>) {
  ^bb0(%in: f16, %out: f16):
    %s = arith.addf %in, %in : f16
    linalg.yield %s : f16
  } -> tensor<1x5x7xf16>
  return %x, %y, %z : tensor<2x5x7xf16>, tensor<1x7x5xf16>, tensor<1x5x7xf16>
}

// A constant table stays outside of the body that reads it, where it is an operand of the expression.
// CHECK-LABEL: func @table_stays_outside
// CHECK: %[[TABLE:.*]] = arith.constant dense<[1, 2, 3, 5]>
// CHECK: linalg.generic
// CHECK: tensor.extract %[[TABLE]]
func.func @table_stays_outside(%x: tensor<7xi32>) -> tensor<7xi32> {
  %t = arith.constant dense<[1, 2, 3, 5]> : tensor<4xi32>
  %e = tensor.empty() : tensor<7xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<7xi32>) outs(%e : tensor<7xi32>) {
  ^bb0(%in: i32, %out: i32):
    %i = arith.index_cast %in : i32 to index
    %v = tensor.extract %t[%i] : tensor<4xi32>
    linalg.yield %v : i32
  } -> tensor<7xi32>
  return %r : tensor<7xi32>
}
