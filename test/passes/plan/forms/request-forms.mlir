// A plan from a file requests choices of forms, which override the rules of the passes that offer them.
// RUN: split-file %s %t
// RUN: tilewright-opt %t/graph.mlir --pass-pipeline='builtin.module(tile-request-forms{plan-in=%t/apart.json},func.func(tile-merge-contractions{target=x86-64-avx512}))' | FileCheck %s --check-prefix=APART
// RUN: tilewright-opt %t/graph.mlir --pass-pipeline='builtin.module(tile-request-forms{plan-in=%t/heads.json},func.func(tile-merge-contractions{target=x86-64-avx512}))' | FileCheck %s --check-prefix=HEADS
// RUN: not tilewright-opt %t/graph.mlir --pass-pipeline='builtin.module(tile-request-forms{plan-in=%t/odd.json},func.func(tile-merge-contractions{target=x86-64-avx512}))' 2>&1 | FileCheck %s --check-prefix=ODD
// RUN: not tilewright-opt %t/graph.mlir --pass-pipeline='builtin.module(tile-request-forms{plan-in=%t/ops.json},func.func(tile-merge-contractions{target=x86-64-avx512}))' 2>&1 | FileCheck %s --check-prefix=OPS

// The merge that the rule takes is declined, and the record says why.
// APART: tile.forms = [#tile.form<form = "merged contractions", number = 0, taken = false, ops = ["linalg.matmul", "linalg.matmul"], {{.*}}reason = "the given plan says so"
// APART-COUNT-2: = linalg.matmul

// Other columns than the rule's are laid out.
// HEADS: tensor<9x2x12x16xf32>

// What cannot be carried out is refused at the op.
// ODD: error: illegal plan: takes form 'merged contractions' 0 of linalg.matmul, linalg.matmul, but 192 columns are no 5 heads of whole slots of 16
// OPS: error: illegal plan: names form 'merged contractions' 0 of linalg.generic, but the graph offers form 'merged contractions' 0 of linalg.matmul, linalg.matmul

//--- graph.mlir
func.func @projections(%x: tensor<9x5xf32>) -> (tensor<9x192xf32>, tensor<9x192xf32>) {
  %v = arith.constant dense_resource<v> : tensor<5x192xf32>
  %w = arith.constant dense_resource<w> : tensor<5x192xf32>
  %z = arith.constant dense<0.0> : tensor<9x192xf32>
  %0 = linalg.matmul ins(%x, %v : tensor<9x5xf32>, tensor<5x192xf32>) outs(%z : tensor<9x192xf32>) -> tensor<9x192xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<9x5xf32>, tensor<5x192xf32>) outs(%z : tensor<9x192xf32>) -> tensor<9x192xf32>
  return %0, %1 : tensor<9x192xf32>, tensor<9x192xf32>
}
//--- apart.json
{"kernels": [], "edges": [], "forms": [{"form": "merged contractions", "number": 0, "taken": false}]}
//--- heads.json
{"kernels": [], "edges": [], "forms": [{"form": "merged contractions", "number": 0, "taken": true, "parameters": {"heads": [2], "width": [16]}}]}
//--- odd.json
{"kernels": [], "edges": [], "forms": [{"form": "merged contractions", "number": 0, "taken": true, "parameters": {"heads": [5], "width": [16]}}]}
//--- ops.json
{"kernels": [], "edges": [], "forms": [{"form": "merged contractions", "number": 0, "taken": false, "ops": ["linalg.generic"]}]}
