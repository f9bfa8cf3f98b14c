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
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// Rows with an odd number of 2-byte elements are copied in aligned pieces, which start where the row starts; the last
// piece may be partial or empty. If K is innermost, pieces are words, put together of the two words that hold their
// halves; otherwise, they are of 16 bytes.
// CHECK-LABEL: func.func @unaligned
// CHECK-NOT: memref.store {{.*}} : memref<{{.*}}xf16, 3>
// CHECK: %[[LEFT:.*]] = arith.minui %{{.*}}, %c2 : index
// CHECK: %[[BYTES:.*]] = arith.muli %[[LEFT]], %c2
// CHECK: %[[PART:.*]] = arith.select %{{.*}}, %[[BYTES]], %c0
// CHECK: %[[READ:.*]] = arith.index_castui %[[PART]] : index to i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache =  ca, %[[READ]]
// CHECK: arith.minui %{{.*}}, %c8 : index
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache =  cg, %{{.*}}
// CHECK: llvm.intr.fshr
// CHECK: nvvm.mma.sync
tile.program @unaligned outputs 1 {
^bb0(%a: !tile.slice<16x33xf16, global>, %b: !tile.slice<33x17xf16, global>, %y: !tile.slice<16x17xf32, global>):
  tile.parallel [16, 17] tiles [16, 17] workgroups 1 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [16, 17, 33] sizes [16, 17, 33] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<16x17xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 64, stages = 3, lhs_copy = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<16x33xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<33x17xf16, global> -> f16
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

#rows = affine_map<(m, h, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, h, k)[s0, s1, s2] -> (k, h)>
#acc = affine_map<(m, h, k)[s0, s1, s2] -> (m - s0, h)>
#local = affine_map<(m, h)[s0, s1] -> (m - s0, h)>
#out = affine_map<(m, h, k)[s0, s1, s2] -> (m, h)>

// The second contraction reads its lhs where the epilogue of the first left it, in lines of 72 elements: there is no
// copy, and only its weights have stages. The scratch behind them holds three stages of the first contraction.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: %[[MEMORY:[a-z0-9]+]]: memref<29184xi8, 3>
// CHECK: %[[KEPT:.*]] = memref.view %[[MEMORY]]{{.*}} to memref<32x72xf16, 3>
// CHECK: nvvm.mma.sync
// CHECK: arith.maximumf
// CHECK: vector.store %{{.*}}, %[[KEPT]]
// CHECK-COUNT-4: nvvm.cp.async.shared.global
// CHECK-NOT: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.mma.sync
// CHECK: vector.store {{.*}} : memref<64x64xf32, 1>, vector<2xf32>
tile.program @chain outputs 1 {
^bb0(%a: !tile.slice<64x32xf16, global>, %b: !tile.slice<32x64xf16, global>, %c: !tile.slice<64x64xf16, global>,
     %y: !tile.slice<64x64xf32, global>):
  tile.parallel [64] tiles [32] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %t = tile.alloc : !tile.slice<32x64xf32, block>
    %kept = tile.alloc at 0 : !tile.slice<32x72xf16, block>
    tile.compute [64, 64, 32] sizes [32, 64, 32] offsets [0] (%i) vector 1 reduce [2]
        into (%t : !tile.slice<32x64xf32, block>) at [#acc] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 4, step = 32, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<64x32xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<32x64xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [64, 64] sizes [32, 64] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %t at #local : !tile.slice<32x64xf32, block> -> f32
      %zero = arith.constant 0.0 : f32
      %x = arith.maximumf %v, %zero : f32
      %z = arith.truncf %x : f32 to f16
      tile.store %z, %kept at #local : f16, !tile.slice<32x72xf16, block>
      tile.yield
    }
    tile.sync <block>
    tile.compute [64, 64, 64] sizes [32, 64, 64] offsets [0] (%i) vector 1 reduce [2]
        into (%y : !tile.slice<64x64xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 4, step = 64, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %kept at affine_map<(m, h, k)[s0, s1, s2] -> (m - s0, k)> : !tile.slice<32x72xf16, block> -> f16
      %v = tile.load %c at #lanes : !tile.slice<64x64xf16, global> -> f16
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

#rows = affine_map<(m, h, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, h, k)[s0, s1, s2] -> (k, h)>
#acc = affine_map<(m, h, k)[s0, s1, s2] -> (m - s0, h)>
#local = affine_map<(m, h)[s0, s1] -> (m - s0, h)>
#out = affine_map<(m, h, k)[s0, s1, s2] -> (m, h)>

// The first contraction leaves 52 columns, and 21 of 32 rows in the last tile. The second reads them in place as well:
// zeros are stored behind the columns, up to whole steps, and in the missing rows.
// CHECK-LABEL: func.func @cut_chain
// CHECK-SAME: %[[MEMORY:[a-z0-9]+]]: memref<29184xi8, 3>
// CHECK: %[[KEPT:.*]] = memref.view %[[MEMORY]]{{.*}} to memref<32x72xf16, 3>
// CHECK: nvvm.mma.sync
// CHECK: vector.store %{{.*}}, %[[KEPT]]
// CHECK: vector.store %{{.*}}, %[[KEPT]]{{.*}} {alignment = 2 : i64} : memref<32x72xf16, 3>, vector<1xf16>
// CHECK: vector.store %{{.*}}, %[[KEPT]]{{.*}} {alignment = 16 : i64} : memref<32x72xf16, 3>, vector<8xf16>
// CHECK-COUNT-4: nvvm.cp.async.shared.global
// CHECK-NOT: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK-NOT: memref.store
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.mma.sync
tile.program @cut_chain outputs 1 {
^bb0(%a: !tile.slice<53x32xf16, global>, %b: !tile.slice<32x52xf16, global>, %c: !tile.slice<52x64xf16, global>,
     %y: !tile.slice<53x64xf32, global>):
  tile.parallel [53] tiles [32] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %t = tile.alloc : !tile.slice<32x52xf32, block>
    %kept = tile.alloc at 0 : !tile.slice<32x72xf16, block>
    tile.compute [53, 52, 32] sizes [32, 52, 32] offsets [0] (%i) vector 1 reduce [2]
        into (%t : !tile.slice<32x52xf32, block>) at [#acc] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 4, step = 32, stages = 3, rhs_copy = 8>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<53x32xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<32x52xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [53, 52] sizes [32, 52] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %t at #local : !tile.slice<32x52xf32, block> -> f32
      %zero = arith.constant 0.0 : f32
      %x = arith.maximumf %v, %zero : f32
      %z = arith.truncf %x : f32 to f16
      tile.store %z, %kept at #local : f16, !tile.slice<32x72xf16, block>
      tile.yield
    }
    tile.sync <block>
    tile.compute [53, 64, 52] sizes [32, 64, 52] offsets [0] (%i) vector 1 reduce [2]
        into (%y : !tile.slice<53x64xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 4, step = 64, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %kept at affine_map<(m, h, k)[s0, s1, s2] -> (m - s0, k)> : !tile.slice<32x72xf16, block> -> f16
      %v = tile.load %c at #lanes : !tile.slice<52x64xf16, global> -> f16
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

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// Bytes that are contiguous along columns come in transposed pairs, which are split: even columns are one block, odd
// ones the other, so four neighbouring accumulators are stored at once.
// CHECK-LABEL: func.func @bytes
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>
// CHECK: llvm.shufflevector {{.*}} [0, 2, 4, 6]
// CHECK: llvm.shufflevector {{.*}} [1, 3, 5, 7]
// CHECK: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<s8>, multiplicandBPtxType = #nvvm.mma_type<u8>, shape = #nvvm.shape<m = 16, n = 8, k = 32>
// CHECK: vector.store {{.*}} vector<4xi32>
tile.program @bytes outputs 1 {
^bb0(%a: !tile.slice<32x64xi8, global>, %b: !tile.slice<64x32xi8, global>, %y: !tile.slice<32x32xi32, global>):
  tile.parallel [32, 32] tiles [32, 32] workgroups 1 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [32, 32, 64] sizes [32, 32, 64] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<32x32xi32, global>) at [#out] inits [0 : i32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 64, stages = 3>} {
    ^bb0(%s: i32):
      %u = tile.load %a at #rows : !tile.slice<32x64xi8, global> -> i8
      %v = tile.load %b at #lanes : !tile.slice<64x32xi8, global> -> i8
      %ue = arith.extsi %u : i8 to i32
      %ve = arith.extui %v : i8 to i32
      %p = arith.muli %ue, %ve : i32
      %n = arith.addi %s, %p : i32
      tile.yield %n : i32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// f32 is multiplied in tf32 only if the plan names it; operands are rounded, not truncated.
// CHECK-LABEL: func.func @tf32
// CHECK: nvvm.convert.float.to.tf32 {{.*}}rna
// CHECK: nvvm.mma.sync {{.*}}#nvvm.mma_type<tf32>{{.*}}k = 8
tile.program @tf32 outputs 1 {
^bb0(%a: !tile.slice<32x64xf32, global>, %b: !tile.slice<64x32xf32, global>, %y: !tile.slice<32x32xf32, global>):
  tile.parallel [32, 32] tiles [32, 32] workgroups 1 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [32, 32, 64] sizes [32, 32, 64] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<32x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_tf32-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 32, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<32x64xf32, global> -> f32
      %v = tile.load %b at #lanes : !tile.slice<64x32xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
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

// Rows with an odd number of bytes are copied through registers, eight elements of a thread at a time; each operand's
// 64 x 64 elements take 32 per thread.
// CHECK-LABEL: func.func @odd_rows
// CHECK: scf.for
// CHECK-COUNT-8: memref.load
// CHECK-NOT: memref.load
// CHECK: scf.for
// CHECK-COUNT-8: memref.load
// CHECK-NOT: memref.load
// CHECK: scf.for
tile.program @odd_rows outputs 1 {
^bb0(%a: !tile.slice<128x509xi8, global>, %b: !tile.slice<128x509xi8, global>, %y: !tile.slice<128x128xi32, global>):
  tile.parallel [128, 128] tiles [64, 64] workgroups 4 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [128, 128, 509] sizes [64, 64, 509] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xi32, global>) at [#out] inits [0 : i32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 2, n = 2, step = 128, stages = 4, lhs_copy = 1, rhs_copy = 1>} {
    ^bb0(%s: i32):
      %u = tile.load %a at #rows : !tile.slice<128x509xi8, global> -> i8
      %v = tile.load %b at #lanes : !tile.slice<128x509xi8, global> -> i8
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

#heads = affine_map<(m, n, k)[s0, s1, s2] -> (k floordiv 32, m, k mod 32)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// K consists of pieces of several heads; elements of a piece are contiguous, and are copied together.
// CHECK-LABEL: func.func @pieces
// CHECK-NOT: memref.load
// CHECK: nvvm.cp.async.shared.global {{.*}} 16, cache = cg
// CHECK-NOT: nvvm.cp.async.shared.global {{.*}} 4, cache = ca
tile.program @pieces outputs 1 {
^bb0(%a: !tile.slice<2x64x32xf32, global>, %b: !tile.slice<64x64xf32, global>, %y: !tile.slice<64x64xf32, global>):
  tile.parallel [64, 64] tiles [64, 64] workgroups 1 attributes {tile.threads = 256 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [64, 64, 64] sizes [64, 64, 64] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<64x64xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "fma-8x8", gemm = #tile.gemm<m = 16, n = 16, step = 16, stages = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #heads : !tile.slice<2x64x32xf32, global> -> f32
      %v = tile.load %b at #lanes : !tile.slice<64x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#apart = affine_map<(m, n, k)[s0, s1, s2] -> (k floordiv 6, m, k mod 6)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// Pieces of 6 elements are aligned to 8 bytes.
// CHECK-LABEL: func.func @short_pieces
// CHECK: nvvm.cp.async.shared.global {{.*}} 8, cache = ca
tile.program @short_pieces outputs 1 {
^bb0(%a: !tile.slice<8x64x6xf32, global>, %b: !tile.slice<48x64xf32, global>, %y: !tile.slice<64x64xf32, global>):
  tile.parallel [64, 64] tiles [64, 64] workgroups 1 attributes {tile.threads = 256 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [64, 64, 48] sizes [64, 64, 48] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<64x64xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "fma-8x8", gemm = #tile.gemm<m = 16, n = 16, step = 16, stages = 3, lhs_copy = 8>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #apart : !tile.slice<8x64x6xf32, global> -> f32
      %v = tile.load %b at #lanes : !tile.slice<48x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
