// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-raise,tile-compose))' \
// RUN:   --remarks-filter-missed=tile-compose --remark-format=emitRemark --verify-diagnostics | FileCheck %s

// Inlined into both readers, exp would be computed twice.
// CHECK-LABEL: func @arithmetic_with_two_readers
// CHECK-COUNT-3: tile.expr
func.func @arithmetic_with_two_readers(%a: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  %e = tensor.empty() : tensor<3x5xf32>
  %x = linalg.exp ins(%a : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  // expected-remark @below {{the producer has several readers}}
  %y = linalg.sqrt ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  // expected-remark @below {{the producer has several readers}}
  %z = linalg.log ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %y, %z : tensor<3x5xf32>, tensor<3x5xf32>
}

// Inlined into a broadcast, exp would be computed five times per element.
// CHECK-LABEL: func @arithmetic_under_a_broadcast
// CHECK-COUNT-2: tile.expr
func.func @arithmetic_under_a_broadcast(%a: tensor<3xf32>) -> tensor<3x5xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %x = linalg.exp ins(%a : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %f = tensor.empty() : tensor<3x5xf32>
  // expected-remark @below {{the consumer reads elements more than once}}
  %y = linalg.broadcast ins(%x : tensor<3xf32>) outs(%f : tensor<3x5xf32>) dimensions = [1]
  return %y : tensor<3x5xf32>
}

// Movement is inlined into every reader.
// CHECK-LABEL: func @movement_with_two_readers
// CHECK-COUNT-2: tile.expr
// CHECK-NOT: tile.expr
func.func @movement_with_two_readers(%a: tensor<15xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  %x = tensor.expand_shape %a [[0, 1]] output_shape [3, 5] : tensor<15xf32> into tensor<3x5xf32>
  %e = tensor.empty() : tensor<3x5xf32>
  %y = linalg.sqrt ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %z = linalg.log ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %y, %z : tensor<3x5xf32>, tensor<3x5xf32>
}
