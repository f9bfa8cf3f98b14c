// RUN: tilewright-opt %s -o %t.after \
// RUN:   --pass-pipeline='builtin.module(tile-print-edges{target=x86-64-avx512 cores=2})' | FileCheck %s
// RUN: FileCheck %s --check-prefix=AFTER < %t.after

// The mean of a row is handed over in a block. Two kernels would take longer, and the size of a row or a cheaper launch
// would make them the better choice.
// CHECK: "consumer": 1,
// CHECK-NEXT: "flip": "{{.+}}",
// CHECK-NEXT: "from": "linalg.reduce",
// CHECK: "other": "launch",
// CHECK-NEXT: "other_seconds":
// CHECK: "scope": "block",
// CHECK: "why_impossible": ""

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
