// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-convolution-to-matmul))' | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-convolution-to-matmul{target=cuda:h200}))' | FileCheck %s --check-prefix=GPU
// A transposed convolution as front ends spell it: zeros between the points of the image, and flipped weights.

// Each point is multiplied with all weights of its channels, and the results of a window are put side by side. Nothing
// reads the zeros or flips the weights.
// GPU-LABEL: func.func @disjoint
// GPU-NOT: tensor.insert_slice
// GPU: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<24x5xf32>, tensor<5x42xf32>)
// CHECK-LABEL: func.func @disjoint
// CHECK-SAME: (%[[X:.+]]: tensor<2x5x3x4xf32>, %[[W:.+]]: tensor<5x7x2x3xf32>
// CHECK-NOT: tensor.insert_slice
// CHECK-NOT: tensor.extract
// CHECK: tensor.expand_shape %[[W]] {{.*}} into tensor<5x7x1x2x1x3xf32>
// CHECK: linalg.transpose {{.*}} outs(%{{.*}} : tensor<1x1x5x2x3x7xf32>) permutation = [2, 4, 0, 3, 5, 1]
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

// Windows that overlap (3 points, stride 2) cover two points of the image at most. The weights get a zero in front, so
// that both points have two of them; the window of the weights that is nearer to its end reads the first point.
// GPU-LABEL: func.func @overlapping
// GPU-NOT: tensor.insert_slice
// GPU: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<5x10xf32>, tensor<10x14xf32>)
// CHECK-LABEL: func.func @overlapping
// CHECK-SAME: (%[[X:.+]]: tensor<1x5x4xf32>, %[[W:.+]]: tensor<5x7x3xf32>
// CHECK-NOT: tensor.insert_slice
// CHECK: tensor.pad %{{.*}} low[0, 1, 0] high[0, 1, 0]
// CHECK: tensor<1x4x5xf32> to tensor<1x6x5xf32>
// CHECK: tensor.pad %[[W]] low[0, 0, 1] high[0, 0, 0]
// CHECK: %[[TAPS:.+]] = tensor.expand_shape {{.*}} into tensor<5x7x2x2xf32>
// CHECK-DAG: %[[FIRST:.+]] = tensor.extract_slice %[[TAPS]][0, 0, 0, 0] [5, 7, 1, 2]
// CHECK-DAG: %[[SECOND:.+]] = tensor.extract_slice %[[TAPS]][0, 0, 1, 0] [5, 7, 1, 2]
// CHECK: tensor.concat dim(2) %[[SECOND]], %[[FIRST]]
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<5x10xf32>, tensor<10x14xf32>)
// CHECK: tensor.collapse_shape {{.*}} into tensor<1x10x7xf32>
// CHECK: tensor.extract_slice %{{.*}}[0, 1, 0] [1, 9, 7] [1, 1, 1]
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
