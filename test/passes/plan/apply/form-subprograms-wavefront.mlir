// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-form-subprograms{target=cuda:h200})' --split-input-file | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-form-subprograms{target=cuda:h200 grid-sync=false})' --split-input-file | FileCheck %s --check-prefix=APART

// The second layer reads the sequence of the first one, so both make their steps at once: the second its step i - 1 in
// step i. The state of each is multiplied by its own weights and by those between the layers, which are side by side.
// Without barriers between blocks, layers run one after another.
// CHECK: #[[$LAST:.*]] = affine_map<(d0, d1) -> (d0 + 1, 1, 0, d1)>
// CHECK-LABEL: func @two_layers
// CHECK-DAG: arith.constant dense<{{\[\[}}1.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], [1.000000e+00, 1.000000e+00{{.*}} : tensor<6x4xf32>
// CHECK: tile.subprogram "move_0"{{.*}} extents [2, 8, 16]
// CHECK: %[[WAVES:.*]] = arith.constant 6 : index
// CHECK: %[[LOOP:.*]]:2 = scf.for %[[STEP:.*]] = %{{.*}} to %[[WAVES]] {{.*}} -> (tensor<2x1x8xf32>, tensor<6x2x1x8xf32>)
// CHECK:   tile.subprogram
// CHECK-NOT: tile.subprogram
// CHECK:   tensor.insert_slice %{{.*}} into %{{.*}}[%[[STEP]], 0, 0, 0] [1, 2, 1, 8]
// CHECK-NOT: scf.for
// The sequence of the last layer begins with its first step.
// CHECK: tile.subprogram "move_1"(%[[LOOP]]#1) extents [5, 8]
// CHECK: tile.expr {{.*}} maps [#[[$LAST]]]
// APART-LABEL: func @two_layers
// APART: scf.for
// APART: scf.for
func.func @two_layers(%parts: tensor<5x1x8xf32>, %r0: tensor<8x8xf32>, %w1: tensor<8x8xf32>, %r1: tensor<8x8xf32>) -> tensor<5x1x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %h0 = arith.constant dense<0.0> : tensor<1x8xf32>
  %e = tensor.empty() : tensor<5x1x8xf32>
  %es = tensor.empty() : tensor<1x8xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<1x8xf32>) -> tensor<1x8xf32>
  %a:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %h0, %all = %e) -> (tensor<1x8xf32>, tensor<5x1x8xf32>) {
    %part = tensor.extract_slice %parts[%i, 0, 0] [1, 1, 8] [1, 1, 1] : tensor<5x1x8xf32> to tensor<1x8xf32>
    %p = linalg.matmul ins(%h, %r0 : tensor<1x8xf32>, tensor<8x8xf32>) outs(%fs : tensor<1x8xf32>) -> tensor<1x8xf32>
    %s = linalg.add ins(%part, %p : tensor<1x8xf32>, tensor<1x8xf32>) outs(%es : tensor<1x8xf32>) -> tensor<1x8xf32>
    %n = linalg.tanh ins(%s : tensor<1x8xf32>) outs(%es : tensor<1x8xf32>) -> tensor<1x8xf32>
    %now = tensor.insert_slice %n into %all[%i, 0, 0] [1, 1, 8] [1, 1, 1] : tensor<1x8xf32> into tensor<5x1x8xf32>
    scf.yield %n, %now : tensor<1x8xf32>, tensor<5x1x8xf32>
  }
  %flat = tensor.collapse_shape %a#1 [[0, 1], [2]] : tensor<5x1x8xf32> into tensor<5x8xf32>
  %ef = tensor.empty() : tensor<5x8xf32>
  %ff = linalg.fill ins(%zero : f32) outs(%ef : tensor<5x8xf32>) -> tensor<5x8xf32>
  %q = linalg.matmul ins(%flat, %w1 : tensor<5x8xf32>, tensor<8x8xf32>) outs(%ff : tensor<5x8xf32>) -> tensor<5x8xf32>
  %parts1 = tensor.expand_shape %q [[0, 1], [2]] output_shape [5, 1, 8] : tensor<5x8xf32> into tensor<5x1x8xf32>
  %b:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %h0, %all = %e) -> (tensor<1x8xf32>, tensor<5x1x8xf32>) {
    %part = tensor.extract_slice %parts1[%i, 0, 0] [1, 1, 8] [1, 1, 1] : tensor<5x1x8xf32> to tensor<1x8xf32>
    %p = linalg.matmul ins(%h, %r1 : tensor<1x8xf32>, tensor<8x8xf32>) outs(%fs : tensor<1x8xf32>) -> tensor<1x8xf32>
    %s = linalg.add ins(%part, %p : tensor<1x8xf32>, tensor<1x8xf32>) outs(%es : tensor<1x8xf32>) -> tensor<1x8xf32>
    %n = linalg.tanh ins(%s : tensor<1x8xf32>) outs(%es : tensor<1x8xf32>) -> tensor<1x8xf32>
    %now = tensor.insert_slice %n into %all[%i, 0, 0] [1, 1, 8] [1, 1, 1] : tensor<1x8xf32> into tensor<5x1x8xf32>
    scf.yield %n, %now : tensor<1x8xf32>, tensor<5x1x8xf32>
  }
  return %b#1 : tensor<5x1x8xf32>
}

