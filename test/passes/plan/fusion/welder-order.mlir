// RUN: tilewright-opt %s --split-input-file -o /dev/null 2>&1 \
// RUN:   --pass-pipeline='builtin.module(tilewright-cpu-normalize{target=x86-64-avx512}, \
// RUN:     func.func(tile-print-plan{target=x86-64-avx512 policy=welder}))' | FileCheck %s

// A pointwise convolution, a depthwise one and another pointwise one (Welder 5.2). Which of its neighbours the depthwise
// one shares a kernel with depends on the sizes. Where the map is large and has few channels, it is the one that reads its
// result: a few rows of all channels stay in the cache. The greedy planner makes three kernels.
// CHECK: kernel contract_0:
// CHECK: kernel contract_reduce_addf_mulf_0:
func.func @separable(%x: tensor<1x226x226x8xf32>, %w1: tensor<1x1x8x8xf32>,
                     %k: tensor<3x3x8xf32>, %w2: tensor<1x1x8x8xf32>) -> tensor<1x224x224x8xf32> {
  %z1 = arith.constant dense<0.0> : tensor<1x226x226x8xf32>
  %zd = arith.constant dense<0.0> : tensor<1x224x224x8xf32>
  %p = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w1 : tensor<1x226x226x8xf32>, tensor<1x1x8x8xf32>)
      outs(%z1 : tensor<1x226x226x8xf32>) -> tensor<1x226x226x8xf32>
  %d = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%p, %k : tensor<1x226x226x8xf32>, tensor<3x3x8xf32>)
      outs(%zd : tensor<1x224x224x8xf32>) -> tensor<1x224x224x8xf32>
  %q = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%d, %w2 : tensor<1x224x224x8xf32>, tensor<1x1x8x8xf32>)
      outs(%zd : tensor<1x224x224x8xf32>) -> tensor<1x224x224x8xf32>
  return %q : tensor<1x224x224x8xf32>
}

// -----

// Where the map is small and has many channels, it is the one in front of it: a complete channel stays in the cache.
// CHECK: kernel contract_reduce_addf_mulf_0:
// CHECK: kernel contract_0:
func.func @separable(%x: tensor<1x5x5x1024xf32>, %w1: tensor<1x1x1024x1024xf32>,
                     %k: tensor<3x3x1024xf32>, %w2: tensor<1x1x1024x1024xf32>) -> tensor<1x3x3x1024xf32> {
  %z1 = arith.constant dense<0.0> : tensor<1x5x5x1024xf32>
  %zd = arith.constant dense<0.0> : tensor<1x3x3x1024xf32>
  %p = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w1 : tensor<1x5x5x1024xf32>, tensor<1x1x1024x1024xf32>)
      outs(%z1 : tensor<1x5x5x1024xf32>) -> tensor<1x5x5x1024xf32>
  %d = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%p, %k : tensor<1x5x5x1024xf32>, tensor<3x3x1024xf32>)
      outs(%zd : tensor<1x3x3x1024xf32>) -> tensor<1x3x3x1024xf32>
  %q = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%d, %w2 : tensor<1x3x3x1024xf32>, tensor<1x1x1024x1024xf32>)
      outs(%zd : tensor<1x3x3x1024xf32>) -> tensor<1x3x3x1024xf32>
  return %q : tensor<1x3x3x1024xf32>
}
