// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(tile-form-subprograms{target=x86-64-avx512 cores=2})' --split-input-file | FileCheck %s

// The body of a loop is planned like any graph: its ops become a kernel, which the loop launches in every step. A slice
// at an offset that depends on the step stays outside the kernel.
// CHECK-LABEL: func @body_becomes_a_kernel
// CHECK: scf.for %[[STEP:.*]] = {{.*}} iter_args(%[[H:.*]] = %{{.*}}) -> (tensor<37xf32>)
// CHECK:   %[[PART:.*]] = tensor.extract_slice %arg0[%[[STEP]], 0] [1, 37] [1, 1]
// CHECK:   %[[NEXT:.*]] = tile.subprogram {{.*}}(%[[PART]], %[[H]]) extents [37]
// CHECK:   scf.yield %[[NEXT]]
func.func @body_becomes_a_kernel(%x: tensor<5x37xf32>, %h0: tensor<37xf32>) -> tensor<37xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %e = tensor.empty() : tensor<37xf32>
  %last = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %h0) -> (tensor<37xf32>) {
    %part = tensor.extract_slice %x[%i, 0] [1, 37] [1, 1] : tensor<5x37xf32> to tensor<37xf32>
    %sum = linalg.add ins(%part, %h : tensor<37xf32>, tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
    %next = linalg.tanh ins(%sum : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
    scf.yield %next : tensor<37xf32>
  }
  return %last : tensor<37xf32>
}

// -----

// A body reads what a kernel outside the loop computes, and both blocks of a while loop are planned.
// CHECK-LABEL: func @both_blocks_of_a_while_loop
// CHECK: %[[OUTSIDE:.*]] = tile.subprogram {{.*}}(%arg0)
// CHECK: scf.while
// CHECK:   %[[SUM:.*]] = tile.subprogram
// CHECK:   tensor.extract %[[SUM]]
// CHECK: } do {
// CHECK:   tile.subprogram {{.*}}%[[OUTSIDE]]
// CHECK:   scf.yield
func.func @both_blocks_of_a_while_loop(%x: tensor<37x53xf32>) -> tensor<37x53xf32> {
  %c0 = arith.constant 0 : index
  %limit = arith.constant 3.0 : f32
  %zero = arith.constant dense<0.0> : tensor<1xf32>
  %e = tensor.empty() : tensor<37x53xf32>
  %y = linalg.exp ins(%x : tensor<37x53xf32>) outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  %last = scf.while (%h = %x) : (tensor<37x53xf32>) -> tensor<37x53xf32> {
    %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (0)>],
                           iterator_types = ["reduction", "reduction"]}
        ins(%h : tensor<37x53xf32>) outs(%zero : tensor<1xf32>) {
    ^bb0(%in: f32, %acc: f32):
      %r = arith.addf %in, %acc : f32
      linalg.yield %r : f32
    } -> tensor<1xf32>
    %value = tensor.extract %sum[%c0] : tensor<1xf32>
    %goes_on = arith.cmpf olt, %value, %limit : f32
    scf.condition(%goes_on) %h : tensor<37x53xf32>
  } do {
  ^bb0(%h: tensor<37x53xf32>):
    %next = linalg.add ins(%h, %y : tensor<37x53xf32>, tensor<37x53xf32>)
                       outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
    scf.yield %next : tensor<37x53xf32>
  }
  return %last : tensor<37x53xf32>
}

// -----

// The body of a branch is left alone.
// CHECK-LABEL: func @branch_is_left
// CHECK: scf.if
// CHECK-NOT: tile.subprogram
// CHECK: return
func.func @branch_is_left(%x: tensor<37xf32>, %c: i1) -> tensor<37xf32> {
  %e = tensor.empty() : tensor<37xf32>
  %y = scf.if %c -> (tensor<37xf32>) {
    %a = linalg.exp ins(%x : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
    scf.yield %a : tensor<37xf32>
  } else {
    scf.yield %x : tensor<37xf32>
  }
  return %y : tensor<37xf32>
}

// -----

// One kernel reads the result of a loop and makes the input of an earlier one. Loops are free to change places, before
// their bodies are carried out and after.
// CHECK-LABEL: func @loops_change_places
// CHECK-SAME: (%[[X:.*]]: tensor<37xf32>, %[[Y:.*]]: tensor<37xf32>)
// CHECK: %[[LATER:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[Y]])
// CHECK: tile.subprogram "[[KERNEL:.*]]"(%[[X]]) extents
// CHECK: tile.subprogram "[[KERNEL]]"(%[[LATER]]) extents
// CHECK: scf.for
func.func @loops_change_places(%x: tensor<37xf32>, %y: tensor<37xf32>) -> (tensor<37xf32>, tensor<37xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %e = tensor.empty() : tensor<37xf32>
  %first = linalg.exp ins(%x : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %earlier = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %first) -> (tensor<37xf32>) {
    %next = linalg.tanh ins(%h : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
    scf.yield %next : tensor<37xf32>
  }
  %later = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %y) -> (tensor<37xf32>) {
    %next = linalg.tanh ins(%h : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
    scf.yield %next : tensor<37xf32>
  }
  %last = linalg.exp ins(%later : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  return %earlier, %last : tensor<37xf32>, tensor<37xf32>
}
