// RUN: tilewright-opt %s --split-input-file --allow-unregistered-dialect -o %t.after \
// RUN:   --pass-pipeline='builtin.module(tile-print-regions{target=x86-64-avx512 cores=2 count=2})' | FileCheck %s
// RUN: FileCheck %s --check-prefix=AFTER < %t.after

// A mean subtracted from its rows, between two sides of an op that nobody knows. The region is the kernel that has three
// ops; its plans are the planner's own, and one with a kernel for each op. The ops of the plans have the numbers of the
// region's function, and not those of the whole.
// CHECK: "form": "{{.*}}func.func @subprogram(%arg0: tensor<370x53xf32>){{.*}}
// CHECK-NEXT: "ops": [
// CHECK-NEXT: 1,
// CHECK-NEXT: 2,
// CHECK-NEXT: 3
// CHECK: "plans": [
// CHECK: "scope": "block"
// CHECK: "name": "reduce_addf_subf_0"
// CHECK: "scope": "launch"
// CHECK: "name": "reduce_addf_0"
// CHECK: "name": "subf_0"
// CHECK-NOT: "form"

// AFTER: linalg.reduce
// AFTER-NOT: tile.
func.func @center(%x: tensor<370x53xf32>) -> tensor<370x53xf32> {
  %zero = arith.constant dense<0.0> : tensor<370xf32>
  %e = tensor.empty() : tensor<370x53xf32>
  %p = linalg.exp ins(%x : tensor<370x53xf32>) outs(%e : tensor<370x53xf32>) -> tensor<370x53xf32>
  %u = "other.unknown"(%p) : (tensor<370x53xf32>) -> tensor<370x53xf32>
  %s = linalg.reduce { arith.addf } ins(%u : tensor<370x53xf32>) outs(%zero : tensor<370xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<370xf32>) outs(%e : tensor<370x53xf32>) dimensions = [1]
  %y = linalg.sub ins(%u, %sb : tensor<370x53xf32>, tensor<370x53xf32>)
                  outs(%e : tensor<370x53xf32>) -> tensor<370x53xf32>
  return %y : tensor<370x53xf32>
}

// -----

// With one op there is nothing to choose.
// CHECK: {{^}}[]
func.func @single(%x: tensor<370x53xf32>) -> tensor<370x53xf32> {
  %e = tensor.empty() : tensor<370x53xf32>
  %p = linalg.exp ins(%x : tensor<370x53xf32>) outs(%e : tensor<370x53xf32>) -> tensor<370x53xf32>
  return %p : tensor<370x53xf32>
}
