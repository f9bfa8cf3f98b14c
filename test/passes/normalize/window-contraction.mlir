// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-convolution-to-matmul{target=cuda:h200}))' | FileCheck %s
// Kernels of GPUs read operands in any order, so a convolution is a contraction in the layout of its result.

// CHECK-DAG: #[[$FIRST:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d4 * 2 + d2, d5 * 2 + d3)>
// CHECK-DAG: #[[$LAST:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d3, d2 + d4, d5)>
// CHECK-DAG: #[[$WINDOWS:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-DAG: #[[$FILTERS:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
// CHECK-DAG: #[[$RESULT:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG: #[[$GROUPS:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d4)>

// Channels first: the points of an image are N, and the batch is a dim of its own. The initial value is added.
// CHECK-LABEL: func.func @channels_first
// CHECK-SAME: (%[[X:.+]]: tensor<2x3x17x19xf32>, %[[W:.+]]: tensor<8x3x3x3xf32>, %[[B:.+]]: tensor<2x8x8x9xf32>)
// CHECK: %[[WINDOWS:.+]] = linalg.generic {indexing_maps = [#[[$FIRST]], {{.*}}} ins(%[[X]]
// CHECK: %[[K:.+]] = tensor.collapse_shape %[[WINDOWS]] {{\[\[}}0], [1, 2, 3], [4, 5]] : {{.*}} into tensor<2x27x72xf32>
// CHECK: %[[F:.+]] = tensor.collapse_shape %[[W]] {{\[\[}}0], [1, 2, 3]] : {{.*}} into tensor<8x27xf32>
// CHECK: %[[P:.+]] = linalg.generic {indexing_maps = [#[[$WINDOWS]], #[[$FILTERS]], #[[$RESULT]]], {{.*}} ins(%[[K]], %[[F]]
// CHECK: %[[START:.+]] = tensor.collapse_shape %[[B]] {{\[\[}}0], [1], [2, 3]]
// CHECK: %[[Y:.+]] = linalg.generic {{.*}} ins(%[[P]], %[[START]] : tensor<2x8x72xf32>, tensor<2x8x72xf32>)
// CHECK: tensor.expand_shape %[[Y]] {{\[\[}}0], [1], [2, 3]]
// CHECK-NOT: linalg.conv
func.func @channels_first(%x: tensor<2x3x17x19xf32>, %w: tensor<8x3x3x3xf32>, %b: tensor<2x8x8x9xf32>)
    -> tensor<2x8x8x9xf32> {
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<2x3x17x19xf32>, tensor<8x3x3x3xf32>) outs(%b : tensor<2x8x8x9xf32>) -> tensor<2x8x8x9xf32>
  return %y : tensor<2x8x8x9xf32>
}

// Channels last: batch and points are M.
// CHECK-LABEL: func.func @channels_last
// CHECK: %[[WINDOWS:.+]] = linalg.generic {indexing_maps = [#[[$LAST]],
// CHECK: tensor.collapse_shape %[[WINDOWS]] {{\[\[}}0, 1, 2], [3, 4, 5]] : {{.*}} into tensor<98x36xf32>
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<98x36xf32>, tensor<36x6xf32>) outs({{.*}} : tensor<98x6xf32>)
// CHECK: return
func.func @channels_last(%x: tensor<2x9x9x4xf32>, %w: tensor<3x3x4x6xf32>) -> tensor<2x7x7x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x7x7x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x7x7x6xf32>) -> tensor<2x7x7x6xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<2x9x9x4xf32>, tensor<3x3x4x6xf32>)
      outs(%zeros : tensor<2x7x7x6xf32>) -> tensor<2x7x7x6xf32>
  return %y : tensor<2x7x7x6xf32>
}

// A window of one point, without a stride, is the image itself.
// CHECK-LABEL: func.func @points
// CHECK-SAME: (%[[X:.+]]: tensor<1x5x7x9xf32>
// CHECK: tensor.collapse_shape %[[X]] {{\[\[}}0], [1], [2, 3]] : tensor<1x5x7x9xf32> into tensor<1x5x63xf32>
func.func @points(%x: tensor<1x5x7x9xf32>, %w: tensor<6x5x1x1xf32>, %b: tensor<1x6x7x9xf32>) -> tensor<1x6x7x9xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x5x7x9xf32>, tensor<6x5x1x1xf32>)
      outs(%b : tensor<1x6x7x9xf32>) -> tensor<1x6x7x9xf32>
  return %y : tensor<1x6x7x9xf32>
}

