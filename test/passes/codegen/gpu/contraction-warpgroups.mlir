// RUN: tilewright-opt %s --tile-convert-to-gpu=target=cuda:h200 --canonicalize --cse --split-input-file | FileCheck %s

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// Shared memory has four stages of K = 64, 8 + 16 KB each, and space for the mbarriers of bulk copies. Copies of
// threads are fenced before the barrier. A step is still multiplied while the next one starts, so copies go to the
// stage before it. Empty inline assembly takes the accumulators behind the last step, which keeps uses behind the wait,
// and before the first, which keeps them in registers before the fence. The rhs is contiguous along N: its panels of 64
// columns are 8 KB apart, groups of 8 along K 1 KB, in the 128-byte swizzle.
// CHECK-LABEL: func.func @rows_of_lanes
// CHECK-SAME: memref<98336xi8, 3>
// CHECK-DAG: %[[LEFT:.*]] = arith.constant 4611686293305360384 : i64
// CHECK-DAG: %[[RIGHT:.*]] = arith.constant 4611686293338849280 : i64
// CHECK: llvm.inline_asm has_side_effects "", "=f,
// CHECK: scf.for
// CHECK:   nvvm.cp.async.wait.group 1
// CHECK:   nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK:   nvvm.barrier
// CHECK:   nvvm.cp.async.shared.global
// CHECK:   nvvm.wgmma.fence.aligned
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}}<m = 64, n = 128, k = 16>{{.*}}<row>{{.*}}<row>
// CHECK-NOT: nvvm.wgmma.mma_async
// CHECK:   nvvm.wgmma.commit.group.sync.aligned
// CHECK:   nvvm.wgmma.wait.group.sync.aligned 1
// CHECK-NOT: llvm.inline_asm
// CHECK:   scf.yield
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: llvm.inline_asm has_side_effects "", "=f,
// CHECK: vector.store {{.*}} vector<2xf32>

tile.program @rows_of_lanes outputs 1 {
^bb0(%a: !tile.slice<128x256xf16, global>, %b: !tile.slice<256x128xf16, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 128] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [128, 128, 256] sizes [64, 128, 256] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "wgmma-64x8", gemm = #tile.gemm<m = 1, n = 1, step = 64, stages = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x256xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<256x128xf16, global> -> f16
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

// If K is innermost in both operands, neither is transposed.
// CHECK-LABEL: func.func @rows_of_terms
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}}<m = 64, n = 128, k = 16>{{.*}}<row>{{.*}}<col>
tile.program @rows_of_terms outputs 1 {
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

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// Each of two warpgroups has 64 rows, and each thread 128 accumulators; four stages of 48 KB leave the SM to one block.
// CHECK-LABEL: func.func @full_size
// CHECK-SAME: memref<196640xi8, 3>
// CHECK: scf.for {{.*}} iter_args
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}}<m = 64, n = 256, k = 16>
// CHECK-NOT: nvvm.wgmma.mma_async
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
tile.program @full_size outputs 1 {
^bb0(%a: !tile.slice<256x512xf16, global>, %b: !tile.slice<512x256xf16, global>, %y: !tile.slice<256x256xf32, global>):
  tile.parallel [256, 256] tiles [128, 256] workgroups 2 attributes {tile.threads = 256 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [256, 256, 512] sizes [128, 256, 512] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<256x256xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "wgmma-64x8", gemm = #tile.gemm<m = 2, n = 1, step = 64, stages = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<256x512xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<512x256xf16, global> -> f16
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

// A step of bytes has K = 128, four instructions of 32.
// CHECK-LABEL: func.func @bytes
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}}<m = 64, n = 128, k = 32>, D[<s32>{{.*}}A[<s8>{{.*}}<row>]{{.*}}B[<s8>{{.*}}<col>]
// CHECK-NOT: nvvm.wgmma.mma_async
// CHECK: llvm.inline_asm has_side_effects "", "=r,
tile.program @bytes outputs 1 {
^bb0(%a: !tile.slice<128x512xi8, global>, %b: !tile.slice<128x512xi8, global>, %y: !tile.slice<128x128xi32, global>):
  tile.parallel [128, 128] tiles [64, 128] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [128, 128, 512] sizes [64, 128, 512] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xi32, global>) at [#out] inits [0 : i32] kinds ["add"]
        attributes {micro_kernel = "wgmma-64x8", gemm = #tile.gemm<m = 1, n = 1, step = 128, stages = 4>} {
    ^bb0(%s: i32):
      %u = tile.load %a at #rows : !tile.slice<128x512xi8, global> -> i8
      %v = tile.load %b at #lanes : !tile.slice<128x512xi8, global> -> i8
      %ue = arith.extsi %u : i8 to i32
      %ve = arith.extsi %v : i8 to i32
      %p = arith.muli %ue, %ve : i32
      %n = arith.addi %s, %p : i32
      tile.yield %n : i32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (n, k)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// Each thread rounds what it has copied, 16 bytes at a time, before it signals its readers: first the lhs, then the
// rhs.
// CHECK-LABEL: func.func @words
// CHECK: nvvm.cp.async.wait.group
// CHECK: scf.for
// CHECK-COUNT-4: nvvm.convert.float.to.tf32
// CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK: scf.for
// CHECK-COUNT-4: nvvm.convert.float.to.tf32
// CHECK-NOT: nvvm.convert.float.to.tf32
// CHECK: nvvm.fence.proxy
// CHECK-NEXT: nvvm.barrier
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}}<m = 64, n = 128, k = 8>, D[<f32>{{.*}}A[<tf32>{{.*}}<row>]{{.*}}B[<tf32>{{.*}}<col>]
tile.program @words outputs 1 {
^bb0(%a: !tile.slice<128x128xf32, global>, %b: !tile.slice<128x128xf32, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 128] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [128, 128, 128] sizes [64, 128, 128] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "wgmma_tf32-64x8", gemm = #tile.gemm<m = 1, n = 1, step = 32, stages = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x128xf32, global> -> f32
      %v = tile.load %b at #lanes : !tile.slice<128x128xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
