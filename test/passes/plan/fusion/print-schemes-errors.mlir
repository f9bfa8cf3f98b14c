// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-schemes{target=x86-64-avx2}))' --verify-diagnostics

// expected-error @below {{target 'x86-64-avx2' is not a GPU: it has no thread blocks}}
func.func @on_a_cpu() {
  return
}
