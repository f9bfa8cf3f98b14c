// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-widen-convolutions | FileCheck %s

#result = affine_map<(d0, d1, d2) -> (d0, d1)>
#window = affine_map<(d0, d1, d2) -> (d0, d1 * 2 + d2)>
#filter = affine_map<(d0, d1, d2) -> (d2)>

// A convolution that accumulates in f32 already has extended inputs, each behind a barrier, and keeps its result.
// CHECK-LABEL: func.func @extends_inputs
// CHECK: %[[X:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<1x5x14x14xf16>) outs(%{{.*}} : tensor<1x5x14x14xf32>)
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: %[[HIDDEN:.*]] = "util.optimization_barrier"(%[[X]])
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<3x5x1x1xf16>) outs(%{{.*}} : tensor<3x5x1x1xf32>)
// CHECK: %[[WIDE:.*]] = "util.optimization_barrier"(%[[W]])
// CHECK: %[[Y:.*]] = linalg.conv_2d_nchw_fchw {{.*}} ins(%[[HIDDEN]], %[[WIDE]] : tensor<1x5x14x14xf32>, tensor<3x5x1x1xf32>) outs(%arg2 : tensor<1x3x7x7xf32>)
// CHECK: return %[[Y]]
func.func @extends_inputs(%x: tensor<1x5x14x14xf16>, %w: tensor<3x5x1x1xf16>, %start: tensor<1x3x7x7xf32>) -> tensor<1x3x7x7xf32> {
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%x, %w : tensor<1x5x14x14xf16>, tensor<3x5x1x1xf16>) outs(%start : tensor<1x3x7x7xf32>) -> tensor<1x3x7x7xf32>
  return %y : tensor<1x3x7x7xf32>
}

