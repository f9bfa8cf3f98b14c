// RUN: tilewright-opt %s -o %t.after \
// RUN:   --pass-pipeline='builtin.module(tile-print-policies{target=x86-64-avx512 cores=2})' | FileCheck %s
// RUN: FileCheck %s --check-prefix=AFTER < %t.after

// Every policy, with its predictions, in the order of the list of policies. The keys of an entry are sorted.
// CHECK: "kernels": 1
// CHECK: "policy": "greedy"
// CHECK: "seconds":
// CHECK: "kernels": 3
// CHECK: "policy": "unfused"
// CHECK: "policy": "xla"
// CHECK: "policy": "fusionstitching"
// CHECK: "policy": "unified"
// CHECK: "policy": "exhaustive"

// AFTER: linalg.reduce
// AFTER-NOT: tile.
func.func @center(%x: tensor<370x53xf32>) -> tensor<370x53xf32> {
  %zero = arith.constant dense<0.0> : tensor<370xf32>
  %e = tensor.empty() : tensor<370x53xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<370x53xf32>) outs(%zero : tensor<370xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<370xf32>) outs(%e : tensor<370x53xf32>) dimensions = [1]
  %y = linalg.sub ins(%x, %sb : tensor<370x53xf32>, tensor<370x53xf32>)
                  outs(%e : tensor<370x53xf32>) -> tensor<370x53xf32>
  return %y : tensor<370x53xf32>
}
