// RUN: tilewright-opt %s --allow-unregistered-dialect -o %t.after \
// RUN:   --pass-pipeline='builtin.module(tile-print-subprograms{target=x86-64-avx512 output=%t})'
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=AFTER < %t.after

// Two products of one shape have one printed form, independent of names, operands and readers; it includes the tensor
// that initialises the sums. A third product of another shape has its own form.
// CHECK: "plan": {
// CHECK: "report": {
// CHECK: "subprograms": [
// CHECK: "form": "[[FORM:.*func.func @subprogram\(%arg0: tensor<37x53xf32>, %arg1: tensor<53x53xf32>\).*linalg.fill.*linalg.matmul.*return.*]]",
// CHECK-NEXT: "kernel": 0,
// CHECK-NEXT: "part": 0
// CHECK: "form": "[[FORM]]",
// CHECK-NEXT: "kernel": 1,
// CHECK: "form": "{{.*}}@subprogram(%arg0: tensor<37x53xf32>, %arg1: tensor<53x41xf32>){{.*}}",
// CHECK-NEXT: "kernel": 2,
// CHECK-NOT: "form"

// The module itself does not change.
// AFTER-LABEL: func.func @layers
// AFTER-COUNT-3: linalg.matmul
// AFTER-NOT: tile.
func.func @layers(%x: tensor<37x53xf32>, %w: tensor<53x53xf32>, %v: tensor<53x41xf32>) -> tensor<37x41xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<37x53xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  %p = linalg.matmul ins(%x, %w : tensor<37x53xf32>, tensor<53x53xf32>) outs(%f : tensor<37x53xf32>) -> tensor<37x53xf32>
  %b = "other.barrier"(%p) : (tensor<37x53xf32>) -> tensor<37x53xf32>
  %q = linalg.matmul ins(%b, %w : tensor<37x53xf32>, tensor<53x53xf32>) outs(%f : tensor<37x53xf32>) -> tensor<37x53xf32>
  %c = "other.barrier"(%q) : (tensor<37x53xf32>) -> tensor<37x53xf32>
  %narrow = tensor.empty() : tensor<37x41xf32>
  %start = linalg.fill ins(%zero : f32) outs(%narrow : tensor<37x41xf32>) -> tensor<37x41xf32>
  %r = linalg.matmul ins(%c, %v : tensor<37x53xf32>, tensor<53x41xf32>) outs(%start : tensor<37x41xf32>) -> tensor<37x41xf32>
  return %r : tensor<37x41xf32>
}
