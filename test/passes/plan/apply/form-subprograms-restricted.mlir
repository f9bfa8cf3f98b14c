// RUN: tilewright-opt %s --tile-form-subprograms='target=x86-64-avx512' | FileCheck %s --check-prefix=FUSED
// RUN: tilewright-opt %s --tile-form-subprograms='target=x86-64-avx512 fuse=false' | FileCheck %s --check-prefix=APART
// RUN: tilewright-opt %s --tile-form-subprograms='target=x86-64-avx512 unfused=1,2 plan-out=%t.json' | FileCheck %s --check-prefix=SOME
// RUN: FileCheck %s --check-prefix=EDGE < %t.json
// RUN: tilewright-opt %s --tile-form-subprograms='target=x86-64-avx512 left=1' | FileCheck %s --check-prefix=LEFT

// After a pass has failed on a kernel, the next plan avoids that kernel: its ops share no kernel, or stay with IREE.

// FUSED-LABEL: func @two_softmaxes_of_one
// FUSED-COUNT-1: tile.subprogram
// FUSED-NOT: tile.subprogram

// APART-LABEL: func @two_softmaxes_of_one
// APART-COUNT-3: tile.subprogram
// APART-NOT: tile.subprogram

// Ops that are not named still fuse: the sum with its operand.
// SOME-LABEL: func @two_softmaxes_of_one
// SOME-COUNT-3: tile.subprogram
// SOME-NOT: tile.subprogram

// EDGE: kept apart, because a pass failed on a kernel that held it

// LEFT-LABEL: func @two_softmaxes_of_one
// LEFT: linalg.tanh
func.func @two_softmaxes_of_one(%x: tensor<37x53xf32>) -> tensor<37x53xf32> {
  %zero = arith.constant dense<0.0> : tensor<37xf32>
  %e = tensor.empty() : tensor<37x53xf32>
  %p = linalg.exp ins(%x : tensor<37x53xf32>) outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  %t = linalg.tanh ins(%p : tensor<37x53xf32>) outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  %s = linalg.sqrt ins(%t : tensor<37x53xf32>) outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  return %s : tensor<37x53xf32>
}
