// A policy that searches requests the choices of forms with which its plan is best.
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-search-forms{target=cuda:h200 policy=exhaustive})' | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-search-forms{target=cuda:h200 policy=greedy})' | FileCheck %s --check-prefix=RULES
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-search-forms{target=cuda:h200 policy=unified plan-seconds=0})' | FileCheck %s --check-prefix=RULES

// The rule leaves the reduction in one phase, because two phases are hardly faster.
// CHECK: func.func @rows
// CHECK-SAME: tile.requested_forms = [#tile.form<form = "two-phase reduction", number = 0, taken = true
// CHECK-SAME: reason = "a search over forms predicts {{.*}} us for the whole plan, and {{.*}} us with the choices of the rules"
// RULES: func.func @rows
// RULES-NOT: tile.requested_forms
func.func @rows(%x: tensor<512x30522xf32>) -> tensor<512xi32> {
  %lowest = arith.constant 0xFF800000 : f32
  %last = arith.constant 2147483647 : i32
  %e = tensor.empty() : tensor<512xf32>
  %i = tensor.empty() : tensor<512xi32>
  %ef = linalg.fill ins(%lowest : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
  %if = linalg.fill ins(%last : i32) outs(%i : tensor<512xi32>) -> tensor<512xi32>
  %max = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<512x30522xf32>) outs(%ef : tensor<512xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.maxnumf %a, %acc : f32
    linalg.yield %r : f32
  } -> tensor<512xf32>
  %first = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
                           iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<512x30522xf32>, tensor<512xf32>) outs(%if : tensor<512xi32>) {
  ^bb0(%a: f32, %m: f32, %acc: i32):
    %same = arith.cmpf oeq, %a, %m : f32
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i32
    %above = arith.cmpf ogt, %a, %lowest : f32
    %both = arith.andi %same, %above : i1
    %own = arith.select %both, %n, %last : i32
    %r = arith.minsi %own, %acc : i32
    linalg.yield %r : i32
  } -> tensor<512xi32>
  return %first : tensor<512xi32>
}
