// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-convolution-to-matmul))' | FileCheck %s
// Each window of the image becomes a row of one matrix; the weights are the other matrix, in their own layout.

// CHECK-DAG: #[[$WINDOW:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d1 * 2 + d4, d2 * 2 + d5)>
// CHECK-DAG: #[[$ROW:.+]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$COLUMN:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$TERMS:.+]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$SLIDING:.+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>
// CHECK-DAG: #[[$TURNED:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
// CHECK-DAG: #[[$GROUP:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[$OF_GROUP:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
// CHECK-DAG: #[[$SUMS_OF:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG: #[[$FILTER:.+]] = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
// CHECK-DAG: #[[$IMAGE:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>

// The initial value of a convolution is added at the end.
// CHECK-LABEL: func.func @channels_first
// CHECK-SAME: (%[[X:.+]]: tensor<2x3x17x19xf32>, %[[W:.+]]: tensor<8x3x3x3xf32>, %[[B:.+]]: tensor<2x8x8x9xf32>)
// CHECK: %[[WINDOWS:.+]] = linalg.generic {indexing_maps = [#[[$WINDOW]], {{.*}}} ins(%[[X]]
// CHECK: %[[ROWS:.+]] = tensor.collapse_shape %[[WINDOWS]] {{\[\[}}0, 1, 2], [3, 4, 5]] : {{.*}} into tensor<144x27xf32>
// CHECK: %[[COLUMNS:.+]] = tensor.collapse_shape %[[W]] {{\[\[}}0], [1, 2, 3]] : {{.*}} into tensor<8x27xf32>
// CHECK: %[[P:.+]] = linalg.generic {indexing_maps = [#[[$ROW]], #[[$COLUMN]], {{.*}}} ins(%[[ROWS]], %[[COLUMNS]]
// CHECK: %[[E:.+]] = tensor.expand_shape %[[P]] {{\[\[}}0, 1, 2], [3]]
// CHECK: linalg.generic {indexing_maps = [#[[$TURNED]], {{.*}}} ins(%[[E]], %[[B]]
// CHECK: arith.addf
// CHECK-NOT: linalg.conv
func.func @channels_first(%x: tensor<2x3x17x19xf32>, %w: tensor<8x3x3x3xf32>, %b: tensor<2x8x8x9xf32>)
    -> tensor<2x8x8x9xf32> {
  %y = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<2x3x17x19xf32>, tensor<8x3x3x3xf32>) outs(%b : tensor<2x8x8x9xf32>) -> tensor<2x8x8x9xf32>
  return %y : tensor<2x8x8x9xf32>
}

// Long lines of an image stay separate dims of the contraction.
// CHECK-LABEL: func.func @long_lines
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1], [2], [3, 4, 5]] : {{.*}} into tensor<1x5x24x36xf32>
// CHECK: linalg.generic {indexing_maps = [#[[$LINES:.+]], #[[$FILTERS:.+]], #[[$SUMS:.+]]], {{.*}}"reduction"]} {{.*}} tensor<1x5x24x36xf32>, tensor<36x8xf32>)
// CHECK-NOT: tensor.expand_shape
// CHECK: return
func.func @long_lines(%x: tensor<1x7x26x4xf32>, %w: tensor<3x3x4x8xf32>, %b: tensor<1x5x24x8xf32>) -> tensor<1x5x24x8xf32> {
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x7x26x4xf32>, tensor<3x3x4x8xf32>)
      outs(%b : tensor<1x5x24x8xf32>) -> tensor<1x5x24x8xf32>
  return %y : tensor<1x5x24x8xf32>
}

// Where K goes over windows of a channel, only very long ones do.
// CHECK-LABEL: func.func @lines_of_windows
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1, 2], [3, 4, 5]] : {{.*}} into tensor<635x27xf32>
func.func @lines_of_windows(%x: tensor<1x3x7x129xf32>, %w: tensor<8x3x3x3xf32>, %b: tensor<1x8x5x127xf32>) -> tensor<1x8x5x127xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x7x129xf32>, tensor<8x3x3x3xf32>)
      outs(%b : tensor<1x8x5x127xf32>) -> tensor<1x8x5x127xf32>
  return %y : tensor<1x8x5x127xf32>
}

