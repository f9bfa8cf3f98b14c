// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-expand-quantization,tile-lower-quantized-matmul))' --split-input-file | FileCheck %s
// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-expand-quantization,tile-lower-quantized-matmul{numerics=strict}))' --split-input-file | FileCheck %s --check-prefix=STRICT

#id = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> ()>
#column = affine_map<(i, j) -> (j)>

// Bytes are multiplied, and the accumulators are scaled by the scale of the rows and that of each column. Strict
// numerics round each operand, as the graph does.
// CHECK-LABEL: func @dequantized_rows_by_columns
// CHECK: %[[SUMS:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<3x5xi8>, tensor<5x7xi8>) {{.*}}tensor<3x7xi32>
// CHECK: %[[COLUMNS:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<5x7xi8>)
// CHECK: linalg.generic {{.*}} ins(%[[SUMS]], %[[COLUMNS]], %arg2 : tensor<3x7xi32>, tensor<7xi32>, tensor<7xf32>)
// CHECK-SAME: tile.form = "scales after a sum of integers"
// CHECK: %[[Z:.*]] = arith.constant 120 : i32
// CHECK: arith.muli %{{.*}}, %[[Z]]
// CHECK: %[[F:.*]] = arith.sitofp
// CHECK: %[[A:.*]] = arith.mulf %[[F]], %{{.*}} : f32
// CHECK: arith.mulf %[[A]], %{{.*}} : f32
// CHECK-NOT: linalg.matmul
// STRICT-LABEL: func @dequantized_rows_by_columns
// STRICT: linalg.matmul {{.*}} tensor<3x5xf32>, tensor<5x7xf32>
func.func @dequantized_rows_by_columns(%a: tensor<3x5xi8>, %b: tensor<5x7xi8>, %scales: tensor<7xf32>) -> tensor<3x7xf32> {
  %scale = arith.constant 3.0e-02 : f32
  %zero = arith.constant 120 : i64
  %c0 = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<3x5xf32>
  %eb = tensor.empty() : tensor<5x7xf32>
  %e = tensor.empty() : tensor<3x7xf32>
  %x = "iree_linalg_ext.dequantize_affine"(%a, %scale, %zero, %ea) <{indexing_maps = [#id, #one, #one, #id], input_unsigned, quant_max = 255 : i64, quant_min = 0 : i64}> : (tensor<3x5xi8>, f32, i64, tensor<3x5xf32>) -> tensor<3x5xf32>
  %w = "iree_linalg_ext.dequantize_affine"(%b, %scales, %eb) <{indexing_maps = [#id, #column, #id], quant_max = 127 : i64, quant_min = -128 : i64}> : (tensor<5x7xi8>, tensor<7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %f = linalg.fill ins(%c0 : f32) outs(%e : tensor<3x7xf32>) -> tensor<3x7xf32>
  %m = linalg.matmul ins(%x, %w : tensor<3x5xf32>, tensor<5x7xf32>) outs(%f : tensor<3x7xf32>) -> tensor<3x7xf32>
  return %m : tensor<3x7xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#one = affine_map<(i, j) -> ()>

// A scale that varies along K cannot be applied after the sum.
// CHECK-LABEL: func @leaves_scales_of_terms_alone
// CHECK: linalg.matmul {{.*}} tensor<3x5xf32>, tensor<5x7xf32>
func.func @leaves_scales_of_terms_alone(%a: tensor<3x5xi8>, %b: tensor<5x7xi8>, %scales: tensor<5xf32>) -> tensor<3x7xf32> {
  %scale = arith.constant 3.0e-02 : f32
  %c0 = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<3x5xf32>
  %eb = tensor.empty() : tensor<5x7xf32>
  %e = tensor.empty() : tensor<3x7xf32>
  %x = "iree_linalg_ext.dequantize_affine"(%a, %scale, %ea) <{indexing_maps = [#id, #one, #id], quant_max = 127 : i64, quant_min = -128 : i64}> : (tensor<3x5xi8>, f32, tensor<3x5xf32>) -> tensor<3x5xf32>
  %w = "iree_linalg_ext.dequantize_affine"(%b, %scales, %eb) <{indexing_maps = [#id, #row, #id], quant_max = 127 : i64, quant_min = -128 : i64}> : (tensor<5x7xi8>, tensor<5xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %f = linalg.fill ins(%c0 : f32) outs(%e : tensor<3x7xf32>) -> tensor<3x7xf32>
  %m = linalg.matmul ins(%x, %w : tensor<3x5xf32>, tensor<5x7xf32>) outs(%f : tensor<3x7xf32>) -> tensor<3x7xf32>
  return %m : tensor<3x7xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> ()>

// A single dequantised operand does not make a product of bytes.
// CHECK-LABEL: func @leaves_weights_alone_quantised
// CHECK: linalg.matmul {{.*}} tensor<3x5xf32>, tensor<5x7xf32>
func.func @leaves_weights_alone_quantised(%x: tensor<3x5xf32>, %b: tensor<5x7xi8>) -> tensor<3x7xf32> {
  %scale = arith.constant 3.0e-02 : f32
  %c0 = arith.constant 0.0 : f32
  %eb = tensor.empty() : tensor<5x7xf32>
  %e = tensor.empty() : tensor<3x7xf32>
  %w = "iree_linalg_ext.dequantize_affine"(%b, %scale, %eb) <{indexing_maps = [#id, #one, #id], quant_max = 127 : i64, quant_min = -128 : i64}> : (tensor<5x7xi8>, f32, tensor<5x7xf32>) -> tensor<5x7xf32>
  %f = linalg.fill ins(%c0 : f32) outs(%e : tensor<3x7xf32>) -> tensor<3x7xf32>
  %m = linalg.matmul ins(%x, %w : tensor<3x5xf32>, tensor<5x7xf32>) outs(%f : tensor<3x7xf32>) -> tensor<3x7xf32>
  return %m : tensor<3x7xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> ()>

// An operand padded with zeros becomes bytes padded with the zero point.
// CHECK-LABEL: func @pads_bytes
// CHECK: %[[PAD:.*]] = tensor.pad %arg0
// CHECK: tensor.yield %c-56{{.*}} : i8
// CHECK: linalg.generic {{.*}} ins(%[[PAD]], %arg1 : tensor<4x5xi8>, tensor<5x7xi8>)
func.func @pads_bytes(%a: tensor<3x5xi8>, %b: tensor<5x7xi8>) -> tensor<4x7xf32> {
  %scale = arith.constant 3.0e-02 : f32
  %zero = arith.constant 200 : i64
  %c0 = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<3x5xf32>
  %eb = tensor.empty() : tensor<5x7xf32>
  %e = tensor.empty() : tensor<4x7xf32>
  %x = "iree_linalg_ext.dequantize_affine"(%a, %scale, %zero, %ea) <{indexing_maps = [#id, #one, #one, #id], input_unsigned, quant_max = 255 : i64, quant_min = 0 : i64}> : (tensor<3x5xi8>, f32, i64, tensor<3x5xf32>) -> tensor<3x5xf32>
  %p = tensor.pad %x low[1, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %c0 : f32
  } : tensor<3x5xf32> to tensor<4x5xf32>
  %w = "iree_linalg_ext.dequantize_affine"(%b, %scale, %eb) <{indexing_maps = [#id, #one, #id], quant_max = 127 : i64, quant_min = -128 : i64}> : (tensor<5x7xi8>, f32, tensor<5x7xf32>) -> tensor<5x7xf32>
  %f = linalg.fill ins(%c0 : f32) outs(%e : tensor<4x7xf32>) -> tensor<4x7xf32>
  %m = linalg.matmul ins(%p, %w : tensor<4x5xf32>, tensor<5x7xf32>) outs(%f : tensor<4x7xf32>) -> tensor<4x7xf32>
  return %m : tensor<4x7xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> ()>

// Differences from a zero point that is not a byte have no bounded sum.
// CHECK-LABEL: func @leaves_zero_points_beyond_bytes_alone
// CHECK: linalg.matmul {{.*}} tensor<3x5xf32>, tensor<5x7xf32>
func.func @leaves_zero_points_beyond_bytes_alone(%a: tensor<3x5xi8>, %b: tensor<5x7xi8>) -> tensor<3x7xf32> {
  %scale = arith.constant 3.0e-02 : f32
  %zero = arith.constant 256 : i64
  %c0 = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<3x5xf32>
  %eb = tensor.empty() : tensor<5x7xf32>
  %e = tensor.empty() : tensor<3x7xf32>
  %x = "iree_linalg_ext.dequantize_affine"(%a, %scale, %zero, %ea) <{indexing_maps = [#id, #one, #one, #id], input_unsigned, quant_max = 255 : i64, quant_min = 0 : i64}> : (tensor<3x5xi8>, f32, i64, tensor<3x5xf32>) -> tensor<3x5xf32>
  %w = "iree_linalg_ext.dequantize_affine"(%b, %scale, %eb) <{indexing_maps = [#id, #one, #id], quant_max = 127 : i64, quant_min = -128 : i64}> : (tensor<5x7xi8>, f32, tensor<5x7xf32>) -> tensor<5x7xf32>
  %f = linalg.fill ins(%c0 : f32) outs(%e : tensor<3x7xf32>) -> tensor<3x7xf32>
  %m = linalg.matmul ins(%x, %w : tensor<3x5xf32>, tensor<5x7xf32>) outs(%f : tensor<3x7xf32>) -> tensor<3x7xf32>
  return %m : tensor<3x7xf32>
}
