// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-repeat-launches --split-input-file | FileCheck %s

// A loop over launches of one kernel becomes one launch. The state alternates between two results, of which the second
// step of two writes the first; the part of a sequence that a step reads or writes is an address. Blocks wait for each
// other between two steps, not after the last one.
// CHECK-LABEL: llvm.func @cell_steps
// CHECK-SAME: (%[[X:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64}, %[[W:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64}, %[[H0:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64}, %[[H:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64}, %[[OTHER:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64}, %[[Y:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64})
// CHECK-SAME: tile.outputs = 3 : i64
// CHECK: ^[[STEP:.*]](%[[I:.*]]: i64):
// CHECK: llvm.getelementptr %[[X]][%{{.*}}]
// CHECK: llvm.select %{{.*}}, %[[OTHER]], %[[H]]
// CHECK: llvm.getelementptr %[[Y]][%{{.*}}]
// CHECK: %[[NEXT:.*]] = llvm.add %[[I]]
// CHECK: llvm.icmp "slt" %[[NEXT]]
// CHECK: llvm.call @tile_grid_barrier
// CHECK-NEXT: llvm.br ^[[STEP]](%[[NEXT]] : i64)
// CHECK: llvm.return
// CHECK-NOT: llvm.func @cell(
// CHECK-LABEL: func.func @sequence
// CHECK-NOT: scf.for
// CHECK: %[[ALL:.*]]:3 = tile.launch @tilewright_kernels::@cell_steps(%arg0, %arg1, %arg2)
// CHECK-SAME: (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<2x8xf32>)
// CHECK: return %[[ALL]]#0, %[[ALL]]#2
module {
  module @tilewright_kernels {
    gpu.module @kernels {
      llvm.func @cell(%x: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias}, %w: !llvm.ptr<1> {llvm.noalias}, %h: !llvm.ptr<1> {llvm.noalias}, %n: !llvm.ptr<1>, %y: !llvm.ptr<1>)
          attributes {tile.workgroups = 3 : i64, tile.outputs = 2 : i64, tile.block_bytes = 0 : i64, tile.threads = 32 : i64, tile.grid_sync, tile.resident_blocks = 1 : i64} {
        %v = llvm.load %h : !llvm.ptr<1> -> f32
        llvm.store %v, %n : f32, !llvm.ptr<1>
        llvm.store %v, %y : f32, !llvm.ptr<1>
        llvm.return
      }
    }
  }
  func.func @sequence(%x: tensor<2x8xf32>, %w: tensor<8xf32>, %first: tensor<8xf32>) -> (tensor<8xf32>, tensor<2x8xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %e = tensor.empty() : tensor<2x8xf32>
    %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%h = %first, %y = %e) -> (tensor<8xf32>, tensor<2x8xf32>) {
      %part = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<2x8xf32> to tensor<8xf32>
      %next:2 = tile.launch @tilewright_kernels::@cell(%part, %w, %h)
          : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
      %all = tensor.insert_slice %next#1 into %y[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<2x8xf32>
      scf.yield %next#0, %all : tensor<8xf32>, tensor<2x8xf32>
    } {tile.one_kernel}
    return %r#0, %r#1 : tensor<8xf32>, tensor<2x8xf32>
  }
}

// -----

