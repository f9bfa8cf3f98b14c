// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-lower-quantized-matmul))' --split-input-file | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> ()>

// The weights' zero point is zero, so only that of the rows needs a correction: its product with the column sums.
// CHECK-LABEL: func @zero_point_of_rows
// CHECK: %[[SUMS:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<3x5xi8>, tensor<5x7xi8>) {{.*}}tensor<3x7xi32>
// CHECK: arith.extui
// CHECK: arith.extsi
// CHECK: %[[COLUMNS:.*]] = linalg.generic {{.*}}["reduction", "parallel"]{{.*}} ins(%arg1 : tensor<5x7xi8>) outs({{.*}} : tensor<7xi32>)
// CHECK: linalg.generic {{.*}} ins(%[[SUMS]], %[[COLUMNS]], %arg2 : tensor<3x7xi32>, tensor<7xi32>, tensor<i8>)
// CHECK: %[[Z:.*]] = arith.extui
// CHECK: %[[OFF:.*]] = arith.muli {{.*}}, %[[Z]]
// CHECK: %[[REST:.*]] = arith.subi {{.*}}, %[[OFF]]
// CHECK: arith.extsi %[[REST]] : i32 to i64
// CHECK-NOT: linalg.matmul
func.func @zero_point_of_rows(%a: tensor<3x5xi8>, %b: tensor<5x7xi8>, %za: tensor<i8>) -> tensor<3x7xi64> {
  %zb = arith.constant dense<0> : tensor<i8>
  %c0 = arith.constant 0 : i64
  %ea = tensor.empty() : tensor<3x5xi32>
  %wa = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<3x5xi8>) outs(%ea : tensor<3x5xi32>) {
  ^bb0(%in: i8, %out: i32):
    %w = arith.extui %in : i8 to i32
    linalg.yield %w : i32
  } -> tensor<3x5xi32>
  %da = linalg.generic {indexing_maps = [#id, #one, #id], iterator_types = ["parallel", "parallel"]} ins(%wa, %za : tensor<3x5xi32>, tensor<i8>) outs(%ea : tensor<3x5xi32>) {
  ^bb0(%in: i32, %z: i8, %out: i32):
    %w = arith.extui %z : i8 to i32
    %d = arith.subi %in, %w : i32
    linalg.yield %d : i32
  } -> tensor<3x5xi32>
  %eb = tensor.empty() : tensor<5x7xi32>
  %wb = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<5x7xi8>) outs(%eb : tensor<5x7xi32>) {
  ^bb0(%in: i8, %out: i32):
    %w = arith.extsi %in : i8 to i32
    linalg.yield %w : i32
  } -> tensor<5x7xi32>
  %db = linalg.generic {indexing_maps = [#id, #one, #id], iterator_types = ["parallel", "parallel"]} ins(%wb, %zb : tensor<5x7xi32>, tensor<i8>) outs(%eb : tensor<5x7xi32>) {
  ^bb0(%in: i32, %z: i8, %out: i32):
    %w = arith.extsi %z : i8 to i32
    %d = arith.subi %in, %w : i32
    linalg.yield %d : i32
  } -> tensor<5x7xi32>
  %e = tensor.empty() : tensor<3x7xi64>
  %f = linalg.fill ins(%c0 : i64) outs(%e : tensor<3x7xi64>) -> tensor<3x7xi64>
  %m = linalg.matmul ins(%da, %db : tensor<3x5xi32>, tensor<5x7xi32>) outs(%f : tensor<3x7xi64>) -> tensor<3x7xi64>
  return %m : tensor<3x7xi64>
}

// -----

// Without zero points, there is no correction.
// CHECK-LABEL: func @quantized_without_zero_points
// CHECK: %[[SUMS:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<3x5xi8>, tensor<5x7xi8>)
// CHECK: return %[[SUMS]]
func.func @quantized_without_zero_points(%a: tensor<3x5xi8>, %b: tensor<5x7xi8>) -> tensor<3x7xi32> {
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<3x7xi32>
  %f = linalg.fill ins(%c0 : i32) outs(%e : tensor<3x7xi32>) -> tensor<3x7xi32>
  %m = linalg.quantized_matmul ins(%a, %b, %c0, %c0 : tensor<3x5xi8>, tensor<5x7xi8>, i32, i32) outs(%f : tensor<3x7xi32>) -> tensor<3x7xi32>
  return %m : tensor<3x7xi32>
}

// -----

// With both zero points, each is multiplied by the other's sums, and their product is added once for each of K = 5.
// CHECK-LABEL: func @quantized_with_both
// CHECK-COUNT-3: linalg.generic
// CHECK: linalg.generic
// CHECK-DAG: arith.constant 3 : i32
// CHECK-DAG: arith.constant -2 : i32
// CHECK-DAG: arith.constant 5 : i32
// CHECK: linalg.yield
func.func @quantized_with_both(%a: tensor<3x5xi8>, %b: tensor<5x7xi8>) -> tensor<3x7xi32> {
  %c0 = arith.constant 0 : i32
  %za = arith.constant 3 : i32
  %zb = arith.constant -2 : i32
  %e = tensor.empty() : tensor<3x7xi32>
  %f = linalg.fill ins(%c0 : i32) outs(%e : tensor<3x7xi32>) -> tensor<3x7xi32>
  %m = linalg.quantized_matmul ins(%a, %b, %za, %zb : tensor<3x5xi8>, tensor<5x7xi8>, i32, i32) outs(%f : tensor<3x7xi32>) -> tensor<3x7xi32>
  return %m : tensor<3x7xi32>
}

// -----

// Numbers that were never bytes stay as they are.
// CHECK-LABEL: func @leaves_wide_numbers_alone
// CHECK: linalg.matmul
// CHECK-NOT: linalg.generic
func.func @leaves_wide_numbers_alone(%a: tensor<3x5xi32>, %b: tensor<5x7xi32>) -> tensor<3x7xi64> {
  %c0 = arith.constant 0 : i64
  %e = tensor.empty() : tensor<3x7xi64>
  %f = linalg.fill ins(%c0 : i64) outs(%e : tensor<3x7xi64>) -> tensor<3x7xi64>
  %m = linalg.matmul ins(%a, %b : tensor<3x5xi32>, tensor<5x7xi32>) outs(%f : tensor<3x7xi64>) -> tensor<3x7xi64>
  return %m : tensor<3x7xi64>
}
