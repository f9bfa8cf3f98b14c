// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-convolution-to-matmul{target=cuda:h200},tile-normalize,tile-print-plan{target=cuda:h200}))' -o /dev/null 2>&1 | FileCheck %s

// A pad between a pool and a convolution is a guard of the convolution's windows. With the pool, it would be a tensor to
// store, over dims of its own.
// CHECK: remark: kernel contract_reduce_maximumf_0: extents [16, 14, 14, 2, 2]
// CHECK: remark: kernel contract_reduce_maximumf_0: extents [32, 144, 196]
// CHECK-NOT: extents [16, 16
func.func @pool_then_convolution(%x: tensor<1x16x28x28xf32>, %w: tensor<32x16x3x3xf32>) -> tensor<1x32x14x14xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<2x2xf32>
  %empty = tensor.empty() : tensor<1x16x14x14xf32>
  %start = linalg.fill ins(%least : f32) outs(%empty : tensor<1x16x14x14xf32>) -> tensor<1x16x14x14xf32>
  %pool = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %window : tensor<1x16x28x28xf32>, tensor<2x2xf32>) outs(%start : tensor<1x16x14x14xf32>) -> tensor<1x16x14x14xf32>
  %pad = tensor.pad %pool low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x16x14x14xf32> to tensor<1x16x16x16xf32>
  %into = tensor.empty() : tensor<1x32x14x14xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%into : tensor<1x32x14x14xf32>) -> tensor<1x32x14x14xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%pad, %w : tensor<1x16x16x16xf32>, tensor<32x16x3x3xf32>)
      outs(%zeros : tensor<1x32x14x14xf32>) -> tensor<1x32x14x14xf32>
  return %y : tensor<1x32x14x14xf32>
}

// Copies of operands fill in zeros only, so a pad with another number is a tensor.
// CHECK: kernel {{.*}}: extents [3, 10, 10]
// CHECK: extents [4, 27, 64]
func.func @with_a_number(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %pad = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %one : f32
  } : tensor<1x3x8x8xf32> to tensor<1x3x10x10xf32>
  %into = tensor.empty() : tensor<1x4x8x8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%into : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%pad, %w : tensor<1x3x10x10xf32>, tensor<4x3x3x3xf32>)
      outs(%zeros : tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}