// CHECK-LABEL: func.func @very_long_lines_of_windows
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1], [2], [3, 4, 5]] : {{.*}} into tensor<1x5x128x27xf32>
func.func @very_long_lines_of_windows(%x: tensor<1x3x7x130xf32>, %w: tensor<8x3x3x3xf32>, %b: tensor<1x8x5x128xf32>)
    -> tensor<1x8x5x128xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x7x130xf32>, tensor<8x3x3x3xf32>)
      outs(%b : tensor<1x8x5x128xf32>) -> tensor<1x8x5x128xf32>
  return %y : tensor<1x8x5x128xf32>
}

// Lines stay for a convolution of single points that can take them over.
// CHECK-LABEL: func.func @lines_for_a_reader
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1], [2], [3, 4, 5]] : {{.*}} into tensor<1x5x24x27xf32>
func.func @lines_for_a_reader(%x: tensor<1x3x7x26xf32>, %w: tensor<8x3x3x3xf32>, %v: tensor<4x8x1x1xf32>,
    %b: tensor<1x8x5x24xf32>, %c: tensor<1x4x5x24xf32>) -> tensor<1x4x5x24xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x7x26xf32>, tensor<8x3x3x3xf32>)
      outs(%b : tensor<1x8x5x24xf32>) -> tensor<1x8x5x24xf32>
  %e = linalg.exp ins(%y : tensor<1x8x5x24xf32>) outs(%b : tensor<1x8x5x24xf32>) -> tensor<1x8x5x24xf32>
  %z = linalg.conv_2d_nchw_fchw ins(%e, %v : tensor<1x8x5x24xf32>, tensor<4x8x1x1xf32>)
      outs(%c : tensor<1x4x5x24xf32>) -> tensor<1x4x5x24xf32>
  return %z : tensor<1x4x5x24xf32>
}

// Large windows keep their lines as windows whose channels lie along K do.
// CHECK-LABEL: func.func @lines_of_large_windows
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1], [2], [3, 4, 5]] : {{.*}} into tensor<1x5x24x147xf32>
func.func @lines_of_large_windows(%x: tensor<1x3x11x30xf32>, %w: tensor<8x3x7x7xf32>, %b: tensor<1x8x5x24xf32>)
    -> tensor<1x8x5x24xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x3x11x30xf32>, tensor<8x3x7x7xf32>)
      outs(%b : tensor<1x8x5x24xf32>) -> tensor<1x8x5x24xf32>
  return %y : tensor<1x8x5x24xf32>
}

// A zero initial value is not added.
// CHECK-LABEL: func.func @channels_last
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1, 2], [3]] : tensor<3x3x4x6xf32> into tensor<36x6xf32>
// CHECK: linalg.generic {indexing_maps = [#[[$ROW]], #[[$TERMS]], {{.*}}}
// CHECK: arith.addf
// CHECK-NOT: arith.addf
// CHECK: return
func.func @channels_last(%x: tensor<1x9x9x4xf32>, %w: tensor<3x3x4x6xf32>) -> tensor<1x7x7x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x7x7x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x7x7x6xf32>) -> tensor<1x7x7x6xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x9x9x4xf32>, tensor<3x3x4x6xf32>)
      outs(%zeros : tensor<1x7x7x6xf32>) -> tensor<1x7x7x6xf32>
  return %y : tensor<1x7x7x6xf32>
}

// Groups of channels are a batch of contractions; their results lie side by side.
// CHECK-LABEL: func.func @groups
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1, 2], [3], [4, 5, 6]] : tensor<1x5x6x2x3x3x3xf32> into tensor<30x2x27xf32>
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1], [2, 3, 4]] : tensor<2x8x3x3x3xf32> into tensor<2x8x27xf32>
// CHECK: linalg.generic {indexing_maps = [#[[$GROUP]], #[[$OF_GROUP]], #[[$SUMS_OF]]], {{.*}}"reduction"]}
// CHECK: return
func.func @groups(%x: tensor<1x2x3x7x8xf32>, %w: tensor<2x8x3x3x3xf32>, %b: tensor<1x2x8x5x6xf32>)
    -> tensor<1x2x8x5x6xf32> {
  %y = linalg.conv_2d_ngchw_gfchw ins(%x, %w : tensor<1x2x3x7x8xf32>, tensor<2x8x3x3x3xf32>)
      outs(%b : tensor<1x2x8x5x6xf32>) -> tensor<1x2x8x5x6xf32>
  return %y : tensor<1x2x8x5x6xf32>
}

