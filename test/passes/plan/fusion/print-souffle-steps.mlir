// RUN: tilewright-opt %s -o /dev/null \
// RUN:   --pass-pipeline='builtin.module(tile-print-policies{target=cuda:h200 only=souffle,souffle-v1,souffle-v2,souffle-v3})' \
// RUN:   | FileCheck %s

// Steps of Souffle's ablation are planned where they are named. The two sums read the same tensor, so they are one of
// five kernels in V1. What reads them joins them in V2, and the product is behind a barrier in V3.
// CHECK: "kernels": 1,
// CHECK: "policy": "souffle",
// CHECK: "kernels": 5,
// CHECK: "policy": "souffle-v1",
// CHECK: "kernels": 2,
// CHECK: "policy": "souffle-v2",
// CHECK: "kernels": 1,
// CHECK: "policy": "souffle-v3",
// CHECK-NOT: "policy"
func.func @norm(%x: tensor<96x64xf32>, %w: tensor<64x72xf32>) -> tensor<96x72xf32> {
  %e = tensor.empty() : tensor<96x64xf32>
  %c = tensor.empty() : tensor<96x72xf32>
  %zero = arith.constant dense<0.0> : tensor<96xf32>
  %low = arith.constant dense<0xFF800000> : tensor<96xf32>
  %z = arith.constant dense<0.0> : tensor<96x72xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<96x64xf32>) outs(%zero : tensor<96xf32>) dimensions = [1]
  %m = linalg.reduce { arith.maximumf } ins(%x : tensor<96x64xf32>) outs(%low : tensor<96xf32>) dimensions = [1]
  %t = linalg.add ins(%s, %m : tensor<96xf32>, tensor<96xf32>) outs(%zero : tensor<96xf32>) -> tensor<96xf32>
  %b = linalg.broadcast ins(%t : tensor<96xf32>) outs(%e : tensor<96x64xf32>) dimensions = [1]
  %d = linalg.sub ins(%x, %b : tensor<96x64xf32>, tensor<96x64xf32>) outs(%e : tensor<96x64xf32>) -> tensor<96x64xf32>
  %p = linalg.matmul ins(%d, %w : tensor<96x64xf32>, tensor<64x72xf32>) outs(%z : tensor<96x72xf32>) -> tensor<96x72xf32>
  return %p : tensor<96x72xf32>
}
