// A loop is part of its kernel only if the kernel can hand on what the loop carries. The plan says why not.
// RUN: split-file %s %t
// RUN: tilewright-opt %t/filled.mlir --pass-pipeline='builtin.module(tile-form-subprograms{target=cuda:h200 plan-out=%t/filled.json})' -o /dev/null && FileCheck %s --check-prefix=FILLED < %t/filled.json
// RUN: tilewright-opt %t/empty.mlir --pass-pipeline='builtin.module(tile-form-subprograms{target=cuda:h200 plan-out=%t/empty.json})' -o /dev/null && FileCheck %s --check-prefix=EMPTY < %t/empty.json

// FILLED: "oneKernel": false
// FILLED: "reason": "a tensor that it collects has elements before the loop"
// EMPTY: "oneKernel": true

//--- filled.mlir
func.func @f(%h0: tensor<1x64xf32>) -> tensor<5x1x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<1x64xf32>
  %ea = tensor.empty() : tensor<5x1x64xf32>
  %e = linalg.fill ins(%zero : f32) outs(%ea : tensor<5x1x64xf32>) -> tensor<5x1x64xf32>
  %a:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %h0, %all = %e) -> (tensor<1x64xf32>, tensor<5x1x64xf32>) {
    %n = linalg.tanh ins(%h : tensor<1x64xf32>) outs(%es : tensor<1x64xf32>) -> tensor<1x64xf32>
    %now = tensor.insert_slice %n into %all[%i, 0, 0] [1, 1, 64] [1, 1, 1] : tensor<1x64xf32> into tensor<5x1x64xf32>
    scf.yield %n, %now : tensor<1x64xf32>, tensor<5x1x64xf32>
  }
  return %a#1 : tensor<5x1x64xf32>
}
//--- empty.mlir
func.func @f(%h0: tensor<1x64xf32>) -> tensor<5x1x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %es = tensor.empty() : tensor<1x64xf32>
  %e = tensor.empty() : tensor<5x1x64xf32>
  %a:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %h0, %all = %e) -> (tensor<1x64xf32>, tensor<5x1x64xf32>) {
    %n = linalg.tanh ins(%h : tensor<1x64xf32>) outs(%es : tensor<1x64xf32>) -> tensor<1x64xf32>
    %now = tensor.insert_slice %n into %all[%i, 0, 0] [1, 1, 64] [1, 1, 1] : tensor<1x64xf32> into tensor<5x1x64xf32>
    scf.yield %n, %now : tensor<1x64xf32>, tensor<5x1x64xf32>
  }
  return %a#1 : tensor<5x1x64xf32>
}
