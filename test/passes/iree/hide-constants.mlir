// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-hide-constants | FileCheck %s

#map = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @slice
// CHECK: %[[CONSTANT:.*]] = arith.constant dense<[1.0
// CHECK: %[[HIDDEN:.*]] = "util.optimization_barrier"(%[[CONSTANT]])
// CHECK: tensor.extract_slice %[[HIDDEN]]
func.func @slice() -> tensor<2xf32> {
  %constant = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %0 = tensor.extract_slice %constant[1] [2] [1] : tensor<3xf32> to tensor<2xf32>
  return %0 : tensor<2xf32>
}

// IREE moves the slice through the reshape and the extension.
// CHECK-LABEL: func.func @computed
// CHECK: %[[CONSTANT:.*]] = arith.constant dense<{{\[\[}}1.0
// CHECK: %[[HIDDEN:.*]] = "util.optimization_barrier"(%[[CONSTANT]])
// CHECK: tensor.collapse_shape %[[HIDDEN]]
func.func @computed() -> tensor<2xf32> {
  %constant = arith.constant dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf16>
  %empty = tensor.empty() : tensor<3xf32>
  %0 = tensor.collapse_shape %constant [[0, 1]] : tensor<1x3xf16> into tensor<3xf16>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%0 : tensor<3xf16>) outs(%empty : tensor<3xf32>) {
  ^bb0(%x: f16, %old: f32):
    %wide = arith.extf %x : f16 to f32
    linalg.yield %wide : f32
  } -> tensor<3xf32>
  %2 = tensor.extract_slice %1[1] [2] [1] : tensor<3xf32> to tensor<2xf32>
  return %2 : tensor<2xf32>
}

// Splats are no loads, larger constants are in memory already, and what is not sliced compiles.
// CHECK-LABEL: func.func @others
// CHECK-NOT: util.optimization_barrier
func.func @others(%x: tensor<3xf32>) -> (tensor<2xf32>, tensor<2xi64>, tensor<3xf32>) {
  %splat = arith.constant dense<1.0> : tensor<3xf32>
  %0 = tensor.extract_slice %splat[1] [2] [1] : tensor<3xf32> to tensor<2xf32>
  %large = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32]> : tensor<33xi64>
  %1 = tensor.extract_slice %large[1] [2] [1] : tensor<33xi64> to tensor<2xi64>
  %whole = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %2 = arith.addf %whole, %x : tensor<3xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xi64>, tensor<3xf32>
}
