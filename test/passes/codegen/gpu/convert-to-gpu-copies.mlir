// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-stage-tiles{target=sm_80},tile-allocate-buffers),tile-convert-to-gpu{target=sm_80},canonicalize)' | FileCheck %s

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// Rows have 5 elements. The unaligned ends of a run are copied by elements, and the whole sectors between by vectors of
// 16 bytes. The buffer is shifted to the alignment of the run, and has space for that.
// CHECK-LABEL: func.func @copies_by_vectors
// CHECK-SAME: memref<1296xi8, 3>
// CHECK-DAG: %[[X:.*]] = memref.reinterpret_cast {{.*}} : memref<77x5xf32, 1> to memref<385xf32, 1>
// CHECK-DAG: %[[BUFFER:.*]] = memref.reinterpret_cast {{.*}} : memref<64x5xf32, 3> to memref<320xf32, 3>
// CHECK: scf.if
// CHECK:   memref.load %[[X]]
// CHECK:   memref.store {{.*}}, %[[BUFFER]]
// CHECK: vector.load %[[X]]{{.*}} {alignment = 16 : i64} : memref<385xf32, 1>, vector<4xf32>
// CHECK: vector.store {{.*}}, %[[BUFFER]]{{.*}} {alignment = 16 : i64} : memref<320xf32, 3>, vector<4xf32>
// CHECK: scf.if
// CHECK:   memref.load %[[X]]
// CHECK: nvvm.barrier0
// CHECK: memref.load {{.*}} : memref<64x5xf32, 3>
tile.program @copies_by_vectors outputs 1 {
^bb0(%x: !tile.slice<77x5xf32, global>, %y: !tile.slice<77xf32, global>):
  tile.parallel [77] tiles [64] workgroups 2 attributes {tile.threads = 64 : i64, tile.group = 1 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [77, 5] sizes [64, 5] offsets [0] (%i) vector 1 reduce [1]
        into (%y : !tile.slice<77xf32, global>) at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<77x5xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}
