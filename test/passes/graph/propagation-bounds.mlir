// RUN: tilewright-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-print-propagation{output-tile=1,8,2,2}))'

// Welder's figure 4: a 2x2 tile of the pooled output needs 4x4 of the convolution, and 6x6 of its input.
func.func @windows_overlap(%a: tensor<1x3x34x34xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<1x8x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x8x32x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x32x32xf32>) -> tensor<1x8x32x32xf32>
  // expected-remark @below {{tile [1, 8, 4, 4, 3, 3, 3]}}
  %c = linalg.conv_2d_nchw_fchw ins(%a, %w : tensor<1x3x34x34xf32>, tensor<8x3x3x3xf32>) outs(%f : tensor<1x8x32x32xf32>) -> tensor<1x8x32x32xf32>
  %pe = tensor.empty() : tensor<1x8x16x16xf32>
  %win = tensor.empty() : tensor<2x2xf32>
  %pf = linalg.fill ins(%low : f32) outs(%pe : tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  // expected-remark @below {{tile [1, 8, 2, 2, 2, 2]}}
  // expected-remark @below {{64 tiles, footprint 1808 B, traffic 91136 B; in [1, 3, 6, 6] 432 B; in [8, 3, 3, 3] 864 B; reuse [1, 8, 4, 4] 512 B; out [1, 8, 2, 2] 128 B}}
  %p = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>} ins(%c, %win : tensor<1x8x32x32xf32>, tensor<2x2xf32>) outs(%pf : tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %p : tensor<1x8x16x16xf32>
}

// -----

// A strided slice is bounded by the elements that it spans, and marked as a bound.
func.func @stride_is_bounded(%a: tensor<8x64x4x4xf32>) -> tensor<8x32x4x4xf32> {
  // expected-remark @below {{tile [1, 8, 2, 2]}}
  // expected-remark @below {{128 tiles, footprint 368 B, traffic 47104 B; in at most [1, 15, 2, 2] 240 B; out [1, 8, 2, 2] 128 B}}
  %s = tensor.extract_slice %a[0, 1, 0, 0] [8, 32, 4, 4] [1, 2, 1, 1] : tensor<8x64x4x4xf32> to tensor<8x32x4x4xf32>
  return %s : tensor<8x32x4x4xf32>
}

// -----

// A tile that takes part of each row of the split dim is bounded by the span of those parts.
func.func @partial_rows_are_bounded(%a: tensor<8x32x24xf32>) -> tensor<8x32x6x4xf32> {
  // expected-remark @below {{tile [1, 8, 2, 2]}}
  // expected-remark @below {{in at most [1, 8, 6] 192 B}}
  %r = tensor.expand_shape %a [[0], [1], [2, 3]] output_shape [8, 32, 6, 4] : tensor<8x32x24xf32> into tensor<8x32x6x4xf32>
  return %r : tensor<8x32x6x4xf32>
}

// -----

// Rows 8 to 15 of the collapsed dim touch two rows of ten.
func.func @straddling_reshape_is_bounded(%a: tensor<1x8x10x2xf32>) -> tensor<1x80x2x1xf32> {
  // expected-remark @below {{tile [1, 8, 2]}}
  %x = tensor.collapse_shape %a [[0], [1, 2], [3]] : tensor<1x8x10x2xf32> into tensor<1x80x2xf32>
  // expected-remark @below {{tile [1, 8, 2, 1]}}
  // expected-remark @below {{10 tiles, footprint 224 B, traffic 2240 B; in at most [1, 2, 10, 2] 160 B; reuse [1, 8, 2] 64 B; out [1, 8, 2, 1] 64 B}}
  %y = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [1, 80, 2, 1] : tensor<1x80x2xf32> into tensor<1x80x2x1xf32>
  return %y : tensor<1x80x2x1xf32>
}
