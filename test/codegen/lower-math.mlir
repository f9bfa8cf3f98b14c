// RUN: tilewright-opt %s --tile-lower-math --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @exp_without_libm
// CHECK-NOT: math.exp
// CHECK: math.fma
func.func @exp_without_libm(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}

// -----

// Fused with the sum, tanh is an exponential; as it stands, or with another use, it is not.
// CHECK-LABEL: func.func @one_plus_tanh
// CHECK: arith.divf
// CHECK-NOT: math.copysign
// CHECK-LABEL: func.func @tanh_and_its_sum
// CHECK: math.copysign
func.func @one_plus_tanh(%x: vector<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %y = math.tanh %x fastmath<afn> : vector<16xf32>
  %z = arith.addf %y, %one : vector<16xf32>
  return %z : vector<16xf32>
}
func.func @tanh_and_its_sum(%x: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>) {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %y = math.tanh %x fastmath<afn> : vector<16xf32>
  %z = arith.addf %y, %one : vector<16xf32>
  return %y, %z : vector<16xf32>, vector<16xf32>
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