// Few filters of a group would leave lanes empty: products and their sums.
// CHECK-LABEL: func.func @small_groups
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<1x2x3x7x8xf32>, tensor<2x7x3x3x3xf32>)
// CHECK:   arith.mulf
// CHECK: linalg.generic {{.*}}"reduction", "reduction", "reduction"]}
func.func @small_groups(%x: tensor<1x2x3x7x8xf32>, %w: tensor<2x7x3x3x3xf32>, %b: tensor<1x2x7x5x6xf32>)
    -> tensor<1x2x7x5x6xf32> {
  %y = linalg.conv_2d_ngchw_gfchw ins(%x, %w : tensor<1x2x3x7x8xf32>, tensor<2x7x3x3x3xf32>)
      outs(%b : tensor<1x2x7x5x6xf32>) -> tensor<1x2x7x5x6xf32>
  return %y : tensor<1x2x7x5x6xf32>
}

// Windows of one point between tensors of the model, with channels first: weights times image.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {indexing_maps = [#[[$IMAGE]], #[[$FILTER]], #[[$SUMS_OF]]], {{.*}} ins(%{{.*}}, %{{.*}} : tensor<2x5x132xf32>, tensor<9x5xf32>)
// CHECK: tensor.expand_shape %{{.*}} into tensor<2x9x11x12xf32>
// CHECK: return
func.func @alone(%x: tensor<2x5x11x12xf32>, %w: tensor<9x5x1x1xf32>, %b: tensor<2x9x11x12xf32>) -> tensor<2x9x11x12xf32> {
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x5x11x12xf32>, tensor<9x5x1x1xf32>)
      outs(%b : tensor<2x9x11x12xf32>) -> tensor<2x9x11x12xf32>
  return %y : tensor<2x9x11x12xf32>
}

// With a stride, they are weights times a slice of the image.
// CHECK-LABEL: func.func @alone_with_a_stride
// CHECK: %[[SLICE:.+]] = tensor.extract_slice %{{.*}}[0, 0, 0, 0] [2, 5, 7, 8] [1, 1, 3, 2] : tensor<2x5x20x15xf32> to tensor<2x5x7x8xf32>
// CHECK: linalg.generic {indexing_maps = [#[[$IMAGE]], #[[$FILTER]], #[[$SUMS_OF]]], {{.*}} ins(%{{.*}}, %{{.*}} : tensor<2x5x56xf32>, tensor<9x5xf32>)
// CHECK: tensor.expand_shape %{{.*}} into tensor<2x9x7x8xf32>
// CHECK-NOT: linalg.conv
// CHECK: return
func.func @alone_with_a_stride(%x: tensor<2x5x20x15xf32>, %w: tensor<9x5x1x1xf32>, %b: tensor<2x9x7x8xf32>)
    -> tensor<2x9x7x8xf32> {
  %y = linalg.conv_2d_nchw_fchw {strides = dense<[3, 2]> : tensor<2xi64>}
      ins(%x, %w : tensor<2x5x20x15xf32>, tensor<9x5x1x1xf32>) outs(%b : tensor<2x9x7x8xf32>) -> tensor<2x9x7x8xf32>
  return %y : tensor<2x9x7x8xf32>
}

