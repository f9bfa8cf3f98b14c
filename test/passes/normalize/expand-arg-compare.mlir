// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-expand-arg-compare))' | FileCheck %s

// The pass finds the largest element, then the least index that holds it, or the initial index if none is larger.
// CHECK-LABEL: func @argmax
// CHECK: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[BEST:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<6x50xf32>)
// CHECK:   arith.maxnumf
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}} ins(%arg0, %[[BEST]] : tensor<6x50xf32>, tensor<6xf32>)
// CHECK:   %[[IS:.*]] = arith.cmpf oeq
// CHECK:   %[[WON:.*]] = arith.cmpf ogt
// CHECK:   arith.andi %[[IS]], %[[WON]] : i1
// CHECK:   linalg.index 1
// CHECK:   arith.minsi
// CHECK: %[[INDEX:.*]] = linalg.generic {{.*}} ins(%[[FIRST]] : tensor<6xi32>)
// CHECK: return %[[BEST]], %[[INDEX]]
func.func @argmax(%x: tensor<6x50xf32>) -> (tensor<6xf32>, tensor<6xi32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<6xf32>
  %f = tensor.empty() : tensor<6xi32>
  %v = linalg.fill ins(%low : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %i = linalg.fill ins(%zero : i32) outs(%f : tensor<6xi32>) -> tensor<6xi32>
  %r:2 = "iree_linalg_ext.arg_compare"(%x, %v, %i) <{dimension = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 1, 1, 0>}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf ogt, %a, %b : f32
    "iree_linalg_ext.yield"(%c) : (i1) -> ()
  }) : (tensor<6x50xf32>, tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
  return %r#0, %r#1 : tensor<6xf32>, tensor<6xi32>
}

// CHECK-LABEL: func @argmin_of_bytes_along_rows
// CHECK:   arith.minui
// CHECK:   arith.cmpi eq
// CHECK:   arith.cmpi ult
// CHECK:   linalg.index 0
func.func @argmin_of_bytes_along_rows(%x: tensor<6x50xi8>) -> tensor<50xi64> {
  %high = arith.constant -1 : i8
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<50xi8>
  %f = tensor.empty() : tensor<50xi64>
  %v = linalg.fill ins(%high : i8) outs(%e : tensor<50xi8>) -> tensor<50xi8>
  %i = linalg.fill ins(%zero : i64) outs(%f : tensor<50xi64>) -> tensor<50xi64>
  %r:2 = "iree_linalg_ext.arg_compare"(%x, %v, %i) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 1, 1, 0>}> ({
  ^bb0(%a: i8, %b: i8):
    %c = arith.cmpi ult, %a, %b : i8
    "iree_linalg_ext.yield"(%c) : (i1) -> ()
  }) : (tensor<6x50xi8>, tensor<50xi8>, tensor<50xi64>) -> (tensor<50xi8>, tensor<50xi64>)
  return %r#1 : tensor<50xi64>
}

// With ties, the last element wins, which the least index does not give: left alone.
// CHECK-LABEL: func @last_of_equals_is_left
// CHECK: "iree_linalg_ext.arg_compare"
func.func @last_of_equals_is_left(%x: tensor<6x50xf32>) -> tensor<6xi32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<6xf32>
  %f = tensor.empty() : tensor<6xi32>
  %v = linalg.fill ins(%low : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %i = linalg.fill ins(%zero : i32) outs(%f : tensor<6xi32>) -> tensor<6xi32>
  %r:2 = "iree_linalg_ext.arg_compare"(%x, %v, %i) <{dimension = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 1, 1, 0>}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf oge, %a, %b : f32
    "iree_linalg_ext.yield"(%c) : (i1) -> ()
  }) : (tensor<6x50xf32>, tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
  return %r#1 : tensor<6xi32>
}

// Initial values that are not constant are left alone, too.
// CHECK-LABEL: func @unknown_start_is_left
// CHECK: "iree_linalg_ext.arg_compare"
func.func @unknown_start_is_left(%x: tensor<6x50xf32>, %v: tensor<6xf32>, %i: tensor<6xi32>) -> tensor<6xi32> {
  %r:2 = "iree_linalg_ext.arg_compare"(%x, %v, %i) <{dimension = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 1, 1, 0>}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.cmpf ogt, %a, %b : f32
    "iree_linalg_ext.yield"(%c) : (i1) -> ()
  }) : (tensor<6x50xf32>, tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
  return %r#1 : tensor<6xi32>
}
