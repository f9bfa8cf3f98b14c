// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-normalize))' | FileCheck %s

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
