// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-stage-tiles{target=cuda:h200}))' --mlir-print-local-scope | FileCheck %s --check-prefix=STAGE
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-stage-tiles{target=cuda:h200},tile-allocate-buffers,tile-insert-syncs),tile-convert-to-gpu{target=cuda:h200},canonicalize)' | FileCheck %s --check-prefix=GPU

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#column = affine_map<(d0, d1)[s0, s1] -> (d1)>
#local = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>

// All 60 blocks read the same gain, and the plan has clusters. The eight blocks of a cluster synchronise at their start, copy the gain together,
// and synchronise again in front of the nest that reads it; the nest between does not wait.
// STAGE-LABEL: tile.program @copies_once_a_cluster
// STAGE: %[[GAIN:.*]] = tile.alloc {{.*}} <70xf32, block>
// STAGE: tile.sync <cluster>
// STAGE: tile.compute [70] sizes [70] {{.*}} {tile.cluster = 8 : i64}
// STAGE: tile.store {{.*}}, %[[GAIN]]
// STAGE: tile.compute [60, 70]
// STAGE: tile.yield
// STAGE: tile.sync <cluster>
// STAGE: tile.compute [60, 70]
// STAGE: tile.load %[[GAIN]]

// Threads arrive when they start, and again after writing to all eight blocks; they wait at the syncs.
// 64 blocks are launched, and four of them have no row: they copy and wait like the others, but compute nothing.
// GPU-LABEL: func.func @copies_once_a_cluster
// GPU-SAME: tile.cluster = 8 : i64
// GPU-SAME: tile.workgroups = 64 : i64
// GPU-DAG: %[[TILES:.*]] = arith.constant 60 : index
// GPU: nvvm.cluster.arrive.relaxed {aligned}
// GPU: nvvm.cluster.wait {aligned}
// GPU-COUNT-8: nvvm.mapa
// GPU-NOT: nvvm.mapa
// GPU: vector.load {{.*}} vector<4xf32>
// GPU-COUNT-8: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<7>
// GPU: memref.load {{.*}} memref<70xf32, 1>
// GPU-COUNT-8: llvm.store {{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<7>
// GPU: nvvm.cluster.arrive {aligned}
// GPU: %[[HAS_ROW:.*]] = arith.cmpi ult, %{{.*}}, %[[TILES]] : index
// GPU: scf.if %[[HAS_ROW]]
// GPU: nvvm.shfl.sync
// GPU: nvvm.cluster.wait {aligned}
// GPU: scf.if
tile.program @copies_once_a_cluster outputs 1 {
^bb0(%x: !tile.slice<60x70xf32, global>, %gain: !tile.slice<70xf32, global>, %y: !tile.slice<60x70xf32, global>):
  tile.parallel [60] tiles [1] workgroups 60 attributes {tile.threads = 32 : i64, tile.group = 32 : i64, tile.cluster = 8 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %sum = tile.alloc : !tile.slice<1xf32, block>
    tile.compute [60, 70] sizes [1, 70] offsets [0] (%i) vector 1 reduce [1]
        into (%sum : !tile.slice<1xf32, block>) at [#row] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<60x70xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [60, 70] sizes [1, 70] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<60x70xf32, global> -> f32
      %g = tile.load %gain at #column : !tile.slice<70xf32, global> -> f32
      %s = tile.load %sum at #row : !tile.slice<1xf32, block> -> f32
      %d = arith.mulf %v, %g : f32
      %e = arith.mulf %d, %s : f32
      tile.store %e, %y at #id : f32, !tile.slice<60x70xf32, global>
      tile.yield
    }
  }
  }
}

// All reads depend on the row, so blocks have nothing to share, and none waits for another.
// STAGE-LABEL: tile.program @nothing_in_common
// STAGE-NOT: tile.cluster
// STAGE-NOT: tile.sync <cluster>
// GPU-LABEL: func.func @nothing_in_common
// GPU-NOT: nvvm.cluster
tile.program @nothing_in_common outputs 1 {
^bb0(%x: !tile.slice<60x70xf32, global>, %y: !tile.slice<60xf32, global>):
  tile.parallel [60] tiles [1] workgroups 60 attributes {tile.threads = 32 : i64, tile.group = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [60, 70] sizes [1, 70] offsets [0] (%i) vector 1 reduce [1]
        into (%y : !tile.slice<60xf32, global>) at [affine_map<(d0, d1)[s0, s1] -> (d0)>] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<60x70xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}
