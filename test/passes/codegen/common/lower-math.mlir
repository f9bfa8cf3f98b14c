// RUN: tilewright-opt %s --tile-lower-math --split-input-file --verify-diagnostics | FileCheck %s
// RUN: tilewright-opt %s --tile-lower-math=target=sm_80 --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=GPU

// CHECK-LABEL: func.func @exp_without_libm
// CHECK-NOT: math.exp
// CHECK: math.fma
func.func @exp_without_libm(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}

// -----

// GPUs have an instruction for it, which is used where numerics allow its error, in fused functions, too.
// CHECK-LABEL: func.func @fast_exp
// CHECK: math.fma
// GPU-LABEL: func.func @fast_exp
// GPU: %[[T:.*]] = arith.mulf %{{.*}} : vector<2xf32>
// GPU: %[[FIRST:.*]] = vector.extract %[[T]][0]
// GPU: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[FIRST]]) : (f32) -> f32
// GPU: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// GPU: vector.from_elements
// GPU-NOT: math.fma
func.func @fast_exp(%x: vector<2xf32>) -> vector<2xf32> {
  %y = math.exp %x fastmath<afn> : vector<2xf32>
  return %y : vector<2xf32>
}

// GPU-LABEL: func.func @fast_silu
// GPU: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"
// GPU-NOT: math.fma
// GPU: arith.divf
func.func @fast_silu(%x: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %n = arith.negf %x : f32
  %e = math.exp %n fastmath<afn> : f32
  %s = arith.addf %e, %one : f32
  %q = arith.divf %one, %s fastmath<arcp> : f32
  %y = arith.mulf %x, %q : f32
  return %y : f32
}

// GPU-LABEL: func.func @strict_exp
// GPU: math.fma
func.func @strict_exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

// -----

// A result that is rounded to bf16 needs two coefficients fewer, and no second constant for ln 2.
// CHECK-LABEL: func.func @exp_for_bf16
// CHECK-COUNT-5: math.fma
// CHECK-NOT: math.fma
// CHECK: return
func.func @exp_for_bf16(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x {tile.for_bf16} : vector<16xf32>
  return %y : vector<16xf32>
}

// -----

// tanh becomes an exponential if the addition that reads it can absorb it; alone, or with another use, it does not.
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

// The factor of 1 + tanh x becomes a dividend; the exponential absorbs the factor 1/2 and that of tanh's argument.
// CHECK-LABEL: func.func @gelu
// CHECK-SAME: (%[[X:[a-z0-9]*]]: vector<16xf32>, %[[U:[a-z0-9]*]]: vector<16xf32>)
// CHECK-DAG: %[[MINUS:.*]] = arith.constant dense<-1.500000e+00>
// CHECK: arith.mulf %[[U]], %[[MINUS]]
// CHECK-NOT: arith.mulf %[[X]]
// CHECK: %[[R:.*]] = arith.divf %[[X]], %{{.*}}
// CHECK-NEXT: return %[[R]]
func.func @gelu(%x: vector<16xf32>, %u: vector<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %half = arith.constant dense<0.5> : vector<16xf32>
  %scale = arith.constant dense<0.75> : vector<16xf32>
  %v = arith.mulf %u, %scale : vector<16xf32>
  %y = math.tanh %v fastmath<afn> : vector<16xf32>
  %z = arith.addf %y, %one : vector<16xf32>
  %h = arith.mulf %x, %half : vector<16xf32>
  %g = arith.mulf %h, %z : vector<16xf32>
  return %g : vector<16xf32>
}

// -----

