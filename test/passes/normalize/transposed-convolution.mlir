// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-convolution-to-matmul))' | FileCheck %s
// A transposed convolution with windows that do not overlap, as front ends spell it: zeros between the points of the
// image, and flipped weights.

// Each point is multiplied with all weights of its channels, and the results of a window are put side by side. Nothing
// reads the zeros or flips the weights.
// CHECK-LABEL: func.func @disjoint
// CHECK-SAME: (%[[X:.+]]: tensor<2x5x3x4xf32>, %[[W:.+]]: tensor<5x7x2x3xf32>
// CHECK-NOT: tensor.insert_slice
// CHECK-NOT: tensor.extract
// CHECK: %[[T:.+]] = linalg.transpose ins(%[[W]] : {{.*}} permutation = [0, 2, 3, 1]
// CHECK: tensor.collapse_shape %[[T]] {{\[\[}}0], [1, 2, 3]] : {{.*}} into tensor<5x42xf32>
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<24x5xf32>, tensor<5x42xf32>)
// CHECK: %[[S:.+]] = tensor.expand_shape {{.*}} into tensor<2x3x4x2x3x7xf32>
// CHECK: linalg.transpose ins(%[[S]] : {{.*}} permutation = [0, 1, 3, 2, 4, 5]
// CHECK: tensor.collapse_shape {{.*}} : tensor<2x3x2x4x3x7xf32> into tensor<2x6x12x7xf32>
// CHECK: return %{{.*}} : tensor<2x7x6x12xf32>
func.func @disjoint(%x: tensor<2x5x3x4xf32>, %w: tensor<5x7x2x3xf32>, %b: tensor<2x7x6x12xf32>) -> tensor<2x7x6x12xf32> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<7x5x2x3xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<7x5x2x3xf32>) {
  ^bb0(%o: f32):
    %f = linalg.index 0 : index
    %c = linalg.index 1 : index
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %k = arith.subi %c1, %i : index
    %l = arith.subi %c2, %j : index
    %u = tensor.extract %w[%c, %f, %k, %l] : tensor<5x7x2x3xf32>
    linalg.yield %u : f32
  } -> tensor<7x5x2x3xf32>
  %s = tensor.empty() : tensor<2x5x7x14xf32>
  %z = linalg.fill ins(%zero : f32) outs(%s : tensor<2x5x7x14xf32>) -> tensor<2x5x7x14xf32>
  %y = tensor.insert_slice %x into %z[0, 0, 1, 2] [2, 5, 3, 4] [1, 1, 2, 3] : tensor<2x5x3x4xf32> into tensor<2x5x7x14xf32>
  %r = linalg.conv_2d_nchw_fchw ins(%y, %v : tensor<2x5x7x14xf32>, tensor<7x5x2x3xf32>)
      outs(%b : tensor<2x7x6x12xf32>) -> tensor<2x7x6x12xf32>
  return %r : tensor<2x7x6x12xf32>
}

// Windows that overlap (3 points, stride 2) are left alone: the zeros stay.
// CHECK-LABEL: func.func @overlapping
// CHECK: tensor.insert_slice
// CHECK: return
func.func @overlapping(%x: tensor<1x5x4xf32>, %w: tensor<5x7x3xf32>, %b: tensor<1x7x9xf32>) -> tensor<1x7x9xf32> {
  %zero = arith.constant 0.0 : f32
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<7x5x3xf32>
  %v = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<7x5x3xf32>) {
  ^bb0(%o: f32):
    %f = linalg.index 0 : index
    %c = linalg.index 1 : index
    %i = linalg.index 2 : index
    %k = arith.subi %c2, %i : index
    %u = tensor.extract %w[%c, %f, %k] : tensor<5x7x3xf32>
    linalg.yield %u : f32
  } -> tensor<7x5x3xf32>
  %s = tensor.empty() : tensor<1x5x11xf32>
  %z = linalg.fill ins(%zero : f32) outs(%s : tensor<1x5x11xf32>) -> tensor<1x5x11xf32>
  %y = tensor.insert_slice %x into %z[0, 0, 2] [1, 5, 4] [1, 1, 2] : tensor<1x5x4xf32> into tensor<1x5x11xf32>
  %r = linalg.conv_1d_ncw_fcw ins(%y, %v : tensor<1x5x11xf32>, tensor<7x5x3xf32>)
      outs(%b : tensor<1x7x9xf32>) -> tensor<1x7x9xf32>
  return %r : tensor<1x7x9xf32>
}
