// RUN: tilewright-opt %s --split-input-file -o /dev/null 2>&1 \
// RUN:   --pass-pipeline='builtin.module(tilewright-cpu-normalize{target=x86-64-avx512}, \
// RUN:     func.func(tile-print-plan{target=x86-64-avx512}))' | FileCheck %s

// A tile of a depthwise convolution has four windows of a line, which share what they read.
// CHECK: kernel reduce_addf_mulf_0:
// CHECK-SAME: tiles [1, 4, 3, 3, 64]
func.func @depthwise(%x: tensor<1x30x30x64xf32>, %k: tensor<3x3x64xf32>) -> tensor<1x28x28x64xf32> {
  %z = arith.constant dense<0.0> : tensor<1x28x28x64xf32>
  %d = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %k : tensor<1x30x30x64xf32>, tensor<3x3x64xf32>)
      outs(%z : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  return %d : tensor<1x28x28x64xf32>
}

// -----

// All tiles have the same number of windows: seven of 49.
// CHECK: kernel reduce_addf_mulf_0:
// CHECK-SAME: tiles [1, 7, 3, 3, 64]
func.func @odd_lines(%x: tensor<1x30x51x64xf32>, %k: tensor<3x3x64xf32>) -> tensor<1x28x49x64xf32> {
  %z = arith.constant dense<0.0> : tensor<1x28x49x64xf32>
  %d = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %k : tensor<1x30x51x64xf32>, tensor<3x3x64xf32>)
      outs(%z : tensor<1x28x49x64xf32>) -> tensor<1x28x49x64xf32>
  return %d : tensor<1x28x49x64xf32>
}

// -----

// Where channels come first, the lanes are points of a line, not the three of a window.
// CHECK: kernel reduce_maximumf_0:
// CHECK-SAME: extents [64, 28, 3, 3, 28] tiles [1, 4, 3, 3, 28]
// CHECK-SAME: vector 4 workgroups
func.func @pool(%x: tensor<1x64x57x57xf32>) -> tensor<1x64x28x28xf32> {
  %low = arith.constant dense<0xFF800000> : tensor<1x64x28x28xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %p = linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
      ins(%x, %w : tensor<1x64x57x57xf32>, tensor<3x3xf32>)
      outs(%low : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
  return %p : tensor<1x64x28x28xf32>
}
