// A plan states the forms that its graph has. A plan of forms only is completed by the policy; one with forms that the
// graph does not offer, or has not, is refused.
// RUN: split-file %s %t
// RUN: tilewright-opt %t/graph.mlir --tile-form-subprograms='target=x86-64-avx512 plan-in=%t/forms.json plan-out=%t/plan.json' -o /dev/null
// RUN: FileCheck %s --input-file=%t/plan.json
// RUN: not tilewright-opt %t/graph.mlir --tile-form-subprograms='target=x86-64-avx512 plan-in=%t/unknown.json' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tilewright-opt %t/graph.mlir --tile-form-subprograms='target=x86-64-avx512 plan-in=%t/other.json' 2>&1 | FileCheck %s --check-prefix=OTHER

// CHECK: "form": "merged contractions"
// CHECK: "number": 0
// CHECK: "reason": "padding costs more"
// CHECK: "taken": false
// CHECK: "extents":
// UNKNOWN: error: illegal plan: names form 'merged contractions' 1 of linalg.matmul, linalg.matmul; the graph offers 1 of this form
// OTHER: error: illegal plan: takes form 'merged contractions' 0 of {{.*}}, but the graph was rewritten by another choice

//--- graph.mlir
func.func @sum(%x: tensor<37x53xf32>) -> tensor<37xf32> attributes {
    tile.forms = [#tile.form<form = "merged contractions", number = 0, taken = false, ops = ["linalg.matmul", "linalg.matmul"], reason = "padding costs more">]} {
  %zero = arith.constant dense<0.0> : tensor<37xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<37x53xf32>) outs(%zero : tensor<37xf32>) dimensions = [1]
  return %s : tensor<37xf32>
}
//--- forms.json
{"kernels": [], "edges": [], "forms": [{"form": "merged contractions", "number": 0, "taken": false}]}
//--- unknown.json
{"kernels": [], "edges": [], "forms": [{"form": "merged contractions", "number": 1, "ops": ["linalg.matmul", "linalg.matmul"], "taken": false}]}
//--- other.json
{"kernels": [], "edges": [], "forms": [{"form": "merged contractions", "number": 0, "taken": true}]}
