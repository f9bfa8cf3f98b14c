// RUN: tilewright-opt %s --tile-convert-to-gpu=target=cuda:h200 --canonicalize --cse --split-input-file | FileCheck %s

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k floordiv 64, n, k mod 64)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// K has four steps of 64. Threads copy the lhs. The rhs is a weight stored in the swizzled layout of its tiles: one
// thread creates an mbarrier for each stage, behind the stages, and starts bulk copies of 128 lines of 128 bytes, which
// complete on it; behind the barrier of the block, all threads wait for the phase of the step.
// CHECK-LABEL: func.func @copies_steps_in_bulk
// CHECK-SAME: memref<98336xi8, 3>
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 16384 : i32
// CHECK: scf.if
// CHECK-COUNT-4: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
// CHECK-COUNT-2: nvvm.cp.async.bulk.shared.cluster.global
// CHECK: scf.for
// CHECK:   nvvm.cp.async.wait.group 1
// CHECK:   nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK:   nvvm.barrier
// CHECK:   nvvm.cp.async.shared.global
// CHECK:   scf.if
// CHECK:     nvvm.mbarrier.arrive.expect_tx %[[FULL:.*]], %[[BYTES]]
// CHECK:     nvvm.cp.async.bulk.shared.cluster.global %{{.*}}, %{{.*}}, %[[FULL]], %[[BYTES]]
// CHECK:   nvvm.mbarrier.try_wait.parity
// CHECK:   nvvm.wgmma.fence.aligned
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}}<m = 64, n = 128, k = 16>{{.*}}<row>{{.*}}<col>
// CHECK-NOT: nvvm.wgmma.mma_async
tile.program @copies_steps_in_bulk outputs 1 {
^bb0(%a: !tile.slice<128x256xf16, global>, %b: !tile.slice<4x128x64xf16, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 128] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [128, 128, 256] sizes [64, 128, 256] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "wgmma-64x8", gemm = #tile.gemm<m = 1, n = 1, step = 64, stages = 4>, tile.swizzled = array<i64: 128, 64>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x256xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<4x128x64xf16, global> -> f16
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

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (n, k)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// An operand that has no swizzled layout is copied by threads.
// CHECK-LABEL: func.func @copies_by_threads
// CHECK-NOT: bulk
// CHECK-NOT: mbarrier
// CHECK: nvvm.wgmma.mma_async
tile.program @copies_by_threads outputs 1 {
^bb0(%a: !tile.slice<128x256xf16, global>, %b: !tile.slice<128x256xf16, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 128] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [128, 128, 256] sizes [64, 128, 256] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "wgmma-64x8", gemm = #tile.gemm<m = 1, n = 1, step = 64, stages = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x256xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<128x256xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
