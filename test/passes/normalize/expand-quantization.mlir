// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-expand-quantization))' --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> ()>

// Ties go to the even number, the zero point is added before clamping, and NaN gives the lower bound.
// CHECK-LABEL: func @quantizes_to_unsigned
// CHECK: linalg.generic {{.*}} ins(%arg0, {{.*}} : tensor<3x5xf32>, f32, i64) outs({{.*}} : tensor<3x5xi8>)
// CHECK: %[[Q:.*]] = arith.divf %{{.*}}, %cst{{.*}} : f32
// CHECK: %[[R:.*]] = math.roundeven %[[Q]]
// CHECK: %[[Z:.*]] = arith.addf %[[R]]
// CHECK: %[[L:.*]] = arith.maxnumf %[[Z]], %cst
// CHECK: %[[H:.*]] = arith.minnumf %[[L]], %cst
// CHECK: arith.fptoui %[[H]] : f32 to i8
// CHECK-NOT: quantize_affine
func.func @quantizes_to_unsigned(%x: tensor<3x5xf32>) -> tensor<3x5xi8> {
  %scale = arith.constant 3.0e-02 : f32
  %zero = arith.constant 120 : i64
  %e = tensor.empty() : tensor<3x5xi8>
  %q = "iree_linalg_ext.quantize_affine"(%x, %scale, %zero, %e) <{indexing_maps = [#id, #one, #one, #id], quant_max = 255 : i64, quant_min = 0 : i64, storage_unsigned}> : (tensor<3x5xf32>, f32, i64, tensor<3x5xi8>) -> tensor<3x5xi8>
  return %q : tensor<3x5xi8>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Each column has its own scale and zero point; 200 is -56 as a signed byte, and the zero point is unsigned.
// CHECK-LABEL: func @dequantizes_per_channel
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1, {{.*}} : tensor<3x5xi8>, tensor<5xf32>, tensor<5xi8>)
// CHECK: %[[W:.*]] = arith.extui
// CHECK: %[[ZERO:.*]] = arith.constant 200 : i32
// CHECK: %[[D:.*]] = arith.subi %[[W]], %[[ZERO]]
// CHECK: %[[F:.*]] = arith.sitofp %[[D]]
// CHECK: arith.mulf %[[F]], %in
func.func @dequantizes_per_channel(%q: tensor<3x5xi8>, %scales: tensor<5xf32>) -> tensor<3x5xf32> {
  %zeros = arith.constant dense<-56> : tensor<5xi8>
  %e = tensor.empty() : tensor<3x5xf32>
  %x = "iree_linalg_ext.dequantize_affine"(%q, %scales, %zeros, %e) <{indexing_maps = [#id, #column, #column, #id], input_unsigned, quant_max = 255 : i64, quant_min = 0 : i64, zp_unsigned}> : (tensor<3x5xi8>, tensor<5xf32>, tensor<5xi8>, tensor<3x5xf32>) -> tensor<3x5xf32>
  return %x : tensor<3x5xf32>
}

// -----

#id = affine_map<(i) -> (i)>
#one = affine_map<(i) -> ()>

// A bias in i32 has no zero point, and is rounded once before scaling.
// CHECK-LABEL: func @dequantizes_bias
// CHECK: arith.sitofp {{.*}} : i32 to f32
// CHECK-NOT: arith.subi
func.func @dequantizes_bias(%q: tensor<5xi32>) -> tensor<5xf32> {
  %scale = arith.constant 3.0e-02 : f32
  %e = tensor.empty() : tensor<5xf32>
  %x = "iree_linalg_ext.dequantize_affine"(%q, %scale, %e) <{indexing_maps = [#id, #one, #id], quant_max = 2147483647 : i64, quant_min = -2147483648 : i64}> : (tensor<5xi32>, f32, tensor<5xf32>) -> tensor<5xf32>
  return %x : tensor<5xf32>
}

// -----

#id = affine_map<(i) -> (i)>
#one = affine_map<(i) -> ()>

// Differences of i32 may overflow i32.
// CHECK-LABEL: func @leaves_wide_zero_points_alone
// CHECK: iree_linalg_ext.dequantize_affine
func.func @leaves_wide_zero_points_alone(%q: tensor<5xi32>, %zero: i32) -> tensor<5xf32> {
  %scale = arith.constant 3.0e-02 : f32
  %e = tensor.empty() : tensor<5xf32>
  %x = "iree_linalg_ext.dequantize_affine"(%q, %scale, %zero, %e) <{indexing_maps = [#id, #one, #one, #id], quant_max = 2147483647 : i64, quant_min = -2147483648 : i64}> : (tensor<5xi32>, f32, i32, tensor<5xf32>) -> tensor<5xf32>
  return %x : tensor<5xf32>
}

// -----

#id = affine_map<(i) -> (i)>
#one = affine_map<(i) -> ()>

// ONNX divides f16 in f16.
// CHECK-LABEL: func @leaves_narrow_floats_alone
// CHECK: iree_linalg_ext.quantize_affine
func.func @leaves_narrow_floats_alone(%x: tensor<5xf16>) -> tensor<5xi8> {
  %scale = arith.constant 3.0e-02 : f16
  %e = tensor.empty() : tensor<5xi8>
  %q = "iree_linalg_ext.quantize_affine"(%x, %scale, %e) <{indexing_maps = [#id, #one, #id], quant_max = 127 : i64, quant_min = -128 : i64}> : (tensor<5xf16>, f16, tensor<5xi8>) -> tensor<5xi8>
  return %q : tensor<5xi8>
}
