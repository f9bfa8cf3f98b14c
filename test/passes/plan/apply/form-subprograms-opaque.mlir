// RUN: tilewright-opt %s --tile-form-subprograms='target=x86-64-avx512 report=%t.report' --allow-unregistered-dialect \
// RUN:   --remarks-filter-missed=tile-form-subprograms --remark-format=emitRemark --verify-diagnostics -o /dev/null
// RUN: FileCheck %s < %t.report

// Ops without a tensor expression stay with IREE, and the report says so. Linalg ops count as not taken; casts and the
// ops by which IREE's dialects pass values on are never launched.
// CHECK: "coverage": {
// CHECK-DAG: "ops_eligible": 2
// CHECK-DAG: "ops_taken": 1
// CHECK: "left_to_iree": [
// CHECK: "bytes": 296
// CHECK-NEXT: "dispatch": true
// CHECK: "op": "linalg.generic"
// CHECK: "reason": "a scalar operand is computed"
// CHECK: "bytes": 296
// CHECK-NEXT: "dispatch": true
// CHECK: "op": "iree_linalg_ext.sort"
// CHECK-NEXT: "operations": 0
// CHECK-NEXT: "reason": "not a tensor expression"
// CHECK-NOT: "op":
func.func @sorted(%x: tensor<37xf32>, %s: f32) -> tensor<?xf32> {
  %e = tensor.empty() : tensor<37xf32>
  %exp = linalg.exp ins(%x : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  // expected-remark @below {{tile: linalg.generic is left to IREE: a scalar operand is computed}}
  %scaled = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%exp, %s : tensor<37xf32>, f32) outs(%e : tensor<37xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<37xf32>
  // expected-remark @below {{tile: iree_linalg_ext.sort is left to IREE: not a tensor expression}}
  %sorted = "iree_linalg_ext.sort"(%scaled) : (tensor<37xf32>) -> tensor<37xf32>
  %handed = "util.optimization_barrier"(%sorted) : (tensor<37xf32>) -> tensor<37xf32>
  %cast = tensor.cast %handed : tensor<37xf32> to tensor<?xf32>
  return %cast : tensor<?xf32>
}