// A depthwise convolution has nothing to contract, so it becomes products and their sums.
// CHECK-LABEL: func.func @one_filter_for_each_channel
// CHECK-SAME: (%[[X:.+]]: tensor<1x9x9x4xf32>, %[[W:.+]]: tensor<3x3x4xf32>, %[[B:.+]]: tensor<1x7x7x4xf32>)
// CHECK: %[[PRODUCTS:.+]] = linalg.generic {indexing_maps = [#[[$SLIDING]], {{.*}}} ins(%[[X]], %[[W]] :
// CHECK:   arith.mulf
// CHECK: %[[SUMS:.+]] = linalg.generic {{.*}}"reduction", "reduction"]} ins(%[[PRODUCTS]] : tensor<1x7x7x4x3x3xf32>)
// CHECK:   arith.addf
// CHECK: linalg.generic {{.*}} ins(%[[SUMS]], %[[B]] :
func.func @one_filter_for_each_channel(%x: tensor<1x9x9x4xf32>, %w: tensor<3x3x4xf32>, %b: tensor<1x7x7x4xf32>)
    -> tensor<1x7x7x4xf32> {
  %y = linalg.depthwise_conv_2d_nhwc_hwc ins(%x, %w : tensor<1x9x9x4xf32>, tensor<3x3x4xf32>)
      outs(%b : tensor<1x7x7x4xf32>) -> tensor<1x7x7x4xf32>
  return %y : tensor<1x7x7x4xf32>
}

// CHECK-LABEL: func.func @pool
// CHECK-SAME: (%[[X:.+]]: tensor<1x9x9x4xf32>, %{{.+}}: tensor<3x3xf32>, %[[B:.+]]: tensor<1x7x7x4xf32>)
// CHECK: %[[WINDOWS:.+]] = linalg.generic {indexing_maps = [#[[$SLIDING]], {{.*}}} ins(%[[X]] :
// CHECK: linalg.generic {{.*}}"reduction", "reduction"]} ins(%[[WINDOWS]] : {{.*}}) outs(%[[B]] :
// CHECK:   arith.maximumf
func.func @pool(%x: tensor<1x9x9x4xf32>, %w: tensor<3x3xf32>, %b: tensor<1x7x7x4xf32>) -> tensor<1x7x7x4xf32> {
  %y = linalg.pooling_nhwc_max ins(%x, %w : tensor<1x9x9x4xf32>, tensor<3x3xf32>)
      outs(%b : tensor<1x7x7x4xf32>) -> tensor<1x7x7x4xf32>
  return %y : tensor<1x7x7x4xf32>
}

// CHECK-LABEL: func.func @leaves_matmuls
// CHECK: linalg.matmul
func.func @leaves_matmuls(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// A row times a column has no lanes, so it becomes products and their sum.
// CHECK-LABEL: func.func @row_by_column
// CHECK: %[[PRODUCTS:.+]] = linalg.generic {{.*}}"parallel", "parallel", "parallel"]} ins(%{{.+}}, %{{.+}} : tensor<1x5xf32>, tensor<5x1xf32>)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[PRODUCTS]] : tensor<1x1x5xf32>)
func.func @row_by_column(%a: tensor<1x5xf32>, %b: tensor<5x1xf32>, %c: tensor<1x1xf32>) -> tensor<1x1xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<1x5xf32>, tensor<5x1xf32>) outs(%c : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

// Two vectors: the result has no dims, and the initial value is added.
// CHECK-LABEL: func.func @dot
// CHECK: %[[PRODUCTS:.+]] = linalg.generic {{.*}}"parallel"]} ins(%{{.+}}, %{{.+}} : tensor<5xf32>, tensor<5xf32>)
// CHECK: %[[SUM:.+]] = linalg.generic {{.*}}"reduction"]} ins(%[[PRODUCTS]] : tensor<5xf32>) outs(%{{.+}} : tensor<f32>)
// CHECK: linalg.generic {{.*}}iterator_types = []} ins(%[[SUM]], %{{.+}} : tensor<f32>, tensor<f32>)
func.func @dot(%a: tensor<5xf32>, %b: tensor<5xf32>, %c: tensor<f32>) -> tensor<f32> {
  %y = linalg.dot ins(%a, %b : tensor<5xf32>, tensor<5xf32>) outs(%c : tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}

// A constant matrix is stored along the reduced dim.
// CHECK-LABEL: func.func @matrix_by_vector
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.+}} : tensor<40x1x5xf32>)
func.func @matrix_by_vector(%a: tensor<40x5xf32>, %b: tensor<5x1xf32>, %c: tensor<40x1xf32>) -> tensor<40x1xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<40x5xf32>, tensor<5x1xf32>) outs(%c : tensor<40x1xf32>) -> tensor<40x1xf32>
  return %y : tensor<40x1xf32>
}

