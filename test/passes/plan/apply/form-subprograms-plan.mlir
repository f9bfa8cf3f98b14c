// RUN: tilewright-opt %s --tile-form-subprograms='target=x86-64-avx512 plan-in=%S/Inputs/two-kernels.json plan-out=%t.json' | FileCheck %s
// RUN: FileCheck %s --check-prefix=OUT < %t.json
// RUN: tilewright-opt %s --tile-form-subprograms='target=x86-64-avx512 plan-in=%t.json' | FileCheck %s
// RUN: tilewright-opt %s --tile-form-subprograms='target=x86-64-avx512 report=%t.report' -o %t.mlir
// RUN: FileCheck %s --check-prefix=REPORT < %t.report

// A plan written by hand is applied unchanged, although the planner would make one kernel of this, and is written out
// identically.
// CHECK-LABEL: func @center
// CHECK: %[[S:.*]] = tile.subprogram "first"(%arg0) extents [37, 53] tiles [5, 53] grid [0] vector 1 workgroups 2
// CHECK: tile.subprogram "second"(%[[S]], %arg0) extents [37, 53] tiles [37, 16] grid [1] vector 1 workgroups 1
// CHECK: tile.connect {{.*}} <thread> recompute

// OUT: "grid": [
// OUT-NEXT: 0
// OUT: "name": "first"
// OUT: "name": "second"
// OUT: "policy": "by hand"

// The planner's own plan for this graph, as a report.
// REPORT: "coverage": {
// REPORT-DAG: "ops_eligible": 3
// REPORT-DAG: "ops_taken": 3
// REPORT: "edges_at_launch": []
// REPORT: "kernels": [
// REPORT: "reason": "a reduction: later nests read the finished tile"
// REPORT: "name": "reduce_addf_subf_0"
// REPORT: "left_to_iree": []
func.func @center(%x: tensor<37x53xf32>) -> tensor<37x53xf32> {
  %zero = arith.constant dense<0.0> : tensor<37xf32>
  %e = tensor.empty() : tensor<37x53xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<37x53xf32>) outs(%zero : tensor<37xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<37xf32>) outs(%e : tensor<37x53xf32>) dimensions = [1]
  %y = linalg.sub ins(%x, %sb : tensor<37x53xf32>, tensor<37x53xf32>)
                  outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  return %y : tensor<37x53xf32>
}