// -----

// A layer that begins with the last state of the one before can only begin when that has ended.
// CHECK-LABEL: func @begins_with_the_last_state
// CHECK: scf.for {{.*}} -> (tensor<1x8xf32>, tensor<5x1x8xf32>)
// CHECK: scf.for {{.*}} -> (tensor<1x8xf32>, tensor<5x1x8xf32>)
// APART-LABEL: func @begins_with_the_last_state
func.func @begins_with_the_last_state(%parts: tensor<5x1x8xf32>, %w: tensor<1x8xf32>) -> tensor<5x1x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %h0 = arith.constant dense<0.0> : tensor<1x8xf32>
  %e = tensor.empty() : tensor<5x1x8xf32>
  %es = tensor.empty() : tensor<1x8xf32>
  %a:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %h0, %all = %e) -> (tensor<1x8xf32>, tensor<5x1x8xf32>) {
    %part = tensor.extract_slice %parts[%i, 0, 0] [1, 1, 8] [1, 1, 1] : tensor<5x1x8xf32> to tensor<1x8xf32>
    %n = linalg.mul ins(%part, %h : tensor<1x8xf32>, tensor<1x8xf32>) outs(%es : tensor<1x8xf32>) -> tensor<1x8xf32>
    %now = tensor.insert_slice %n into %all[%i, 0, 0] [1, 1, 8] [1, 1, 1] : tensor<1x8xf32> into tensor<5x1x8xf32>
    scf.yield %n, %now : tensor<1x8xf32>, tensor<5x1x8xf32>
  }
  %parts1 = linalg.exp ins(%a#1 : tensor<5x1x8xf32>) outs(%e : tensor<5x1x8xf32>) -> tensor<5x1x8xf32>
  %b:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %a#0, %all = %e) -> (tensor<1x8xf32>, tensor<5x1x8xf32>) {
    %part = tensor.extract_slice %parts1[%i, 0, 0] [1, 1, 8] [1, 1, 1] : tensor<5x1x8xf32> to tensor<1x8xf32>
    %n = linalg.mul ins(%part, %h : tensor<1x8xf32>, tensor<1x8xf32>) outs(%es : tensor<1x8xf32>) -> tensor<1x8xf32>
    %now = tensor.insert_slice %n into %all[%i, 0, 0] [1, 1, 8] [1, 1, 1] : tensor<1x8xf32> into tensor<5x1x8xf32>
    scf.yield %n, %now : tensor<1x8xf32>, tensor<5x1x8xf32>
  }
  return %b#1 : tensor<5x1x8xf32>
}