// Groups are a batch dim.
// CHECK-LABEL: func.func @groups
// CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[$GROUPS]], {{.*}} ins({{.*}} : tensor<1x2x27x25xf32>, tensor<2x4x27xf32>) outs({{.*}} : tensor<1x2x4x25xf32>)
func.func @groups(%x: tensor<1x2x3x7x7xf32>, %w: tensor<2x4x3x3x3xf32>, %b: tensor<1x2x4x5x5xf32>)
    -> tensor<1x2x4x5x5xf32> {
  %y = linalg.conv_2d_ngchw_gfchw ins(%x, %w : tensor<1x2x3x7x7xf32>, tensor<2x4x3x3x3xf32>)
      outs(%b : tensor<1x2x4x5x5xf32>) -> tensor<1x2x4x5x5xf32>
  return %y : tensor<1x2x4x5x5xf32>
}

// Elementwise ops after a convolution have the dims of the contraction. A gate of channels has unit dims.
// CHECK-LABEL: func.func @followed
// CHECK-SAME: %[[GATE:[a-z0-9]+]]: tensor<1x6x1x1xf32>
// CHECK: %[[G:.+]] = tensor.collapse_shape %[[GATE]] {{\[\[}}0], [1, 2, 3]]
// CHECK: linalg.generic {{.*}}"parallel", "parallel", "parallel"]} ins({{.*}}, %[[G]] : tensor<1x6x63xf32>, tensor<1x6xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
func.func @followed(%x: tensor<1x5x7x9xf32>, %w: tensor<6x5x1x1xf32>, %b: tensor<1x6x7x9xf32>,
                    %gate: tensor<1x6x1x1xf32>) -> tensor<1x6x7x9xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x5x7x9xf32>, tensor<6x5x1x1xf32>)
      outs(%b : tensor<1x6x7x9xf32>) -> tensor<1x6x7x9xf32>
  %empty = tensor.empty() : tensor<1x6x7x9xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, 0, 0)>,
                                        affine_map<(n, c, h, w) -> (n, c, h, w)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %gate : tensor<1x6x7x9xf32>, tensor<1x6x1x1xf32>) outs(%empty : tensor<1x6x7x9xf32>) {
  ^bb0(%a: f32, %g: f32, %out: f32):
    %p = arith.mulf %a, %g : f32
    linalg.yield %p : f32
  } -> tensor<1x6x7x9xf32>
  return %z : tensor<1x6x7x9xf32>
}

// An operand that varies along the columns only keeps the dims apart.
// CHECK-LABEL: func.func @along_columns
// CHECK: %[[E:.+]] = tensor.expand_shape {{.*}} into tensor<1x6x7x9xf32>
// CHECK: linalg.generic {{.*}} ins(%[[E]], %{{.*}} : tensor<1x6x7x9xf32>, tensor<9xf32>)
func.func @along_columns(%x: tensor<1x5x7x9xf32>, %w: tensor<6x5x1x1xf32>, %b: tensor<1x6x7x9xf32>,
                         %columns: tensor<9xf32>) -> tensor<1x6x7x9xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x5x7x9xf32>, tensor<6x5x1x1xf32>)
      outs(%b : tensor<1x6x7x9xf32>) -> tensor<1x6x7x9xf32>
  %empty = tensor.empty() : tensor<1x6x7x9xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (w)>,
                                        affine_map<(n, c, h, w) -> (n, c, h, w)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %columns : tensor<1x6x7x9xf32>, tensor<9xf32>) outs(%empty : tensor<1x6x7x9xf32>) {
  ^bb0(%a: f32, %g: f32, %out: f32):
    %p = arith.mulf %a, %g : f32
    linalg.yield %p : f32
  } -> tensor<1x6x7x9xf32>
  return %z : tensor<1x6x7x9xf32>
}

// A row by a column has no dim for the columns of a micro kernel, so it is a reduction of products, which other kernels
// can hold.
// CHECK-LABEL: func.func @row_by_column
// CHECK-NOT: linalg.matmul
// CHECK: %[[P:.+]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[P]] : tensor<1x1x8xf32>)
// CHECK: arith.addf
func.func @row_by_column(%a: tensor<1x8xf32>, %b: tensor<8x1xf32>, %c: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<1x8xf32>, tensor<8x1xf32>) outs(%c : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

// Micro kernels of GPUs leave no lanes empty, so other contractions stay.
// CHECK-LABEL: func.func @leaves_matmuls
// CHECK: linalg.matmul
func.func @leaves_matmuls(%a: tensor<40x5xf32>, %b: tensor<5x1xf32>, %c: tensor<40x1xf32>) -> tensor<40x1xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<40x5xf32>, tensor<5x1xf32>) outs(%c : tensor<40x1xf32>) -> tensor<40x1xf32>
  return %y : tensor<40x1xf32>
}
