// RUN: tilewright-opt %s --tile-lower-math --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @exp_without_libm
// CHECK-NOT: math.exp
// CHECK: math.fma
func.func @exp_without_libm(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}

// -----

// CHECK-LABEL: func.func @keeps_instructions
// CHECK: math.sqrt
// CHECK: math.floor
func.func @keeps_instructions(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.sqrt %x : vector<16xf32>
  %z = math.floor %y : vector<16xf32>
  return %z : vector<16xf32>
}

// -----

func.func @f64_exp_has_no_expansion(%x: f64) -> f64 {
  // expected-error @+1 {{has no expansion without libm; leave the op that contains it out of the plan}}
  %y = math.exp %x : f64
  return %y : f64
}
