// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-tensor-graph))' --verify-diagnostics

// An expression reads from its producer; a returned value escapes, and lives to the end.
func.func @producer_and_consumer(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %e = tensor.empty() : tensor<3x5xf32>
  // expected-remark @below {{expr 0: elementwise, domain [3, 5], live 0 to 1}}
  %x = linalg.exp ins(%a : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  // expected-remark @below {{expr 1: elementwise, domain [3, 5], input 0 from expr 0 result 0, live 1 to 2, escapes}}
  %y = linalg.sqrt ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// A fill that only starts an accumulator belongs to the reduction, and is not an expression of its own.
func.func @accumulator_is_part_of_the_reduction(%a: tensor<3x5xf32>) -> tensor<3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  // expected-remark @below {{expr 0: reduction, domain [3, 5] reduce [1], live 0 to 1, escapes}}
  %s = linalg.reduce { arith.addf } ins(%a : tensor<3x5xf32>) outs(%f : tensor<3xf32>) dimensions = [1]
  return %s : tensor<3xf32>
}

// Two readers that do not depend on each other share their input in space (Souffle 5.1).
// expected-remark @below {{reuse: 'tensor<4x6xf32>' (argument 0) is read by exprs [0, 1], spatial}}
func.func @spatial_reuse(%a: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  // expected-remark @below {{expr 0: elementwise}}
  %x = linalg.exp ins(%a : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  // expected-remark @below {{expr 1: elementwise}}
  %y = linalg.sqrt ins(%a : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %x, %y : tensor<4x6xf32>, tensor<4x6xf32>
}

// A reader that depends on another shares its input in time, also if the path goes through an op without an expression.
// expected-remark @below {{(argument 0) is read by exprs [0, 1], temporal}}
func.func @temporal_reuse_through_an_opaque_op(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  // expected-remark @below {{expr 0: elementwise, domain [4, 6], live 0 to 2, escapes}}
  %x = linalg.exp ins(%a : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %o = call @opaque(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  // expected-remark @below {{expr 1: elementwise}}
  %y = linalg.add ins(%a, %o : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
func.func private @opaque(tensor<4x6xf32>) -> tensor<4x6xf32>

// The graph does not understand dynamic shapes, so it leaves them out.
func.func @dynamic_is_left_out(%a: tensor<?xf32>) -> tensor<?xf32> {
  %x = linalg.exp ins(%a : tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  return %x : tensor<?xf32>
}