// A batch dim is innermost: the result is computed with a dim of the rhs there, along which the rhs is contiguous, and
// transposed afterwards.
// CHECK-LABEL: func.func @batch_innermost
// CHECK: %[[ZEROS:.+]] = linalg.fill {{.*}} outs(%{{.+}} : tensor<9x3x20xf32>)
// CHECK: %[[SUMS:.+]] = linalg.generic {{.*}}"reduction"]} ins(%{{.+}}, %{{.+}} : tensor<9x3x5xf32>, tensor<5x3x20xf32>) outs(%[[ZEROS]] : tensor<9x3x20xf32>)
// CHECK: %[[Y:.+]] = linalg.transpose ins(%[[SUMS]] : {{.*}}) outs(%{{.+}} : tensor<9x20x3xf32>) permutation = [0, 2, 1]
// CHECK: return %[[Y]]
func.func @batch_innermost(%a: tensor<9x3x5xf32>, %b: tensor<5x3x20xf32>) -> tensor<9x20x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x20x3xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<9x20x3xf32>) -> tensor<9x20x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, h, k) -> (i, h, k)>, affine_map<(i, j, h, k) -> (k, h, j)>,
                                        affine_map<(i, j, h, k) -> (i, j, h)>],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<9x3x5xf32>, tensor<5x3x20xf32>) outs(%z : tensor<9x20x3xf32>) {
  ^bb0(%u: f32, %v: f32, %s: f32):
    %p = arith.mulf %u, %v : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<9x20x3xf32>
  return %y : tensor<9x20x3xf32>
}

// Two columns would leave most lanes idle; the K dim of a row fills them.
// CHECK-LABEL: func.func @two_columns
// CHECK: %[[TURNED:.+]] = linalg.transpose ins(%{{.+}} : tensor<64x2xf32>) outs(%{{.+}} : tensor<2x64xf32>) permutation = [1, 0]
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %[[TURNED]] : tensor<40x64xf32>, tensor<2x64xf32>)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.+}} : tensor<40x2x64xf32>)
func.func @two_columns(%a: tensor<40x64xf32>, %b: tensor<64x2xf32>, %c: tensor<40x2xf32>) -> tensor<40x2xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<40x64xf32>, tensor<64x2xf32>) outs(%c : tensor<40x2xf32>) -> tensor<40x2xf32>
  return %y : tensor<40x2xf32>
}

// Left alone: rows that are too short, not contiguous along K, or for micro kernels that take several of K at once.
// CHECK-LABEL: func.func @leaves_two_columns
// CHECK: linalg.matmul
// CHECK: linalg.matmul
// CHECK: linalg.matmul
func.func @leaves_two_columns(%a: tensor<40x63xf32>, %b: tensor<63x2xf32>, %d: tensor<64x40xf32>, %e: tensor<64x2xf32>,
                              %f: tensor<40x64xbf16>, %g: tensor<64x2xbf16>, %c: tensor<40x2xf32>)
    -> (tensor<40x2xf32>, tensor<40x2xf32>, tensor<40x2xf32>) {
  %x = linalg.matmul ins(%a, %b : tensor<40x63xf32>, tensor<63x2xf32>) outs(%c : tensor<40x2xf32>) -> tensor<40x2xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                                      affine_map<(m, n, k) -> (m, n)>]
      ins(%d, %e : tensor<64x40xf32>, tensor<64x2xf32>) outs(%c : tensor<40x2xf32>) -> tensor<40x2xf32>
  %z = linalg.matmul ins(%f, %g : tensor<40x64xbf16>, tensor<64x2xbf16>) outs(%c : tensor<40x2xf32>) -> tensor<40x2xf32>
  return %x, %y, %z : tensor<40x2xf32>, tensor<40x2xf32>, tensor<40x2xf32>
}

