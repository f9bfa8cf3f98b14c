// RUN: tilewright-opt %s --tile-form-subprograms=target=cuda:h200 | FileCheck %s
// RUN: tilewright-opt %s --tile-form-subprograms='target=cuda:h200 numerics=strict' | FileCheck %s --check-prefix=STRICT

// A cache line of neighbours has 32 columns, 8 threads: the other threads of a block share the rows of each column,
// whose order is free. Strict numerics keep the order of narrow floats only.
// CHECK-LABEL: @sums_of_columns
// CHECK: inits [0.000000e+00 : f32] dims
// STRICT-LABEL: @sums_of_columns
// STRICT: inits [0.000000e+00 : f32] dims
func.func @sums_of_columns(%x: tensor<16x197x768xf32>) -> tensor<16x768xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x768xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<16x197x768xf32>) outs(%zero : tensor<16x768xf32>) dimensions = [1]
  return %s : tensor<16x768xf32>
}

// CHECK-LABEL: @narrow_sums_of_columns
// CHECK: inits [0.000000e+00 : f32] dims
// STRICT-LABEL: @narrow_sums_of_columns
// STRICT: inits [0.000000e+00 : f16] in_order dims
func.func @narrow_sums_of_columns(%x: tensor<16x197x768xf16>) -> tensor<16x768xf16> {
  %zero = arith.constant dense<0.0> : tensor<16x768xf16>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<16x197x768xf16>) outs(%zero : tensor<16x768xf16>) dimensions = [1]
  return %s : tensor<16x768xf16>
}
