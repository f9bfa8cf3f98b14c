// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-normalize))' | FileCheck %s

// A scalar that a body extracts from a tensor, and arithmetic on it, become an operand and part of the body.
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

// Padding the differences to a zero point with zeros pads the bytes with the zero point.
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

// A scalar computed from arguments alone is not an element of a tensor.
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
