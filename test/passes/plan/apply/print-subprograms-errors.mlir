// RUN: tilewright-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(tile-print-subprograms{target=x86-64-avx512 output=%t})' -o /dev/null
// RUN: tilewright-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline='builtin.module(tile-print-candidates{target=x86-64-avx512 output=%t})' -o /dev/null
// RUN: not tilewright-opt %s --pass-pipeline='builtin.module(tile-print-candidates{numerics=loose})' -o /dev/null 2>&1 \
// RUN:   | FileCheck %s

// CHECK: unknown numerics 'loose'; choose default, strict or tf32
func.func @first(%x: tensor<37xf32>) -> tensor<37xf32> {
  %e = tensor.empty() : tensor<37xf32>
  %y = linalg.exp ins(%x : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  return %y : tensor<37xf32>
}
// expected-error @below {{subprograms are printed for a module with one function that holds tensor expressions; this is the second}}
func.func @second(%x: tensor<37xf32>) -> tensor<37xf32> {
  %e = tensor.empty() : tensor<37xf32>
  %y = linalg.exp ins(%x : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  return %y : tensor<37xf32>
}
