// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-normalize))' | FileCheck %s

// The index half of a maximum that nobody reads is neither computed nor written.
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

// Ops we do not know stay, even unused ones, and so does everything that is no linalg.generic.
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

// A kernel cannot report a failed assertion, so it does not keep an expression out of one.
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

// Nothing is multiplied along a dim of length zero, and nothing computed for a result without elements.
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

// A dim whose length is not known may have points.
// CHECK-LABEL: func @unknown_lengths_are_kept
// CHECK: linalg.matmul
func.func @unknown_lengths_are_kept(%a: tensor<4x?xf32>, %b: tensor<?x5xf32>, %init: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %c = linalg.matmul ins(%a, %b : tensor<4x?xf32>, tensor<?x5xf32>) outs(%init : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %c : tensor<4x5xf32>
}

// A number that a body takes from a tensor, and what is computed of it, is an operand and part of the body.
// CHECK-LABEL: func @taken_scalar_becomes_an_operand
// CHECK-NOT: tensor.extract
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0, %arg1 : tensor<5xi32>, tensor<i8>)
// CHECK: ^bb0(%[[IN:.*]]: i32, %[[Z:.*]]: i8, %{{.*}}: i32):
// CHECK: %[[W:.*]] = arith.extui %[[Z]] : i8 to i32
// CHECK: %[[S:.*]] = arith.addi %[[W]], %{{.*}} : i32
// CHECK: arith.subi %[[IN]], %[[S]]
func.func @taken_scalar_becomes_an_operand(%x: tensor<5xi32>, %zero: tensor<i8>) -> tensor<5xi32> {
  %c = arith.constant -128 : i32
  %z = tensor.extract %zero[] : tensor<i8>
  %w = arith.extui %z : i8 to i32
  %s = arith.addi %w, %c : i32
  %e = tensor.empty() : tensor<5xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<5xi32>) outs(%e : tensor<5xi32>) {
  ^bb0(%in: i32, %out: i32):
    %d = arith.subi %in, %s : i32
    linalg.yield %d : i32
  } -> tensor<5xi32>
  return %y : tensor<5xi32>
}

// Bytes are padded with zeros around differences to the number.
// CHECK-LABEL: func @taken_pad_becomes_constant
// CHECK: %[[D:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<5xi8>, tensor<i8>)
// CHECK: arith.subi
// CHECK: %[[P:.*]] = tensor.pad %[[D]]
// CHECK: tensor.yield %c0_i8
// CHECK: linalg.generic {{.*}} ins(%[[P]], %arg1 : tensor<8xi8>, tensor<i8>)
// CHECK: arith.addi
func.func @taken_pad_becomes_constant(%x: tensor<5xi8>, %zero: tensor<i8>) -> tensor<8xi8> {
  %z = tensor.extract %zero[] : tensor<i8>
  %p = tensor.pad %x low[1] high[2] {
  ^bb0(%i: index):
    tensor.yield %z : i8
  } : tensor<5xi8> to tensor<8xi8>
  return %p : tensor<8xi8>
}

// What only arithmetic on arguments gives is no element of a tensor.
// CHECK-LABEL: func @leaves_scalar_arguments_outside
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0 : tensor<5xi32>)
func.func @leaves_scalar_arguments_outside(%x: tensor<5xi32>, %z: i32) -> tensor<5xi32> {
  %e = tensor.empty() : tensor<5xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<5xi32>) outs(%e : tensor<5xi32>) {
  ^bb0(%in: i32, %out: i32):
    %d = arith.subi %in, %z : i32
    linalg.yield %d : i32
  } -> tensor<5xi32>
  return %y : tensor<5xi32>
}
