// RUN: tilewright-opt %s --tile-guard-divisions | FileCheck %s

#map = affine_map<(d0) -> (d0)>

// A divisor that may be zero, or -1 below the least number, becomes 1 there.
// CHECK-LABEL: func.func @signed_numbers
// CHECK: ^bb0(%[[A:.*]]: i32, %[[B:.*]]: i32, %{{.*}}: i32):
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %[[B]], %{{.*}} : i32
// CHECK: %[[MINUS:.*]] = arith.cmpi eq, %[[B]], %{{.*}} : i32
// CHECK: %[[LEAST:.*]] = arith.cmpi eq, %[[A]], %{{.*}} : i32
// CHECK: %[[WRAPS:.*]] = arith.andi %[[MINUS]], %[[LEAST]] : i1
// CHECK: %[[TRAPS:.*]] = arith.ori %[[ZERO]], %[[WRAPS]] : i1
// CHECK: %[[SAFE:.*]] = arith.select %[[TRAPS]], %{{.*}}, %[[B]] : i32
// CHECK: arith.remsi %[[A]], %[[SAFE]] : i32
func.func @signed_numbers(%a: tensor<5xi32>, %b: tensor<5xi32>) -> tensor<5xi32> {
  %0 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<5xi32>, tensor<5xi32>) outs(%a : tensor<5xi32>) {
  ^bb0(%x: i32, %y: i32, %old: i32):
    %rest = arith.remsi %x, %y : i32
    linalg.yield %rest : i32
  } -> tensor<5xi32>
  return %0 : tensor<5xi32>
}

// An unsigned division traps for zero only.
// CHECK-LABEL: func.func @unsigned_numbers
// CHECK: ^bb0(%[[A:.*]]: i8, %[[B:.*]]: i8, %{{.*}}: i8):
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %[[B]], %{{.*}} : i8
// CHECK: %[[SAFE:.*]] = arith.select %[[ZERO]], %{{.*}}, %[[B]] : i8
// CHECK-NEXT: arith.divui %[[A]], %[[SAFE]] : i8
func.func @unsigned_numbers(%a: tensor<5xi8>, %b: tensor<5xi8>) -> tensor<5xi8> {
  %0 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<5xi8>, tensor<5xi8>) outs(%a : tensor<5xi8>) {
  ^bb0(%x: i8, %y: i8, %old: i8):
    %quotient = arith.divui %x, %y : i8
    linalg.yield %quotient : i8
  } -> tensor<5xi8>
  return %0 : tensor<5xi8>
}

// A constant that never traps, and a division of indices, stay as they are.
// CHECK-LABEL: func.func @safe_divisors
// CHECK-NOT: arith.select
// CHECK: return
func.func @safe_divisors(%a: tensor<5xi32>, %n: index) -> tensor<5xi32> {
  %three = arith.constant 3 : i32
  %0 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%a : tensor<5xi32>) {
  ^bb0(%x: i32):
    %i = linalg.index 0 : index
    %j = arith.divui %i, %n : index
    %number = arith.index_cast %j : index to i32
    %third = arith.divsi %x, %three : i32
    %sum = arith.addi %third, %number : i32
    linalg.yield %sum : i32
  } -> tensor<5xi32>
  return %0 : tensor<5xi32>
}