// A factor that might overflow is not doubled; the denominator is halved. A constant that would overflow is not folded.
// CHECK-LABEL: func.func @large_factors
// CHECK-SAME: (%[[X:[a-z0-9]*]]: vector<16xf32>, %[[U:[a-z0-9]*]]: vector<16xf32>)
// CHECK-NOT: 0x7F800000
// CHECK-NOT: 0xFF800000
// CHECK: %[[H:.*]] = arith.mulf %[[X]], %{{.*}} : vector<16xf32>
// CHECK: %[[R:.*]] = arith.divf %[[H]], %{{.*}}
// CHECK-NEXT: return %[[R]]
func.func @large_factors(%x: vector<16xf32>, %u: vector<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %large = arith.constant dense<3.0e38> : vector<16xf32>
  %v = arith.mulf %u, %large : vector<16xf32>
  %y = math.tanh %v fastmath<afn> : vector<16xf32>
  %z = arith.addf %y, %one : vector<16xf32>
  %h = arith.mulf %x, %large : vector<16xf32>
  %g = arith.mulf %h, %z : vector<16xf32>
  return %g : vector<16xf32>
}

// -----

// With fused functions, a product with a sigmoid becomes a quotient; a sigmoid with other readers stays a sigmoid.
// CHECK-LABEL: func.func @silu
// CHECK-SAME: (%[[X:[a-z0-9]*]]: vector<16xf32>
// CHECK: arith.divf %[[X]], %{{.*}}
// CHECK-NEXT: return
// CHECK-LABEL: func.func @strict_silu
// CHECK: arith.divf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: return
// CHECK-LABEL: func.func @silu_and_sigmoid
// CHECK: arith.divf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: return
func.func @silu(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %e = math.exp %y fastmath<afn> : vector<16xf32>
  %d = arith.addf %e, %one : vector<16xf32>
  %s = arith.divf %one, %d : vector<16xf32>
  %r = arith.mulf %s, %x : vector<16xf32>
  return %r : vector<16xf32>
}
func.func @strict_silu(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %e = math.exp %y : vector<16xf32>
  %d = arith.addf %e, %one : vector<16xf32>
  %s = arith.divf %one, %d : vector<16xf32>
  %r = arith.mulf %s, %x : vector<16xf32>
  return %r : vector<16xf32>
}
func.func @silu_and_sigmoid(%x: vector<16xf32>, %y: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>) {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %e = math.exp %y fastmath<afn> : vector<16xf32>
  %d = arith.addf %e, %one : vector<16xf32>
  %s = arith.divf %one, %d : vector<16xf32>
  %r = arith.mulf %s, %x : vector<16xf32>
  return %r, %s : vector<16xf32>, vector<16xf32>
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

// The value is rounded to nearest directly; adding one half would round a second time.
// CHECK-LABEL: func.func @rounds_halves_away_from_zero
// CHECK: %[[T:.*]] = math.trunc %arg0
// CHECK: %[[R:.*]] = arith.subf %arg0, %[[T]]
// CHECK: %[[A:.*]] = math.absf %[[R]]
// CHECK: %[[H:.*]] = arith.cmpf oge, %[[A]]
// CHECK: arith.select %[[H]], %{{.*}}, %[[T]] : vector<8xi1>, vector<8xf64>
func.func @rounds_halves_away_from_zero(%x: vector<8xf64>) -> vector<8xf64> {
  %y = math.round %x : vector<8xf64>
  return %y : vector<8xf64>
}

// -----

func.func @f64_exp_has_no_expansion(%x: f64) -> f64 {
  // expected-error @+1 {{has no expansion without libm; leave the op that contains it out of the plan}}
  %y = math.exp %x : f64
  return %y : f64
}

// -----

// Bytes of 128 and more are poison to the signed conversion, although front ends also use it for unsigned bytes.
// CHECK-LABEL: func @unsigned_by_the_signed_conversion
// CHECK: %[[WORD:.*]] = arith.fptosi %{{.*}} : vector<8xf32> to vector<8xi32>
// CHECK: %[[BYTE:.*]] = arith.trunci %[[WORD]] : vector<8xi32> to vector<8xi8>
// CHECK: return %[[BYTE]]
func.func @unsigned_by_the_signed_conversion(%x: vector<8xf32>) -> vector<8xi8> {
  %y = arith.fptosi %x : vector<8xf32> to vector<8xi8>
  return %y : vector<8xi8>
}
