// RUN: tilewright-opt %s --tile-convert-to-gpu=target=sm_80 --canonicalize --cse --split-input-file | FileCheck %s

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
