// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-print-candidates{target=cuda:h200 count=6})' -o /dev/null | FileCheck %s

// On a GPU: the planner's thread block first, then others for the same kernel, fastest first; each one is a plan.
// CHECK: "threads": 256,
// CHECK: "tiles": [
// CHECK-NEXT: 128,
// CHECK-NEXT: 768,
// CHECK-NEXT: 128
// CHECK: "name": "contract_0"
// CHECK: "tiles": [
// CHECK-NEXT: 64,
// CHECK-NEXT: 768,
// CHECK-NEXT: 256
// CHECK-COUNT-5: "name": "contract_0"
// CHECK-NOT: "name": "contract_0"
func.func @matmul(%x: tensor<512x768xf16>, %w: tensor<768x3072xf16>) -> tensor<512x3072xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x3072xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<512x3072xf32>) -> tensor<512x3072xf32>
  %s = linalg.matmul ins(%x, %w : tensor<512x768xf16>, tensor<768x3072xf16>) outs(%z : tensor<512x3072xf32>) -> tensor<512x3072xf32>
  return %s : tensor<512x3072xf32>
}
