// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tilewright-cpu-normalize{at-normalized=func.func(cse),canonicalize})' \
// RUN:   | FileCheck %s
// RUN: not tilewright-opt %s --pass-pipeline='builtin.module(tilewright-cpu-normalize{at-normalized=no-pass})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REFUSED

// Passes that the caller names for a stage run at its end, in order.
// CHECK-LABEL: func.func @computes_once
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
func.func @computes_once(%x: tensor<5x7xf32>) -> (f32, f32) {
  %i = arith.constant 3 : index
  %a = tensor.extract %x[%i, %i] : tensor<5x7xf32>
  %b = math.exp %a : f32
  %c = math.exp %a : f32
  return %b, %c : f32, f32
}

// Text that is no pipeline fails with the reason.
// REFUSED: error: the passes 'no-pass' of a stage are no pipeline: {{.*}}'no-pass' does not refer to a registered pass
