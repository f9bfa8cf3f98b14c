// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-normalize))' | FileCheck %s

// If nobody reads the index of a maximum, it is neither computed nor written.
// CHECK-LABEL: func @unread_result_is_erased
// CHECK: linalg.generic
// CHECK-SAME: outs(%{{[^,]+}} : tensor<3xf32>)
// CHECK-NOT: tensor<3xi64>
func.func @unread_result_is_erased(%a: tensor<3x5xf32>) -> tensor<3xf32> {
  %low = arith.constant dense<0xFF800000> : tensor<3xf32>
  %first = arith.constant dense<0> : tensor<3xi64>
  %m:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<3x5xf32>) outs(%low, %first : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%in: f32, %best: f32, %at: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %greater = arith.cmpf ogt, %in, %best : f32
    %max = arith.maximumf %in, %best : f32
    %where = arith.select %greater, %here, %at : i64
    linalg.yield %max, %where : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %m#0 : tensor<3xf32>
}

// CHECK-LABEL: func @unread_operand_is_erased
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0 : tensor<5xf32>)
func.func @unread_operand_is_erased(%a: tensor<5xf32>, %b: tensor<5xf32>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                       iterator_types = ["parallel"]}
      ins(%a, %b : tensor<5xf32>, tensor<5xf32>) outs(%e : tensor<5xf32>) {
  ^bb0(%u: f32, %v: f32, %out: f32):
    %y = math.exp %u : f32
    linalg.yield %y : f32
  } -> tensor<5xf32>
  return %x : tensor<5xf32>
}

// Unknown ops stay, even unused ones, and so does every op that is not a linalg.generic.
// CHECK-LABEL: func @leaves_the_rest
// CHECK: "some.op"
// CHECK: arith.addf
// CHECK: linalg.matmul
func.func @leaves_the_rest(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %s: f32) -> tensor<3x5xf32> {
  %zero = arith.constant dense<0.0> : tensor<3x5xf32>
  %unknown = "some.op"(%a) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %unused = arith.addf %s, %s : f32
  %c = linalg.matmul ins(%a, %b : tensor<3x4xf32>, tensor<4x5xf32>) outs(%zero : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %c : tensor<3x5xf32>
}

// A kernel cannot report a failed assertion, so an assertion does not keep an expression out of a kernel.
// CHECK-LABEL: func @assertion_is_dropped
// CHECK-NOT: cf.assert
// CHECK: linalg.yield
func.func @assertion_is_dropped(%a: tensor<5xf32>) -> tensor<5xf32> {
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<5xf32>) outs(%e : tensor<5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %fine = arith.cmpf one, %in, %zero : f32
    cf.assert %fine, "division by zero"
    %r = arith.divf %one, %in : f32
    linalg.yield %r : f32
  } -> tensor<5xf32>
  return %x : tensor<5xf32>
}

// A reduced dim of length zero needs no multiplication, and a result without elements no computation.
// CHECK-LABEL: func @sum_of_no_terms_is_its_init
// CHECK: %[[INIT:.+]] = linalg.fill
// CHECK-NOT: linalg.matmul
// CHECK: return %[[INIT]], %arg2
func.func @sum_of_no_terms_is_its_init(%a: tensor<4x0xf32>, %b: tensor<0x5xf32>, %e: tensor<0x7xf32>) -> (tensor<4x5xf32>, tensor<0x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x5xf32>) -> tensor<4x5xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x0xf32>, tensor<0x5xf32>) outs(%init : tensor<4x5xf32>) -> tensor<4x5xf32>
  %x = linalg.exp ins(%e : tensor<0x7xf32>) outs(%e : tensor<0x7xf32>) -> tensor<0x7xf32>
  return %c, %x : tensor<4x5xf32>, tensor<0x7xf32>
}

// A dim of dynamic length may have elements.
// CHECK-LABEL: func @unknown_lengths_are_kept
// CHECK: linalg.matmul
func.func @unknown_lengths_are_kept(%a: tensor<4x?xf32>, %b: tensor<?x5xf32>, %init: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %c = linalg.matmul ins(%a, %b : tensor<4x?xf32>, tensor<?x5xf32>) outs(%init : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %c : tensor<4x5xf32>
}

// A constant table stays outside of the body that reads it, where it is an operand of the expression.
// CHECK-LABEL: func @table_stays_outside
// CHECK: %[[TABLE:.*]] = arith.constant dense<[1, 2, 3, 5]>
// CHECK: linalg.generic
// CHECK: tensor.extract %[[TABLE]]
func.func @table_stays_outside(%x: tensor<7xi32>) -> tensor<7xi32> {
  %t = arith.constant dense<[1, 2, 3, 5]> : tensor<4xi32>
  %e = tensor.empty() : tensor<7xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : tensor<7xi32>) outs(%e : tensor<7xi32>) {
  ^bb0(%in: i32, %out: i32):
    %i = arith.index_cast %in : i32 to index
    %v = tensor.extract %t[%i] : tensor<4xi32>
    linalg.yield %v : i32
  } -> tensor<7xi32>
  return %r : tensor<7xi32>
}
