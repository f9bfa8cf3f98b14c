// RUN: tilewright-opt %s --tile-convert-to-gpu=target=sm_80 --canonicalize --cse --split-input-file | FileCheck %s

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
