// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-allocate-buffers,tile-insert-syncs),tile-convert-to-gpu{target=sm_80},canonicalize,cse)' --split-input-file | FileCheck %s

#rows = affine_map<(m, n, k)[s0] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0] -> (k, n)>
#held = affine_map<(m, n, k)[s0] -> (m - s0, k)>
#acc = affine_map<(m, n, k)[s0] -> (m - s0, n)>
#out = affine_map<(m, n, k)[s0] -> (m, n)>

// The second contraction reads the result of the first, but its weights exist before the kernel starts: their first
// steps are copied while the last steps of the first contraction are multiplied, to stages of their own.
// CHECK-LABEL: func.func @weights_of_the_next
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<64x192xf16, 1>
// CHECK-SAME: %[[FIRST:[a-z0-9]+]]: memref<192x32xf16, 1>
// CHECK-SAME: %[[SECOND:[a-z0-9]+]]: memref<32x64xf16, 1>
// CHECK: scf.for
// CHECK:   nvvm.cp.async.wait.group 1
// CHECK:   scf.if
// CHECK:     nvvm.cp.async.shared.global
// CHECK:   } else {
// CHECK:     builtin.unrealized_conversion_cast %[[SECOND]]
// CHECK:     nvvm.cp.async.shared.global
// CHECK:   nvvm.cp.async.commit.group
// CHECK:   nvvm.mma.sync
// CHECK-NOT: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.wait.group 1
// CHECK: nvvm.mma.sync
tile.program @weights_of_the_next outputs 1 {
^bb0(%x: !tile.slice<64x192xf16, global>, %a: !tile.slice<192x32xf16, global>, %b: !tile.slice<32x64xf16, global>,
     %y: !tile.slice<64x64xf32, global>):
  tile.parallel [64] tiles [32] workgroups 2 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %t = tile.alloc : !tile.slice<32x32xf16, block>
    tile.compute [64, 32, 192] sizes [32, 32, 192] offsets [0] (%i) vector 1 reduce [2]
        into (%t : !tile.slice<32x32xf16, block>) at [#acc] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 64, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %x at #rows : !tile.slice<64x192xf16, global> -> f16
      %v = tile.load %a at #lanes : !tile.slice<192x32xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
    tile.compute [64, 64, 32] sizes [32, 64, 32] offsets [0] (%i) vector 1 reduce [2]
        into (%y : !tile.slice<64x64xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 32, stages = 3, prefetch = rhs>} {
    ^bb0(%s: f32):
      %u = tile.load %t at #held : !tile.slice<32x32xf16, block> -> f16
      %v = tile.load %b at #lanes : !tile.slice<32x64xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0] -> (k, n)>
#out = affine_map<(m, n, k)[s0] -> (m, n)>

// Behind a grid barrier, the rows come from other blocks, and their copies wait; those of the weights do not. The
// second tile of a block copies its weights itself.
// CHECK-LABEL: func.func @weights_before_the_barrier
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<64x192xf16, 1>
// CHECK-SAME: %[[FIRST:[a-z0-9]+]]: memref<192x32xf16, 1>
// CHECK-SAME: %[[SECOND:[a-z0-9]+]]: memref<32x64xf16, 1>
// CHECK: nvvm.mma.sync
// CHECK: nvvm.barrier0
// CHECK: builtin.unrealized_conversion_cast %[[SECOND]]
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16
// CHECK: nvvm.cp.async.commit.group
// CHECK: llvm.call @tile_grid_barrier
// CHECK: scf.for
// CHECK:   scf.if
// CHECK:     nvvm.cp.async.shared.global {{.*}}, 16
// CHECK:   nvvm.cp.async.wait.group 1
// CHECK:   nvvm.mma.sync
tile.program @weights_before_the_barrier outputs 2 {
^bb0(%x: !tile.slice<64x192xf16, global>, %a: !tile.slice<192x32xf16, global>, %b: !tile.slice<32x64xf16, global>,
     %t: !tile.slice<64x32xf16, global>, %y: !tile.slice<64x64xf32, global>):
  tile.parallel [64] tiles [32] workgroups 2 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64, 32, 192] sizes [32, 32, 192] offsets [0] (%i) vector 1 reduce [2]
        into (%t : !tile.slice<64x32xf16, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 64, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %x at #rows : !tile.slice<64x192xf16, global> -> f16
      %v = tile.load %a at #lanes : !tile.slice<192x32xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
  tile.sync <grid>
  tile.parallel [64] tiles [16] workgroups 2 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64, 64, 32] sizes [16, 64, 32] offsets [0] (%i) vector 1 reduce [2]
        into (%y : !tile.slice<64x64xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 32, stages = 3, prefetch = rhs>} {
    ^bb0(%s: f32):
      %u = tile.load %t at #rows : !tile.slice<64x32xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<32x64xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0] -> (k, n)>
#held = affine_map<(m, n, k)[s0] -> (m - s0, k)>
#acc = affine_map<(m, n, k)[s0] -> (m - s0, n)>
#out = affine_map<(m, n, k)[s0] -> (m, n)>

// The first contraction has one step, and two iterations that copy, which prefetch the first two steps of the second.
// The second copies its third step itself, before its own loop.
// CHECK-LABEL: func.func @few_steps_before
// CHECK-SAME: %[[SECOND:[a-z0-9]+]]: memref<256x64xf16, 1>
// CHECK: nvvm.cp.async.commit.group
// CHECK-NOT: nvvm.cp.async.wait.group
// CHECK: builtin.unrealized_conversion_cast %[[SECOND]]
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK-NOT: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 1
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.mma.sync
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK-NOT: nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK:   nvvm.cp.async.wait.group 2
// CHECK:   nvvm.mma.sync
tile.program @few_steps_before outputs 1 {
^bb0(%x: !tile.slice<64x32xf16, global>, %a: !tile.slice<32x256xf16, global>, %b: !tile.slice<256x64xf16, global>,
     %y: !tile.slice<64x64xf32, global>):
  tile.parallel [64] tiles [32] workgroups 2 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %t = tile.alloc : !tile.slice<32x256xf16, block>
    tile.compute [64, 256, 32] sizes [32, 256, 32] offsets [0] (%i) vector 1 reduce [2]
        into (%t : !tile.slice<32x256xf16, block>) at [#acc] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 32, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %x at #rows : !tile.slice<64x32xf16, global> -> f16
      %v = tile.load %a at #lanes : !tile.slice<32x256xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
    tile.compute [64, 64, 256] sizes [32, 64, 256] offsets [0] (%i) vector 1 reduce [2]
        into (%y : !tile.slice<64x64xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 64, stages = 4, prefetch = rhs>} {
    ^bb0(%s: f32):
      %u = tile.load %t at #held : !tile.slice<32x256xf16, block> -> f16
      %v = tile.load %b at #lanes : !tile.slice<256x64xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