// CHECK-LABEL: func.func @leaves_vector_by_matrix
// CHECK: linalg.matmul
func.func @leaves_vector_by_matrix(%a: tensor<1x5xf32>, %b: tensor<5x40xf32>, %c: tensor<1x40xf32>) -> tensor<1x40xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<1x5xf32>, tensor<5x40xf32>) outs(%c : tensor<1x40xf32>) -> tensor<1x40xf32>
  return %y : tensor<1x40xf32>
}

// A body that uses linalg.index keeps its loops.
// CHECK-LABEL: func.func @leaves_numbered_loops
// CHECK: linalg.generic
// CHECK: linalg.index 0
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @leaves_numbered_loops(%x: tensor<2x9x4xf32>, %w: tensor<3x4xf32>, %y: tensor<2x7x4xf32>) -> tensor<2x7x4xf32> {
  %z = linalg.generic {indexing_maps = [affine_map<(k, n, c, h) -> (n, h + k, c)>, affine_map<(k, n, c, h) -> (k, c)>,
                                        affine_map<(k, n, c, h) -> (n, h, c)>],
                       iterator_types = ["reduction", "parallel", "parallel", "parallel"]}
      ins(%x, %w : tensor<2x9x4xf32>, tensor<3x4xf32>) outs(%y : tensor<2x7x4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %k = linalg.index 0 : index
    %i = arith.index_cast %k : index to i32
    %f = arith.sitofp %i : i32 to f32
    %p = arith.mulf %a, %b : f32
    %q = arith.mulf %p, %f : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<2x7x4xf32>
  return %z : tensor<2x7x4xf32>
}

// Zero points are subtracted from the bytes, so that the matmul multiplies the differences.
// CHECK-LABEL: func @quantised_convolution
// CHECK: %[[IMAGE:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<1x3x9x9xi8>) outs({{.*}} : tensor<1x3x9x9xi32>)
// CHECK: %[[W:.*]] = arith.extsi
// CHECK: arith.subi %[[W]], %arg2
// CHECK: %[[WEIGHTS:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<8x3x3x3xi8>) outs({{.*}} : tensor<8x3x3x3xi32>)
// CHECK-NOT: arith.subi
// CHECK: linalg.generic {{.*}} ins(%[[IMAGE]] : tensor<1x3x9x9xi32>)
// CHECK: arith.muli
// CHECK-NOT: linalg.conv
func.func @quantised_convolution(%x: tensor<1x3x9x9xi8>, %w: tensor<8x3x3x3xi8>, %zero: i32) -> tensor<1x8x7x7xi32> {
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x8x7x7xi32>
  %f = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x8x7x7xi32>) -> tensor<1x8x7x7xi32>
  %y = linalg.conv_2d_nchw_fchw_q ins(%x, %w, %zero, %c0 : tensor<1x3x9x9xi8>, tensor<8x3x3x3xi8>, i32, i32)
      outs(%f : tensor<1x8x7x7xi32>) -> tensor<1x8x7x7xi32>
  return %y : tensor<1x8x7x7xi32>
}

// A reader of a convolution may have a number as an operand, which has no dims to collapse.
// CHECK-LABEL: func @number_stays
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: f32
// CHECK: linalg.generic {{.*}} ins({{.*}}, %[[SCALE]] : tensor<63x8xf32>, f32)
func.func @number_stays(%x: tensor<1x9x11x4xf32>, %w: tensor<3x3x4x8xf32>, %scale: f32) -> tensor<1x7x9x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x7x9x8xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x7x9x8xf32>) -> tensor<1x7x9x8xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x9x11x4xf32>, tensor<3x3x4x8xf32>)
      outs(%zeros : tensor<1x7x9x8xf32>) -> tensor<1x7x9x8xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> ()>,
                                        affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %scale : tensor<1x7x9x8xf32>, f32) outs(%empty : tensor<1x7x9x8xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<1x7x9x8xf32>
  return %z : tensor<1x7x9x8xf32>
}
