// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-defer-normalization))' | FileCheck %s

#id = affine_map<(b, i, j) -> (b, i, j)>
#row = affine_map<(b, i, j) -> (b, i)>
#whole = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>

// The second matmul of an attention, between reshapes, multiplies with the exponentials, and its smaller result is
// divided by their sum.
// CHECK-LABEL: func @second_matmul_of_an_attention
// CHECK: arith.subf
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<6x29x53xf32>)
// CHECK:   math.exp %{{[^ ]*}} : f32
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[E]] : tensor<6x29x53xf32>)
// CHECK:   arith.addf
// CHECK-NOT: arith.divf
// CHECK: %[[V:.*]] = tensor.expand_shape %[[E]]
// CHECK: %[[C:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[V]], %{{.*}} : tensor<2x3x29x53xf32>
// CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%[[C]], %[[S]] : tensor<2x3x29x17xf32>, tensor<6x29xf32>)
// CHECK-SAME: attrs = {tile.form = "division after its contraction"}
// CHECK:   arith.divf
// CHECK: return %[[Q]]
func.func @second_matmul_of_an_attention(%x: tensor<6x29x53xf32>, %v: tensor<2x3x53x17xf32>) -> tensor<2x3x29x17xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %full = tensor.empty() : tensor<6x29x53xf32>
  %rows = tensor.empty() : tensor<6x29xf32>
  %lowest = linalg.fill ins(%low : f32) outs(%rows : tensor<6x29xf32>) -> tensor<6x29xf32>
  %most = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<6x29x53xf32>) outs(%lowest : tensor<6x29xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<6x29xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %most : tensor<6x29x53xf32>, tensor<6x29xf32>) outs(%full : tensor<6x29x53xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<6x29x53xf32>
  %rows0 = linalg.fill ins(%zero : f32) outs(%rows : tensor<6x29xf32>) -> tensor<6x29xf32>
  %e = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%d : tensor<6x29x53xf32>) outs(%full : tensor<6x29x53xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<6x29x53xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%e : tensor<6x29x53xf32>) outs(%rows0 : tensor<6x29xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<6x29xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e, %s : tensor<6x29x53xf32>, tensor<6x29xf32>) outs(%full : tensor<6x29x53xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<6x29x53xf32>
  %view = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [2, 3, 29, 53] : tensor<6x29x53xf32> into tensor<2x3x29x53xf32>
  %out = tensor.empty() : tensor<2x3x29x17xf32>
  %out0 = linalg.fill ins(%zero : f32) outs(%out : tensor<2x3x29x17xf32>) -> tensor<2x3x29x17xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(b, h, i, n, j) -> (b, h, i, j)>, affine_map<(b, h, i, n, j) -> (b, h, j, n)>,
                                        affine_map<(b, h, i, n, j) -> (b, h, i, n)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%view, %v : tensor<2x3x29x53xf32>, tensor<2x3x53x17xf32>) outs(%out0 : tensor<2x3x29x17xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x3x29x17xf32>
  return %c : tensor<2x3x29x17xf32>
}

// Rows that are set to zero after the division, and the reciprocal of the sum as a factor: both move behind the
// contraction, which reads the exponentials.
// CHECK-LABEL: func @rows_of_zeros_and_a_reciprocal
// CHECK-SAME: %[[V:[a-z0-9]*]]: tensor<53x17xf32>, %[[HIDDEN:[a-z0-9]*]]: tensor<29x1xi1>
// CHECK: arith.maximumf
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<29x53xf32>)
// CHECK:   math.exp
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[E]] : tensor<29x53xf32>)
// CHECK-NOT: arith.divf
// CHECK-NOT: arith.select
// CHECK: %[[C:.*]] = linalg.matmul ins(%[[E]], %[[V]]
// CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%[[C]], %[[S]], %[[HIDDEN]] : tensor<29x17xf32>, tensor<29xf32>, tensor<29x1xi1>)
// CHECK: ^bb0(%[[SUM:.*]]: f32, %[[BY:.*]]: f32, %[[IS:.*]]: i1, %{{.*}}: f32):
// CHECK:   %[[P:.*]] = arith.divf %[[SUM]], %[[BY]]
// CHECK:   arith.select %[[IS]], %{{.*}}, %[[P]] : f32
// CHECK: return %[[Q]]
func.func @rows_of_zeros_and_a_reciprocal(%x: tensor<29x53xf32>, %v: tensor<53x17xf32>, %hidden: tensor<29x1xi1>) -> tensor<29x17xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %zeros = arith.constant dense<0.0> : tensor<1xf32>
  %one = arith.constant 1.0 : f32
  %full = tensor.empty() : tensor<29x53xf32>
  %rows = tensor.empty() : tensor<29xf32>
  %lowest = linalg.fill ins(%low : f32) outs(%rows : tensor<29xf32>) -> tensor<29xf32>
  %most = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<29x53xf32>) outs(%lowest : tensor<29xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<29xf32>
  %e = linalg.generic {indexing_maps = [#whole, #rows, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %most : tensor<29x53xf32>, tensor<29xf32>) outs(%full : tensor<29x53xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<29x53xf32>
  %rows0 = linalg.fill ins(%zero : f32) outs(%rows : tensor<29xf32>) -> tensor<29xf32>
  %s = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<29x53xf32>) outs(%rows0 : tensor<29xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<29xf32>
  %inverse = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%s : tensor<29xf32>) outs(%rows : tensor<29xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.divf %one, %a : f32
    linalg.yield %r : f32
  } -> tensor<29xf32>
  %p = linalg.generic {indexing_maps = [#rows, #whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%inverse, %e : tensor<29xf32>, tensor<29x53xf32>) outs(%full : tensor<29x53xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %b, %a : f32
    linalg.yield %r : f32
  } -> tensor<29x53xf32>
  %shown = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (0)>, #whole, #whole],
                           iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %zeros, %p : tensor<29x1xi1>, tensor<1xf32>, tensor<29x53xf32>) outs(%full : tensor<29x53xf32>) {
  ^bb0(%c: i1, %z: f32, %a: f32, %o: f32):
    %r = arith.select %c, %z, %a : f32
    linalg.yield %r : f32
  } -> tensor<29x53xf32>
  %out = tensor.empty() : tensor<29x17xf32>
  %out0 = linalg.fill ins(%zero : f32) outs(%out : tensor<29x17xf32>) -> tensor<29x17xf32>
  %c = linalg.matmul ins(%shown, %v : tensor<29x53xf32>, tensor<53x17xf32>) outs(%out0 : tensor<29x17xf32>) -> tensor<29x17xf32>
  return %c : tensor<29x17xf32>
}
