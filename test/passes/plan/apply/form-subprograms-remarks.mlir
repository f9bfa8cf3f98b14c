// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-form-subprograms='target=x86-64-avx512' --split-input-file \
// RUN:   --remarks-filter-missed=tile-form-subprograms --remark-format=emitRemark --verify-diagnostics

// Every op that is left, and every edge of scope launch, gets a remark with the reason at its op.
func.func @contraction(%a: tensor<9x5xf16>, %b: tensor<5x7xf16>) -> tensor<9x7xf16> {
  %z = arith.constant dense<0.0> : tensor<9x7xf16>
  %e = tensor.empty() : tensor<9x7xf16>
  // expected-remark @below {{tile: op 0 (linalg.matmul) is left to IREE: a contraction without a micro kernel: it accumulates in a type of less than 32 bits}}
  %m = linalg.matmul ins(%a, %b : tensor<9x5xf16>, tensor<5x7xf16>) outs(%z : tensor<9x7xf16>) -> tensor<9x7xf16>
  // expected-remark @below {{tile: op 1 (linalg.exp) is left to IREE: IREE folds it into its linalg.matmul}}
  // expected-remark @below {{tile: the edge from op 0 to op 1 stays at scope launch: op 1 stays with IREE}}
  %x = linalg.exp ins(%m : tensor<9x7xf16>) outs(%e : tensor<9x7xf16>) -> tensor<9x7xf16>
  return %x : tensor<9x7xf16>
}

// -----

func.func @unknown_op_between(%x: tensor<640x64xf32>) -> tensor<640x64xf32> {
  %e = tensor.empty() : tensor<640x64xf32>
  %a = linalg.exp ins(%x : tensor<640x64xf32>) outs(%e : tensor<640x64xf32>) -> tensor<640x64xf32>
  // expected-remark @below {{tile: some.op is left to IREE: not a tensor expression}}
  %o = "some.op"(%a) : (tensor<640x64xf32>) -> tensor<640x64xf32>
  // expected-remark @below {{the edge from op 0 to op 1 stays at scope launch: another op depends on the producer's kernel and the consumer's kernel on it}}
  %b = linalg.add ins(%a, %o : tensor<640x64xf32>, tensor<640x64xf32>)
                  outs(%e : tensor<640x64xf32>) -> tensor<640x64xf32>
  return %b : tensor<640x64xf32>
}

// -----

func.func @unsupported(%x: tensor<7xf64>, %y: tensor<3x9xf32>) -> (tensor<7xf64>, tensor<9x3xf32>) {
  %e = tensor.empty() : tensor<7xf64>
  %f = tensor.empty() : tensor<9x3xf32>
  // expected-remark @below {{op 0 (linalg.tanh) is left to IREE: math.tanh in f64 has no code generation}}
  %a = linalg.tanh ins(%x : tensor<7xf64>) outs(%e : tensor<7xf64>) -> tensor<7xf64>
  // expected-remark @below {{op 1 (linalg.transpose) is left to IREE: movement that no Tilewright kernel computes with}}
  %t = linalg.transpose ins(%y : tensor<3x9xf32>) outs(%f : tensor<9x3xf32>) permutation = [1, 0]
  return %a, %t : tensor<7xf64>, tensor<9x3xf32>
}
