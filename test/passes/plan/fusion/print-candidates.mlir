// RUN: tilewright-opt %s --split-input-file -o %t.after \
// RUN:   --pass-pipeline='builtin.module(tile-print-candidates{target=x86-64-avx512 cores=2 count=8})' | FileCheck %s
// RUN: FileCheck %s --check-prefix=AFTER < %t.after

// A mean subtracted from its rows: the planner's own tiles first, then others in one kernel, and finally two kernels
// with an edge of scope launch between them.
// CHECK: "scope": "block"
// CHECK: "name": "reduce_addf_subf_0"
// CHECK: "tiles": [
// CHECK-NEXT: [[OWN:[0-9]+]],
// CHECK-NEXT: 53
// CHECK: "tiles": [
// CHECK-NOT: {{^ +}}[[OWN]],
// CHECK: {{^ +}}53
// CHECK: "scope": "launch"
// CHECK: "name": "reduce_addf_0"
// CHECK: "name": "subf_0"

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

// -----

// Two halves that share nothing do not make a kernel, so there is no choice.
// CHECK: {{^}}[]
func.func @apart(%x: tensor<37xf32>, %y: tensor<41xf32>) -> (tensor<37xf32>, tensor<41xf32>) {
  %e = tensor.empty() : tensor<37xf32>
  %f = tensor.empty() : tensor<41xf32>
  %a = linalg.exp ins(%x : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %b = linalg.exp ins(%y : tensor<41xf32>) outs(%f : tensor<41xf32>) -> tensor<41xf32>
  return %a, %b : tensor<37xf32>, tensor<41xf32>
}

// -----

// IREE would launch one dispatch, which is no cut, so the cut that is predicted to be the fastest comes first: that at
// the bytes, which are a quarter of the floats.
// CHECK: "scope": "launch"
// CHECK: "name": "fptosi_0"
// CHECK: "name": "exp_sitofp_0"
#id = affine_map<(i) -> (i)>
func.func @fastest_cut_comes_first(%x: tensor<370001xf32>) -> tensor<370001xf32> {
  %f = tensor.empty() : tensor<370001xf32>
  %b = tensor.empty() : tensor<370001xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<370001xf32>) outs(%b : tensor<370001xi8>) {
  ^bb0(%u: f32, %o: i8):
    %v = arith.fptosi %u : f32 to i8
    linalg.yield %v : i8
  } -> tensor<370001xi8>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%q : tensor<370001xi8>) outs(%f : tensor<370001xf32>) {
  ^bb0(%u: i8, %o: f32):
    %v = arith.sitofp %u : i8 to f32
    linalg.yield %v : f32
  } -> tensor<370001xf32>
  %y = linalg.exp ins(%w : tensor<370001xf32>) outs(%f : tensor<370001xf32>) -> tensor<370001xf32>
  return %y : tensor<370001xf32>
}