// A state that is collected as well lies where the step before has written it, and the last one is a part of the
// sequence. One block waits for its own threads.
// CHECK-LABEL: llvm.func @cell_steps
// CHECK: nvvm.barrier0
// CHECK-LABEL: func.func @collected_state
// CHECK: %[[Y:.*]] = tile.launch @tilewright_kernels::@cell_steps(%arg0) : (tensor<8xf32>) -> tensor<5x8xf32>
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[Y]]
// CHECK: %[[LAST:.*]] = tensor.extract_slice %[[FLAT]][32] [8] [1]
// CHECK: return %[[LAST]], %[[Y]]
module {
  module @tilewright_kernels {
    gpu.module @kernels {
      llvm.func @cell(%h: !llvm.ptr<1>, %n: !llvm.ptr<1>)
          attributes {tile.workgroups = 1 : i64, tile.outputs = 1 : i64, tile.block_bytes = 0 : i64, tile.threads = 32 : i64, tile.grid_sync} {
        llvm.return
      }
    }
  }
  func.func @collected_state(%first: tensor<8xf32>) -> (tensor<8xf32>, tensor<5x8xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %e = tensor.empty() : tensor<5x8xf32>
    %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %first, %y = %e) -> (tensor<8xf32>, tensor<5x8xf32>) {
      %next = tile.launch @tilewright_kernels::@cell(%h) : (tensor<8xf32>) -> tensor<8xf32>
      %all = tensor.insert_slice %next into %y[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<5x8xf32>
      scf.yield %next, %all : tensor<8xf32>, tensor<5x8xf32>
    } {tile.one_kernel}
    return %r#0, %r#1 : tensor<8xf32>, tensor<5x8xf32>
  }
}

// -----

// Blocks that may not be resident at once do not wait for each other: the loop stays.
// CHECK-LABEL: func.func @unproved_blocks
// CHECK: scf.for
// CHECK: tile.launch @tilewright_kernels::@cell(
module {
  module @tilewright_kernels {
    gpu.module @kernels {
      llvm.func @cell(%h: !llvm.ptr<1>, %n: !llvm.ptr<1>)
          attributes {tile.workgroups = 999 : i64, tile.outputs = 1 : i64, tile.block_bytes = 0 : i64, tile.threads = 32 : i64} {
        llvm.return
      }
    }
  }
  func.func @unproved_blocks(%first: tensor<8xf32>) -> tensor<8xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %first) -> (tensor<8xf32>) {
      %next = tile.launch @tilewright_kernels::@cell(%h) : (tensor<8xf32>) -> tensor<8xf32>
      scf.yield %next : tensor<8xf32>
    } {tile.one_kernel}
    return %r : tensor<8xf32>
  }
}

// -----

// A slice that moves in some steps only stays where it is in the others: the part of a sequence beyond its end is its
// last one, and a result that begins late is written over until it does.
// CHECK-LABEL: llvm.func @cell_steps
// CHECK-SAME: (%[[X:.*]]: !llvm.ptr<1>, %[[Y:.*]]: !llvm.ptr<1>)
// CHECK-DAG: %[[TO:.*]] = llvm.mlir.constant(1 : i64)
// CHECK-DAG: %[[READ:.*]] = llvm.intr.smin(%{{.*}}, %[[TO]])
// CHECK-DAG: llvm.mul %[[READ]]
// CHECK-DAG: %[[FROM:.*]] = llvm.mlir.constant(2 : i64)
// CHECK-DAG: %[[WRITTEN:.*]] = llvm.intr.smax(%{{.*}}, %[[FROM]])
// CHECK-DAG: llvm.mul %[[WRITTEN]]
// CHECK-LABEL: func.func @late
// CHECK: tile.launch @tilewright_kernels::@cell_steps(%arg0) : (tensor<2x8xf32>) -> tensor<2x8xf32>
module {
  module @tilewright_kernels {
    gpu.module @kernels {
      llvm.func @cell(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
          attributes {tile.workgroups = 1 : i64, tile.outputs = 1 : i64, tile.block_bytes = 0 : i64, tile.threads = 32 : i64, tile.grid_sync} {
        llvm.return
      }
    }
  }
  func.func @late(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %e = tensor.empty() : tensor<2x8xf32>
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%y = %e) -> tensor<2x8xf32> {
      %read = arith.minsi %i, %c1 : index
      %behind = arith.subi %i, %c2 : index
      %written = arith.maxsi %behind, %c0 : index
      %part = tensor.extract_slice %x[%read, 0] [1, 8] [1, 1] : tensor<2x8xf32> to tensor<8xf32>
      %next = tile.launch @tilewright_kernels::@cell(%part) : (tensor<8xf32>) -> tensor<8xf32>
      %all = tensor.insert_slice %next into %y[%written, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<2x8xf32>
      scf.yield %all : tensor<2x8xf32>
    } {tile.one_kernel}
    return %r : tensor<2x8xf32>
  }
}
