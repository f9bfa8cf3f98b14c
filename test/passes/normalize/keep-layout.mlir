// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-convolution-to-matmul))' | FileCheck %s
// Readers of a convolution's result have its channels innermost, as the contraction has, and nothing is transposed.

#points = affine_map<(n, c, h, w) -> (n, c, h, w)>
#windows = affine_map<(n, c, h, w, i, j) -> (n, c, h * 2 + i, w + j)>
#weights = affine_map<(n, c, h, w, i, j) -> (c, i, j)>
#all = affine_map<(n, c, h, w, i, j) -> (n, c, h, w, i, j)>
#sums = affine_map<(n, c, h, w, i, j) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>

// CHECK-DAG: #[[$LAST:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>

// An elementwise op, a pad and the windows of the next convolution.
// CHECK-LABEL: func.func @between_convolutions
// CHECK-NOT: linalg.transpose
// CHECK: arith.maximumf
// CHECK: tensor.expand_shape {{.*}} into tensor<1x5x7x6xf32>
// CHECK: tensor.pad %{{.*}} low[0, 1, 2, 0] high[0, 1, 2, 0]
// CHECK: tensor<1x5x7x6xf32> to tensor<1x7x11x6xf32>
// CHECK: linalg.generic {indexing_maps = [#[[$LAST]],
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @between_convolutions(%x: tensor<1x3x7x9xf32>, %w: tensor<6x3x3x3xf32>, %v: tensor<4x6x3x3xf32>)
    -> tensor<1x4x5x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x6x5x7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x6x5x7xf32>) -> tensor<1x6x5x7xf32>
  %a = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x7x9xf32>, tensor<6x3x3x3xf32>)
      outs(%z : tensor<1x6x5x7xf32>) -> tensor<1x6x5x7xf32>
  %r = linalg.generic {indexing_maps = [#points, #points], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%a : tensor<1x6x5x7xf32>) outs(%e : tensor<1x6x5x7xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.maximumf %i, %zero : f32
    linalg.yield %m : f32
  } -> tensor<1x6x5x7xf32>
  %p = tensor.pad %r low[0, 0, 1, 2] high[0, 0, 1, 2] {
  ^bb0(%n: index, %c: index, %h: index, %l: index):
    tensor.yield %zero : f32
  } : tensor<1x6x5x7xf32> to tensor<1x6x7x11xf32>
  %f = tensor.empty() : tensor<1x4x5x9xf32>
  %y = linalg.fill ins(%zero : f32) outs(%f : tensor<1x4x5x9xf32>) -> tensor<1x4x5x9xf32>
  %b = linalg.conv_2d_nchw_fchw ins(%p, %v : tensor<1x6x7x11xf32>, tensor<4x6x3x3xf32>)
      outs(%y : tensor<1x4x5x9xf32>) -> tensor<1x4x5x9xf32>
  return %b : tensor<1x4x5x9xf32>
}

// A depthwise convolution: its weights have channels innermost, too.
// CHECK-LABEL: func.func @depthwise
// CHECK: linalg.transpose ins(%{{.*}} : tensor<6x3x3xf32>) outs(%{{.*}} : tensor<3x3x6xf32>) permutation = [1, 2, 0]
// CHECK: -> tensor<1x2x5x6x3x3xf32>
// CHECK: -> tensor<1x2x5x6xf32>
// The last op writes the layout of the model.
// CHECK: -> tensor<1x6x2x5xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @depthwise(%x: tensor<1x3x7x9xf32>, %w: tensor<6x3x3x3xf32>, %v: tensor<6x3x3xf32>, %g: tensor<6xf32>)
    -> tensor<1x6x2x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x6x5x7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x6x5x7xf32>) -> tensor<1x6x5x7xf32>
  %a = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x7x9xf32>, tensor<6x3x3x3xf32>)
      outs(%z : tensor<1x6x5x7xf32>) -> tensor<1x6x5x7xf32>
  %f = tensor.empty() : tensor<1x6x2x5xf32>
  %s = linalg.fill ins(%zero : f32) outs(%f : tensor<1x6x2x5xf32>) -> tensor<1x6x2x5xf32>
  %d = linalg.depthwise_conv_2d_nchw_chw {strides = dense<[2, 1]> : tensor<2xi64>}
      ins(%a, %v : tensor<1x6x5x7xf32>, tensor<6x3x3xf32>) outs(%s : tensor<1x6x2x5xf32>) -> tensor<1x6x2x5xf32>
  %r = linalg.generic {indexing_maps = [#points, #channel, #points], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d, %g : tensor<1x6x2x5xf32>, tensor<6xf32>) outs(%f : tensor<1x6x2x5xf32>) {
  ^bb0(%i: f32, %k: f32, %o: f32):
    %m = arith.mulf %i, %k : f32
    linalg.yield %m : f32
  } -> tensor<1x6x2x5xf32>
  return %r : tensor<1x6x2x5xf32>
}

