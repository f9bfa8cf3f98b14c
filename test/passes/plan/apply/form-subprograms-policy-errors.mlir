// RUN: tilewright-opt %s --tile-form-subprograms='target=x86-64-avx512 policy=exhaustive' --verify-diagnostics

// There are too many partitions of many ops to try them all.
// expected-error @+1 {{no plan by policy 'exhaustive': the policy tries all partitions of at most 10 ops; these are 11}}
func.func @eleven_ops(%x: tensor<37xf32>) -> tensor<37xf32> {
  %e = tensor.empty() : tensor<37xf32>
  %0 = linalg.exp ins(%x : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %1 = linalg.abs ins(%0 : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %2 = linalg.exp ins(%1 : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %3 = linalg.abs ins(%2 : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %4 = linalg.exp ins(%3 : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %5 = linalg.abs ins(%4 : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %6 = linalg.exp ins(%5 : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %7 = linalg.abs ins(%6 : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %8 = linalg.exp ins(%7 : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %9 = linalg.abs ins(%8 : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %10 = linalg.exp ins(%9 : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  return %10 : tensor<37xf32>
}
