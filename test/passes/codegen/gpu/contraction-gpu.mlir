// RUN: tilewright-opt %s --tile-convert-to-gpu=target=sm_80 --canonicalize --cse --split-input-file | FileCheck %s

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// A thread has 4 x 4 accumulators. Shared memory has four stages of K = 16: three are copied while one is multiplied.
// The loop over steps stays, and the tile's offsets depend on its own index, so neither is hoisted into registers.
// CHECK: #[[ROLLED:.*]] = #llvm.loop_unroll<disable = true>
// CHECK: #llvm.loop_annotation<unroll = #[[ROLLED]]>
// CHECK-LABEL: func.func @threads
// CHECK-SAME: memref<32768xi8, 3>
// CHECK: llvm.inline_asm has_side_effects "", "=r,0"
// CHECK: nvvm.cp.async.shared.global {{.*}} 16, cache = cg
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK:   nvvm.cp.async.wait.group 2
// CHECK:   nvvm.barrier
// CHECK:   nvvm.cp.async.shared.global
// CHECK:   nvvm.cp.async.commit.group
// CHECK:   scf.for
// CHECK-COUNT-4: vector.load {{.*}} {alignment = 16 : i64} : memref<4096xf32, 3>, vector<4xf32>
// CHECK-COUNT-64: math.fma
// CHECK-NOT: math.fma
// CHECK: {llvm.loop_annotation = #{{[a-z_]+}}}
// The accumulators are complete before bounds checks decide which of them lie in the tile.
// CHECK: llvm.inline_asm has_side_effects "", "=f,=f,
// CHECK: vector.store {{.*}} {alignment = 16 : i64} : memref<128x128xf32, 1>, vector<4xf32>
tile.program @threads outputs 1 {
^bb0(%a: !tile.slice<128x64xf32, global>, %b: !tile.slice<64x128xf32, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 64] workgroups 4 attributes {tile.threads = 256 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [128, 128, 64] sizes [64, 64, 64] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "fma-8x8", gemm = #tile.gemm<m = 16, n = 16, step = 16, stages = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x64xf32, global> -> f32
      %v = tile.load %b at #lanes : !tile.slice<64x128xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#acc = affine_map<(m, n, k)[s0, s1, s2] -> (m - s0, n - s1)>
#local = affine_map<(m, n)[s0, s1] -> (m - s0, n - s1)>
#id = affine_map<(m, n)[s0, s1] -> (m, n)>
#bias = affine_map<(m, n)[s0, s1] -> (n)>

// Each of four warps has 32 x 32 accumulators, three steps are in flight, and the bias is added to the accumulators in
// registers: the buffer between the two nests takes no memory, and the second nest has no loop.
// CHECK-LABEL: func.func @warps
// CHECK-SAME: memref<49152xi8, 3>
// CHECK: scf.for
// CHECK:   nvvm.cp.async.wait.group 1
// CHECK:   nvvm.barrier
// CHECK-COUNT-2: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>{{.*}}num = 4
// CHECK-COUNT-2: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>{{.*}}num = 4
// CHECK-COUNT-8: nvvm.mma.sync
// CHECK: nvvm.ldmatrix
// Two threads exchange pairs, so that each stores four neighbouring elements.
// CHECK: nvvm.shfl.sync bfly
// CHECK: vector.from_elements {{.*}} : vector<4xf32>
// CHECK: vector.load {{.*}} memref<128xf32, 1>, vector<4xf32>
// CHECK: arith.addf {{.*}} : vector<4xf32>
// CHECK: vector.store {{.*}} {alignment = 8 : i64} : memref<128x128xf16, 1>, vector<4xf16>
// CHECK-NOT: memref<64x64xf32, 3>
tile.program @warps outputs 1 {
^bb0(%a: !tile.slice<128x192xf16, global>, %b: !tile.slice<192x128xf16, global>, %c: !tile.slice<128xf32, global>,
     %y: !tile.slice<128x128xf16, global>):
  tile.parallel [128, 128] tiles [64, 64] workgroups 4 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    %t = tile.alloc : !tile.slice<64x64xf32, block>
    tile.compute [128, 128, 192] sizes [64, 64, 192] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%t : !tile.slice<64x64xf32, block>) at [#acc] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 2, n = 2, step = 64, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x192xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<192x128xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [128, 128] sizes [64, 64] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %t at #local : !tile.slice<64x64xf32, block> -> f32
      %w = tile.load %c at #bias : !tile.slice<128xf32, global> -> f32
      %x = arith.addf %v, %w : f32
      %z = arith.truncf %x : f32 to f16
      tile.store %z, %y at #id : f16, !tile.slice<128x128xf16, global>
      tile.yield
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// Four pairs of wide elements are a whole sector already, so threads exchange nothing.
// CHECK-LABEL: func.func @wide_results
// CHECK-NOT: nvvm.shfl
// CHECK: vector.store {{.*}} {alignment = 8 : i64} : memref<128x128xf32, 1>, vector<2xf32>
tile.program @wide_results outputs 1 {
^bb0(%a: !tile.slice<128x64xf16, global>, %b: !tile.slice<64x128xf16, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 64] workgroups 4 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [128, 128, 64] sizes [64, 64, 64] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 2, n = 2, step = 64, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x64xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<64x128xf16, global> -> f16
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

// One row has few accumulators, so four warps have the same ones, each over a quarter of a step's K, and the first warp
// adds them up. Shared memory has one row of the lhs, in five stages: (4096 + 256) * 5 bytes.
// CHECK-LABEL: func.func @warps_share_terms
// CHECK-SAME: memref<17408xi8, 3>
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.barrier
// CHECK: scf.if
// CHECK-COUNT-8: memref.store {{.*}} : memref<768xf32, 3>
// CHECK: nvvm.barrier
// CHECK: scf.if
// CHECK-COUNT-24: memref.load {{.*}} : memref<768xf32, 3>
// CHECK: nvvm.barrier
tile.program @warps_share_terms outputs 1 {
^bb0(%a: !tile.slice<1x512xf16, global>, %b: !tile.slice<32x512xf16, global>, %y: !tile.slice<1x32xf32, global>):
  tile.parallel [1, 32] tiles [1, 16] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [1, 32, 512] sizes [1, 16, 512] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<1x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 1, k_slices = 4, step = 128, stages = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<1x512xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<32x512xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