// Concatenated channels stay innermost; an operand in the layout of the model is transposed.
// CHECK-LABEL: func.func @concatenated
// CHECK: %[[OTHER:.+]] = linalg.transpose ins(%arg2 : tensor<1x2x5x7xf32>) outs(%{{.*}}) permutation = [0, 2, 3, 1]
// CHECK: tensor.concat dim(3) %{{.*}}, %[[OTHER]] : (tensor<1x5x7x6xf32>, tensor<1x5x7x2xf32>) -> tensor<1x5x7x8xf32>
// CHECK: return
func.func @concatenated(%x: tensor<1x3x7x9xf32>, %w: tensor<6x3x3x3xf32>, %o: tensor<1x2x5x7xf32>,
                        %v: tensor<4x8x1x1xf32>) -> tensor<1x4x5x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x6x5x7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x6x5x7xf32>) -> tensor<1x6x5x7xf32>
  %a = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x7x9xf32>, tensor<6x3x3x3xf32>)
      outs(%z : tensor<1x6x5x7xf32>) -> tensor<1x6x5x7xf32>
  %c = tensor.concat dim(1) %a, %o : (tensor<1x6x5x7xf32>, tensor<1x2x5x7xf32>) -> tensor<1x8x5x7xf32>
  %f = tensor.empty() : tensor<1x4x5x7xf32>
  %s = linalg.fill ins(%zero : f32) outs(%f : tensor<1x4x5x7xf32>) -> tensor<1x4x5x7xf32>
  %b = linalg.conv_2d_nchw_fchw ins(%c, %v : tensor<1x8x5x7xf32>, tensor<4x8x1x1xf32>)
      outs(%s : tensor<1x4x5x7xf32>) -> tensor<1x4x5x7xf32>
  return %b : tensor<1x4x5x7xf32>
}

// A result of the function has the layout of the model: the op that computes it writes it so.
// CHECK-LABEL: func.func @result
// CHECK-NOT: linalg.transpose
// CHECK: %[[R:.+]] = linalg.generic {{.*}} ins(%{{.*}}, %arg2 : 
// CHECK: return %[[R]]
func.func @result(%x: tensor<1x3x7x9xf32>, %w: tensor<6x3x3x3xf32>, %b: tensor<1x6x5x7xf32>) -> tensor<1x6x5x7xf32> {
  %a = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x7x9xf32>, tensor<6x3x3x3xf32>)
      outs(%b : tensor<1x6x5x7xf32>) -> tensor<1x6x5x7xf32>
  return %a : tensor<1x6x5x7xf32>
}

// Channels that are split into groups stay innermost, and so do they where they become one dim again.
// CHECK-LABEL: func.func @split_channels
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0], [1], [2], [3, 4]] output_shape [1, 5, 7, 2, 3]
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<1x5x7x2x3xf32>)
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1], [2], [3, 4]] : tensor<1x5x7x2x3xf32> into tensor<1x5x7x6xf32>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<1x6x5x7xf32>)
// CHECK-NOT: linalg.transpose
// CHECK: return
#five = affine_map<(n, g, c, h, w) -> (n, g, c, h, w)>
func.func @split_channels(%x: tensor<1x3x7x9xf32>, %w: tensor<6x3x3x3xf32>) -> tensor<1x6x5x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x6x5x7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x6x5x7xf32>) -> tensor<1x6x5x7xf32>
  %a = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x7x9xf32>, tensor<6x3x3x3xf32>)
      outs(%z : tensor<1x6x5x7xf32>) -> tensor<1x6x5x7xf32>
  %s = tensor.expand_shape %a [[0], [1, 2], [3], [4]] output_shape [1, 2, 3, 5, 7] : tensor<1x6x5x7xf32> into tensor<1x2x3x5x7xf32>
  %f = tensor.empty() : tensor<1x2x3x5x7xf32>
  %r = linalg.generic {indexing_maps = [#five, #five], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%s : tensor<1x2x3x5x7xf32>) outs(%f : tensor<1x2x3x5x7xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.maximumf %i, %zero : f32
    linalg.yield %m : f32
  } -> tensor<1x2x3x5x7xf32>
  %c = tensor.collapse_shape %r [[0], [1, 2], [3], [4]] : tensor<1x2x3x5x7xf32> into tensor<1x6x5x7xf32>
  %y = linalg.generic {indexing_maps = [#points, #points], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c : tensor<1x6x5x7xf32>) outs(%e : tensor<1x6x5x7xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.addf %i, %i : f32
    linalg.yield %m : f32
  } -> tensor<1x6x5x7xf32>
  return %y : tensor<1x6x5x7xf32>
}