// A convolution that accumulates in a narrow type starts in f32 and rounds once. A depthwise one does so, too.
// CHECK-LABEL: func.func @rounds_the_sum
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[START:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<1x6x3xf32>)
// CHECK: %[[Y:.*]] = linalg.depthwise_conv_1d_nwc_wc {{.*}} ins(%{{.*}} : tensor<1x8x3xf32>, tensor<3x3xf32>) outs(%[[START]] : tensor<1x6x3xf32>)
// CHECK: %[[ROUNDED:.*]] = linalg.generic {{.*}} ins(%[[Y]] : tensor<1x6x3xf32>) outs(%{{.*}} : tensor<1x6x3xbf16>)
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: return %[[ROUNDED]]
func.func @rounds_the_sum(%x: tensor<1x8x3xbf16>, %w: tensor<3x3xbf16>) -> tensor<1x6x3xbf16> {
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<1x6x3xbf16>
  %start = linalg.fill ins(%zero : bf16) outs(%empty : tensor<1x6x3xbf16>) -> tensor<1x6x3xbf16>
  %y = linalg.depthwise_conv_1d_nwc_wc {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
      ins(%x, %w : tensor<1x8x3xbf16>, tensor<3x3xbf16>) outs(%start : tensor<1x6x3xbf16>) -> tensor<1x6x3xbf16>
  return %y : tensor<1x6x3xbf16>
}

// A convolution may be a linalg.generic. Its products become f32, without an extension of operands that are wide.
// CHECK-LABEL: func.func @spelled_out
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4x9xf32>, tensor<3xf32>) outs(%{{.*}} : tensor<4x4xf32>)
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[SUM:.*]]: f32):
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[SUM]], %[[P]] : f32
// CHECK-NEXT: linalg.yield %[[S]] : f32
func.func @spelled_out(%x: tensor<4x9xf16>, %w: tensor<3xf16>, %start: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %y = linalg.generic {indexing_maps = [#window, #filter, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x9xf16>, tensor<3xf16>) outs(%start : tensor<4x4xf32>) {
  ^bb0(%a: f16, %b: f16, %sum: f32):
    %wide = arith.extf %a : f16 to f32
    %other = arith.extf %b : f16 to f32
    %product = arith.mulf %wide, %other : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// An input of several convolutions is extended once; one of dynamic size keeps the size that IREE knows.
// CHECK-LABEL: func.func @unknown_sizes
// CHECK: "util.optimization_barrier"(%{{.*}}) : (tensor<?x8x3xf32>)
// CHECK: %[[SIZE:.*]] = tensor.dim %arg0
// CHECK: %[[X:.*]] = "flow.tensor.tie_shape"(%{{.*}}, %[[SIZE]]) : (tensor<?x8x3xf32>, index) -> tensor<?x8x3xf32>
// CHECK: linalg.depthwise_conv_1d_nwc_wc {{.*}} ins(%[[X]]
// CHECK-NOT: "util.optimization_barrier"
// CHECK: linalg.depthwise_conv_1d_nwc_wc {{.*}} ins(%[[X]]
// CHECK: return
func.func @unknown_sizes(%x: tensor<?x8x3xf16>, %w: tensor<3x3xf16>, %start: tensor<?x6x3xf32>) -> (tensor<?x6x3xf32>, tensor<?x6x3xf32>) {
  %y = linalg.depthwise_conv_1d_nwc_wc {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
      ins(%x, %w : tensor<?x8x3xf16>, tensor<3x3xf16>) outs(%start : tensor<?x6x3xf32>) -> tensor<?x6x3xf32>
  %z = linalg.depthwise_conv_1d_nwc_wc {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
      ins(%x, %w : tensor<?x8x3xf16>, tensor<3x3xf16>) outs(%y : tensor<?x6x3xf32>) -> tensor<?x6x3xf32>
  return %y, %z : tensor<?x6x3xf32>, tensor<?x6x3xf32>
}

// IREE turns a 1x1 convolution into a product that reads a strided slice.
// CHECK-LABEL: func.func @slice_with_steps
// CHECK: %[[SLICE:.*]] = tensor.extract_slice
// CHECK: ins(%[[SLICE]] : tensor<4x5xf16>) outs(%{{.*}} : tensor<4x5xf32>)
// CHECK: linalg.matmul ins(%{{.*}} : tensor<4x5xf32>, tensor<5x3xf32>)
func.func @slice_with_steps(%x: tensor<8x5xf16>, %w: tensor<5x3xf16>, %start: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %slice = tensor.extract_slice %x[0, 0] [4, 5] [2, 1] : tensor<8x5xf16> to tensor<4x5xf16>
  %y = linalg.matmul ins(%slice, %w : tensor<4x5xf16>, tensor<5x3xf16>) outs(%start : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// A convolution that became a product of its windows stays with IREE if a pass fails on its kernel.
// CHECK-LABEL: func.func @product_of_windows
// CHECK: linalg.matmul ins(%{{.*}} : tensor<4x5xf32>, tensor<5x3xf32>)
func.func @product_of_windows(%x: tensor<8x5xf16>, %w: tensor<5x3xf16>, %start: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %empty = tensor.empty() : tensor<2x2x5xf16>
  %windows = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i * 4 + j * 2, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                             iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<8x5xf16>) outs(%empty : tensor<2x2x5xf16>) {
  ^bb0(%a: f16, %out: f16):
    linalg.yield %a : f16
  } -> tensor<2x2x5xf16>
  %rows = tensor.collapse_shape %windows [[0, 1], [2]] : tensor<2x2x5xf16> into tensor<4x5xf16>
  %y = linalg.matmul ins(%rows, %w : tensor<4x5xf16>, tensor<5x3xf16>) outs(%start : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// The pass handles functions of IREE that were not imported, too.
// CHECK: "util.func"
// CHECK: linalg.conv_1d ins(%{{.*}} : tensor<9xf32>, tensor<3xf32>)
"util.func"() <{function_type = (tensor<9xf16>, tensor<3xf16>) -> (), sym_name = "iree"}> ({
^bb0(%x: tensor<9xf16>, %w: tensor<3xf16>):
  %start = tensor.empty() : tensor<7xf32>
  %y = linalg.conv_1d ins(%x, %w : tensor<9xf16>, tensor<3xf16>) outs(%start : tensor<7xf32>) -> tensor<7xf32>
  "util.return"(%y) : (tensor<7xf32>) -> ()
}) : () -> ()

// Matmuls and pools in narrow types are correct already, and so are convolutions in f32 and of integers.
// CHECK-LABEL: func.func @leaves_others_alone
// CHECK-NOT: util.optimization_barrier
// CHECK: linalg.matmul ins(%{{.*}} : tensor<4x5xf16>, tensor<5x3xf16>)
// CHECK: linalg.pooling_nchw_sum {{.*}} ins(%{{.*}} : tensor<1x3x8x8xf16>, tensor<2x2xf16>)
// CHECK: linalg.conv_1d ins(%{{.*}} : tensor<9xf32>, tensor<3xf32>)
// CHECK: linalg.conv_1d ins(%{{.*}} : tensor<9xi8>, tensor<3xi8>)
func.func @leaves_others_alone(%a: tensor<4x5xf16>, %b: tensor<5x3xf16>, %image: tensor<1x3x8x8xf16>, %pool: tensor<2x2xf16>,
                               %wide: tensor<9xf32>, %filter: tensor<3xf32>, %bytes: tensor<9xi8>, %weights: tensor<3xi8>,
                               %s0: tensor<4x3xf16>, %s1: tensor<1x3x4x4xf16>, %s2: tensor<7xf32>, %s3: tensor<7xi32>)
    -> (tensor<4x3xf16>, tensor<1x3x4x4xf16>, tensor<7xf32>, tensor<7xi32>) {
  %0 = linalg.matmul ins(%a, %b : tensor<4x5xf16>, tensor<5x3xf16>) outs(%s0 : tensor<4x3xf16>) -> tensor<4x3xf16>
  %1 = linalg.pooling_nchw_sum {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%image, %pool : tensor<1x3x8x8xf16>, tensor<2x2xf16>) outs(%s1 : tensor<1x3x4x4xf16>) -> tensor<1x3x4x4xf16>
  %2 = linalg.conv_1d ins(%wide, %filter : tensor<9xf32>, tensor<3xf32>) outs(%s2 : tensor<7xf32>) -> tensor<7xf32>
  %3 = linalg.conv_1d ins(%bytes, %weights : tensor<9xi8>, tensor<3xi8>) outs(%s3 : tensor<7xi32>) -> tensor<7xi32>
  return %0, %1, %2, %3 : tensor<4x3xf16>, tensor<1x3x4x4xf16>, tensor<7xf32>, tensor<7xi32>
}
