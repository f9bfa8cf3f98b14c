// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-lay-out-images{target=cuda:h200})' | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-lay-out-images{target=cuda:h200 numerics=strict})' | FileCheck %s --check-prefix=STRICT

// Convolutions that follow each other: the result of the first has channels last, and the windows of the second are
// copied as whole vectors of channels. Their weights have the same order of K.
// CHECK-LABEL: func.func @joined
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<784x64xf32>)
// CHECK: linalg.transpose ins({{.*}} : tensor<64x64x3x3xf16>) outs({{.*}} : tensor<64x3x3x64xf16>) permutation = [0, 2, 3, 1]
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<784x576xf16>, tensor<64x576xf16>) outs({{.*}} : tensor<784x64xf32>)
// CHECK-NOT: linalg.conv
// Strict numerics keep the order of the sums.
// STRICT-LABEL: func.func @joined
// STRICT-NOT: tensor<784x576xf16>
// STRICT: return
func.func @joined(%x: tensor<1x64x28x28xf16>, %v: tensor<64x64x1x1xf16>, %w: tensor<64x64x3x3xf16>)
    -> tensor<1x64x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<1x64x28x28xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
  %first = linalg.conv_2d_nchw_fchw ins(%x, %v : tensor<1x64x28x28xf16>, tensor<64x64x1x1xf16>)
      outs(%zeros : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
  %narrow = tensor.empty() : tensor<1x64x28x28xf16>
  %rounded = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
                             iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%first : tensor<1x64x28x28xf32>) outs(%narrow : tensor<1x64x28x28xf16>) {
  ^bb0(%a: f32, %out: f16):
    %r = arith.truncf %a : f32 to f16
    linalg.yield %r : f16
  } -> tensor<1x64x28x28xf16>
  %padded = tensor.pad %rounded low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %none : f16
  } : tensor<1x64x28x28xf16> to tensor<1x64x30x30xf16>
  %second = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<1x64x30x30xf16>, tensor<64x64x3x3xf16>)
      outs(%zeros : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
  return %second : tensor<1x64x28x28xf32>
}

// A single convolution keeps the layout of the model: its image has to be read from there in any case.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1x32x784xf32>)
// CHECK: return
func.func @alone(%x: tensor<1x64x30x30xf16>, %w: tensor<32x64x3x3xf16>) -> tensor<1x32x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x28x28xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x64x30x30xf16>, tensor<32x64x3x3xf16>)
      outs(%zeros : tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
  return %y : tensor<1x32x28x28xf32>
}
