// RUN: tilewright-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(tile-print-plan{target=x86-64-avx512 json=true cores=2}))' -o /dev/null | FileCheck %s

// Two products share rows: the plan of the kernel has the order of loops in memory and in registers, the traffic at
// each level beside the minimum of all orders, the cost of separate kernels, and the bottleneck.
// CHECK: "bound": "arithmetic"
// CHECK-NOT: "bound":
// CHECK: "movement": [
// CHECK: "bytes": {{[1-9]}}
// CHECK-NEXT: "leastBytes": {{[1-9]}}
// CHECK-NEXT: "level": "L1"
// CHECK: "level": "L2"
// CHECK: "level": "L3"
// CHECK: "microKernel": "fma-6x4"
// CHECK: "level": "block"
// CHECK: "level": "thread"
// CHECK-NEXT: "order": [
// CHECK-NEXT: 1,
// CHECK-NEXT: 0,
// CHECK-NEXT: 2
// CHECK: "sizes": [
// CHECK-NEXT: 6,
// CHECK-NEXT: 64,
// CHECK-NEXT: 1
// CHECK: "name": "a kernel for each contraction"
func.func @shared_rows(%a: tensor<512x64xf32>, %b: tensor<64x256xf32>, %d: tensor<256x96xf32>) -> tensor<512x96xf32> {
  %zero = arith.constant 0.0 : f32
  %ce = tensor.empty() : tensor<512x256xf32>
  %ci = linalg.fill ins(%zero : f32) outs(%ce : tensor<512x256xf32>) -> tensor<512x256xf32>
  %ee = tensor.empty() : tensor<512x96xf32>
  %ei = linalg.fill ins(%zero : f32) outs(%ee : tensor<512x96xf32>) -> tensor<512x96xf32>
  %c = linalg.matmul ins(%a, %b : tensor<512x64xf32>, tensor<64x256xf32>) outs(%ci : tensor<512x256xf32>) -> tensor<512x256xf32>
  %e = linalg.matmul ins(%c, %d : tensor<512x256xf32>, tensor<256x96xf32>) outs(%ei : tensor<512x96xf32>) -> tensor<512x96xf32>
  return %e : tensor<512x96xf32>
}

// -----

// The hidden row is too long for a workgroup to hold many of them, and few rows would read all weights repeatedly: two
// kernels, with both predictions.
// CHECK: "reason": "one kernel is predicted slower: {{.+}} us against {{.+}} us"
// CHECK: "name": "contract_0"
// CHECK: "name": "contract_1"
// CHECK-NOT: "name": "a kernel for each contraction"
func.func @long_hidden_rows(%a: tensor<128x768xf32>, %b: tensor<768x3072xf32>, %d: tensor<3072x768xf32>) -> tensor<128x768xf32> {
  %zero = arith.constant 0.0 : f32
  %ce = tensor.empty() : tensor<128x3072xf32>
  %ci = linalg.fill ins(%zero : f32) outs(%ce : tensor<128x3072xf32>) -> tensor<128x3072xf32>
  %ee = tensor.empty() : tensor<128x768xf32>
  %ei = linalg.fill ins(%zero : f32) outs(%ee : tensor<128x768xf32>) -> tensor<128x768xf32>
  %c = linalg.matmul ins(%a, %b : tensor<128x768xf32>, tensor<768x3072xf32>) outs(%ci : tensor<128x3072xf32>) -> tensor<128x3072xf32>
  %e = linalg.matmul ins(%c, %d : tensor<128x3072xf32>, tensor<3072x768xf32>) outs(%ei : tensor<128x768xf32>) -> tensor<128x768xf32>
  return %e : tensor<128x768xf32>
}

// -----

// A constant matrix larger than a core's cache, and few rows: K comes in eights, with lanes inside. A small matrix has
// all of K in a block.
// CHECK: "microKernel": "fma-6x4x8"
// CHECK: "level": "thread"
// CHECK-NEXT: "order": [
// CHECK-NEXT: 2,
// CHECK-NEXT: 1,
// CHECK-NEXT: 0
// CHECK: "microKernel": "fma-6x4"
func.func @streams(%a: tensor<3x1024xf32>, %b: tensor<1024x2048xf32>, %c: tensor<3x96xf32>, %d: tensor<96x128xf32>)
    -> (tensor<3x2048xf32>, tensor<3x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<3x2048xf32>
  %xi = linalg.fill ins(%zero : f32) outs(%xe : tensor<3x2048xf32>) -> tensor<3x2048xf32>
  %ye = tensor.empty() : tensor<3x128xf32>
  %yi = linalg.fill ins(%zero : f32) outs(%ye : tensor<3x128xf32>) -> tensor<3x128xf32>
  %x = linalg.matmul ins(%a, %b : tensor<3x1024xf32>, tensor<1024x2048xf32>) outs(%xi : tensor<3x2048xf32>) -> tensor<3x2048xf32>
  %y = linalg.matmul ins(%c, %d : tensor<3x96xf32>, tensor<96x128xf32>) outs(%yi : tensor<3x128xf32>) -> tensor<3x128xf32>
  return %x, %y : tensor<3x2048xf32>, tensor<3x128xf32>
}
