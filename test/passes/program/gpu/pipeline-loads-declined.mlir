// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-allocate-buffers,tile-insert-syncs,tile-pipeline-loads{target=sm_80}))' \
// RUN:   --remarks-filter-missed=tile-pipeline-loads --remark-format=emitRemark 2>&1 | FileCheck %s

#rows = affine_map<(m, n, h, k)[s0] -> (h, m, k)>
#columns = affine_map<(m, n, h, k)[s0] -> (h, k, n)>
#made = affine_map<(m, n, h, k)[s0] -> (m - s0, n)>
#lanes = affine_map<(m, n, k)[s0] -> (k, n)>
#held = affine_map<(m, n, k)[s0] -> (m - s0, k)>
#out = affine_map<(m, n, k)[s0] -> (m, n)>

// The contraction before accumulates two matrices, one after the other: neither loop is certain to be the last one.
// CHECK: the operands are not prefetched while the contraction before is computed: the contraction before it has no single loop of steps
// CHECK-LABEL: tile.program @two_loops_before
// CHECK-NOT: tile.prefetch
tile.program @two_loops_before outputs 1 {
^bb0(%x: !tile.slice<2x64x32xf16, global>, %a: !tile.slice<2x32x32xf16, global>, %b: !tile.slice<32x64xf16, global>,
     %y: !tile.slice<64x64xf32, global>):
  tile.parallel [64] tiles [32] workgroups 2 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %t = tile.alloc : !tile.slice<32x32xf16, block>
    tile.compute [64, 32, 2, 32] sizes [32, 32, 2, 32] offsets [0] (%i) vector 1 reduce [2, 3]
        into (%t : !tile.slice<32x32xf16, block>) at [#made] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 32, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %x at #rows : !tile.slice<2x64x32xf16, global> -> f16
      %v = tile.load %a at #columns : !tile.slice<2x32x32xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
    tile.compute [64, 64, 32] sizes [32, 64, 32] offsets [0] (%i) vector 1 reduce [2]
        into (%y : !tile.slice<64x64xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 32, stages = 3, prefetch = both>} {
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
