// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-form-subprograms{target=cuda:h200})' --split-input-file | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-form-subprograms{target=cuda:h200 numerics=strict})' --split-input-file | FileCheck %s --check-prefix=STRICT

// Each layer multiplies what it reads and its state, side by side, by the weights of both: 64 columns in two groups. The
// last layer comes first. What it computes in step 6 is collected in step 7, the last one. With strict numerics the
// sums keep their order, so the products stay apart.
// CHECK-LABEL: func @two_layers
// CHECK: tile.subprogram "move_0"{{.*}} -> tensor<2x128x64xf32>
// CHECK: %[[STEPS:.*]] = arith.constant 7 : index
// CHECK: %[[LOOP:.*]]:2 = scf.for %[[STEP:.*]] = %{{.*}} to %[[STEPS]] {{.*}} -> (tensor<2x1x64xf32>, tensor<5x1x64xf32>)
// CHECK-DAG: %[[READ:.*]] = arith.minsi %[[STEP]]
// CHECK-DAG: tensor.extract_slice %{{.*}}[%[[READ]], 0, 0] [1, 1, 64]
// CHECK-DAG: %[[BEFORE:.*]] = arith.subi %[[STEP]]
// CHECK-DAG: %[[WRITTEN:.*]] = arith.maxsi %[[BEFORE]]
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[%[[WRITTEN]], 0, 0] [1, 1, 64]
// CHECK: tile.one_kernel
// CHECK: return %[[LOOP]]#1
// STRICT-LABEL: func @two_layers
// STRICT: scf.for {{.*}} -> (tensor<2x1x64xf32>, tensor<6x2x1x64xf32>)
func.func @two_layers(%x: tensor<5x1x64xf32>, %w0: tensor<64x64xf32>, %r0: tensor<64x64xf32>, %w1: tensor<64x64xf32>, %r1: tensor<64x64xf32>) -> tensor<5x1x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %h0 = arith.constant dense<0.0> : tensor<1x64xf32>
  %e = tensor.empty() : tensor<5x1x64xf32>
  %es = tensor.empty() : tensor<1x64xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<1x64xf32>) -> tensor<1x64xf32>
  %ef = tensor.empty() : tensor<5x64xf32>
  %ff = linalg.fill ins(%zero : f32) outs(%ef : tensor<5x64xf32>) -> tensor<5x64xf32>
  %flat0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<5x1x64xf32> into tensor<5x64xf32>
  %q0 = linalg.matmul ins(%flat0, %w0 : tensor<5x64xf32>, tensor<64x64xf32>) outs(%ff : tensor<5x64xf32>) -> tensor<5x64xf32>
  %parts0 = tensor.expand_shape %q0 [[0, 1], [2]] output_shape [5, 1, 64] : tensor<5x64xf32> into tensor<5x1x64xf32>
  %a:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %h0, %all = %e) -> (tensor<1x64xf32>, tensor<5x1x64xf32>) {
    %part = tensor.extract_slice %parts0[%i, 0, 0] [1, 1, 64] [1, 1, 1] : tensor<5x1x64xf32> to tensor<1x64xf32>
    %p = linalg.matmul ins(%h, %r0 : tensor<1x64xf32>, tensor<64x64xf32>) outs(%fs : tensor<1x64xf32>) -> tensor<1x64xf32>
    %s = linalg.add ins(%part, %p : tensor<1x64xf32>, tensor<1x64xf32>) outs(%es : tensor<1x64xf32>) -> tensor<1x64xf32>
    %n = linalg.tanh ins(%s : tensor<1x64xf32>) outs(%es : tensor<1x64xf32>) -> tensor<1x64xf32>
    %now = tensor.insert_slice %n into %all[%i, 0, 0] [1, 1, 64] [1, 1, 1] : tensor<1x64xf32> into tensor<5x1x64xf32>
    scf.yield %n, %now : tensor<1x64xf32>, tensor<5x1x64xf32>
  }
  %flat1 = tensor.collapse_shape %a#1 [[0, 1], [2]] : tensor<5x1x64xf32> into tensor<5x64xf32>
  %q1 = linalg.matmul ins(%flat1, %w1 : tensor<5x64xf32>, tensor<64x64xf32>) outs(%ff : tensor<5x64xf32>) -> tensor<5x64xf32>
  %parts1 = tensor.expand_shape %q1 [[0, 1], [2]] output_shape [5, 1, 64] : tensor<5x64xf32> into tensor<5x1x64xf32>
  %b:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %h0, %all = %e) -> (tensor<1x64xf32>, tensor<5x1x64xf32>) {
    %part = tensor.extract_slice %parts1[%i, 0, 0] [1, 1, 64] [1, 1, 1] : tensor<5x1x64xf32> to tensor<1x64xf32>
    %p = linalg.matmul ins(%h, %r1 : tensor<1x64xf32>, tensor<64x64xf32>) outs(%fs : tensor<1x64xf32>) -> tensor<1x64xf32>
    %s = linalg.add ins(%part, %p : tensor<1x64xf32>, tensor<1x64xf32>) outs(%es : tensor<1x64xf32>) -> tensor<1x64xf32>
    %n = linalg.tanh ins(%s : tensor<1x64xf32>) outs(%es : tensor<1x64xf32>) -> tensor<1x64xf32>
    %now = tensor.insert_slice %n into %all[%i, 0, 0] [1, 1, 64] [1, 1, 1] : tensor<1x64xf32> into tensor<5x1x64xf32>
    scf.yield %n, %now : tensor<1x64xf32>, tensor<5x1x64xf32>
  }
  return %b#1 : tensor<5x1x64xf32>
}
