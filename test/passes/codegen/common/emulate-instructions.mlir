// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-emulate-instructions{target=x86-64-v2}))' \
// RUN:   | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-emulate-instructions{target=x86-64-avx2}))' \
// RUN:   | FileCheck %s --check-prefix=HAS
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-emulate-instructions{target=x86-64-avx512bf16}))' \
// RUN:   | FileCheck %s --check-prefix=BF16

// A product in f64 is exact.
// CHECK-LABEL: func.func @fma
// CHECK-COUNT-3: arith.extf %{{.*}} : vector<5xf32> to vector<5xf64>
// CHECK: arith.truncf %{{.*}} : vector<5xf64> to vector<5xf32>
// CHECK-NOT: math.fma
// HAS-LABEL: func.func @fma
// HAS-NEXT: math.fma
func.func @fma(%a: vector<5xf32>, %b: vector<5xf32>, %c: vector<5xf32>) -> vector<5xf32> {
  %0 = math.fma %a, %b, %c : vector<5xf32>
  return %0 : vector<5xf32>
}

// CHECK-LABEL: func.func @widens_half
// CHECK: arith.bitcast %{{.*}} : vector<5xf16> to vector<5xi16>
// CHECK-NOT: arith.extf
// HAS-LABEL: func.func @widens_half
// HAS-NEXT: arith.extf
func.func @widens_half(%a: vector<5xf16>) -> vector<5xf32> {
  %0 = arith.extf %a : vector<5xf16> to vector<5xf32>
  return %0 : vector<5xf32>
}

// CHECK-LABEL: func.func @narrows_a_scalar
// CHECK: arith.bitcast %{{.*}} : i16 to f16
// CHECK-NOT: arith.truncf
// CHECK: return
// HAS-LABEL: func.func @narrows_a_scalar
// HAS-NEXT: arith.truncf
func.func @narrows_a_scalar(%a: f32) -> f16 {
  %0 = arith.truncf %a : f32 to f16
  return %0 : f16
}

// HAS-LABEL: func.func @narrows_to_bf16
// HAS: arith.shrui
// HAS-NOT: arith.truncf
// HAS: return
// BF16-LABEL: func.func @narrows_to_bf16
// BF16-NEXT: %[[T:.*]] = arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
// BF16-NEXT: %[[B:.*]] = arith.bitcast %[[T]] : vector<16xbf16> to vector<16xi16>
// BF16-NEXT: return %[[B]]
func.func @narrows_to_bf16(%a: vector<16xf32>) -> vector<16xbf16> {
  %0 = arith.truncf %a : vector<16xf32> to vector<16xbf16>
  return %0 : vector<16xbf16>
}

// Once its arithmetic has been expanded, bf16 is only moved, as i16.
// HAS-LABEL: func.func @moves_bf16(%arg0: memref<9xi16>, %arg1: memref<9xi16>)
// HAS: %[[ONE:.*]] = arith.constant dense<16256> : vector<4xi16>
// HAS: vector.load {{.*}} : memref<9xi16>, vector<4xi16>
// HAS-NOT: bf16
// HAS: return
func.func @moves_bf16(%a: memref<9xbf16>, %b: memref<9xbf16>) -> vector<4xi16> {
  %i = arith.constant 3 : index
  %one = arith.constant dense<1.0> : vector<4xbf16>
  %v = vector.load %a[%i] : memref<9xbf16>, vector<4xbf16>
  vector.store %one, %b[%i] : memref<9xbf16>, vector<4xbf16>
  %0 = arith.bitcast %v : vector<4xbf16> to vector<4xi16>
  return %0 : vector<4xi16>
}

// A constant is rounded once: 1 + 2^-8 + 2^-40 becomes 1 + 2^-7. Rounded to f32 first, it would become 1.
// HAS-LABEL: func.func @rounds_a_constant_once
// HAS: arith.constant 16257 : i16
// HAS-NOT: truncf
func.func @rounds_a_constant_once() -> i16 {
  %c = arith.constant 1.00390625000090949 : f64
  %t = arith.truncf %c : f64 to bf16
  %0 = arith.bitcast %t : bf16 to i16
  return %0 : i16
}

// f64 is rounded to odd in f32 before it is rounded to f16, so that it is rounded once.
// HAS-LABEL: func.func @narrows_a_double
// HAS: %[[NEAREST:.*]] = arith.truncf %[[X:.*]] : vector<4xf64> to vector<4xf32>
// HAS: arith.cmpf olt
// HAS: arith.cmpf ogt
// HAS: %[[ODD:.*]] = arith.bitcast %{{.*}} : vector<4xi32> to vector<4xf32>
// HAS: arith.truncf %[[ODD]] : vector<4xf32> to vector<4xf16>
func.func @narrows_a_double(%a: vector<4xf64>) -> vector<4xf16> {
  %0 = arith.truncf %a : vector<4xf64> to vector<4xf16>
  return %0 : vector<4xf16>
}

// LLVM would compare what is extended at once in f16, by a call.
// CHECK-LABEL: func.func @widens_to_double
// CHECK: arith.extf %{{.*}} : vector<4xf32> to vector<4xf64>
// CHECK-NOT: vector<4xf16> to vector<4xf64>
// CHECK: return
func.func @widens_to_double(%a: vector<4xf16>) -> vector<4xf64> {
  %0 = arith.extf %a : vector<4xf16> to vector<4xf64>
  return %0 : vector<4xf64>
}

// A kernel that names its own target is compiled for that one.
// CHECK-LABEL: func.func @says_its_own
// CHECK-NEXT: math.fma
func.func @says_its_own(%a: f32) -> f32 attributes {tile.target = "x86-64-avx512"} {
  %0 = math.fma %a, %a, %a : f32
  return %0 : f32
}

// In f64, an FMA becomes a multiplication and an addition.
// CHECK-LABEL: func.func @adds_a_product_in_f64
// CHECK-NEXT: arith.mulf {{.*}} : f64
// CHECK-NEXT: arith.addf {{.*}} : f64
func.func @adds_a_product_in_f64(%a: f64, %b: f64, %c: f64) -> f64 {
  %0 = math.fma %a, %b, %c : f64
  return %0 : f64
}
