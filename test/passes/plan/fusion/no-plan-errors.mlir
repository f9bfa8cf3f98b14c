// A target without memory for a workgroup has no plan. That is an error at the function, in every pass that plans.
// RUN: echo '{"base": "x86-64-avx2", "blockBytes": 0}' > %t.json
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-plan{target=%t.json}))' --verify-diagnostics
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-print-subprograms{target=%t.json output=%t})' --verify-diagnostics
// RUN: echo '{"base": "cuda:a100", "blockBytes": 0}' > %t.gpu.json
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-schemes{target=%t.gpu.json}))' --verify-diagnostics
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-split-reductions{target=%t.gpu.json}))' --verify-diagnostics

// expected-error @below {{lacks memory levels, cores, vectors or block memory}}
func.func @sums(%x: tensor<3x5003xf32>) -> tensor<3xf32> {
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<3x5003xf32>) outs(%zero : tensor<3xf32>) dimensions = [1]
  return %s : tensor<3xf32>
}
