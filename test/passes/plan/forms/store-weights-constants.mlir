// RUN: tilewright-opt %s --split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(tile-pack-weights{target=x86-64-v2}),tile-store-weights)' | FileCheck %s

// A weight that is a constant of the module is packed right away: columns are padded to whole blocks.
// CHECK-LABEL: func.func @packs
// CHECK: arith.constant dense<{{\[\[\[}}1.000000e+00, 2.000000e+00, 3.000000e+00, 0.000000e+00
// CHECK-SAME: [4.000000e+00, 5.000000e+00, 6.000000e+00, 0.000000e+00, {{.*}} : tensor<1x2x8xf32>
// CHECK-NOT: tensor.pad
func.func @packs(%a: tensor<9x2xf32>) -> tensor<9x3xf32> {
  %w = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %z = arith.constant dense<0.0> : tensor<9x3xf32>
  %m = linalg.matmul ins(%a, %w : tensor<9x2xf32>, tensor<2x3xf32>) outs(%z : tensor<9x3xf32>) -> tensor<9x3xf32>
  return %m : tensor<9x3xf32>
}

// -----

// A slice of it is packed as well: the second matrix.
// CHECK-LABEL: func.func @slices
// CHECK: arith.constant dense<{{\[\[\[}}3.000000e+00, 4.000000e+00, 0.000000e+00, {{.*}} : tensor<1x1x8xf32>
func.func @slices(%a: tensor<9x1xf32>) -> tensor<9x2xf32> {
  %both = arith.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
  %w = tensor.extract_slice %both[1, 0, 0] [1, 1, 2] [1, 1, 1] : tensor<2x1x2xf32> to tensor<1x2xf32>
  %z = arith.constant dense<0.0> : tensor<9x2xf32>
  %m = linalg.matmul ins(%a, %w : tensor<9x1xf32>, tensor<1x2xf32>) outs(%z : tensor<9x2xf32>) -> tensor<9x2xf32>
  return %m : tensor<9x2xf32>
}
