// RUN: tilewright-opt %s --tile-convert-to-gpu=target=sm_80 --canonicalize --split-input-file | FileCheck %s

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>
#local = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)>

// A warp takes a row: each thread takes every 32nd vector of 16 bytes, five shuffles combine the lanes, lane 0 stores.
// CHECK-LABEL: func.func @warp_sums_a_row
// CHECK-SAME: memref<8x256xf32, 1>
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK: scf.for {{.*}} %c2
// CHECK:   vector.load {{.*}} {alignment = 16 : i64} : memref<8x256xf32, 1>, vector<4xf32>
// CHECK: vector.reduction <add>
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.barrier
// CHECK: %[[LANE:.*]] = arith.andi %[[TID]], %c31_i32
// CHECK: %[[LEADS:.*]] = arith.cmpi eq, %[[LANE]], %c0_i32
// CHECK: scf.if %[[LEADS]]
// CHECK:   memref.store
tile.program @warp_sums_a_row outputs 1 {
^bb0(%x: !tile.slice<8x256xf32, global>, %y: !tile.slice<8xf32, global>):
  tile.parallel [8] tiles [4] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [8, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [1] into (%y : !tile.slice<8xf32, global>)
        at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<8x256xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// A block takes a row: its warps combine their results through shared memory, between two barriers.
// CHECK-LABEL: func.func @block_sums_a_row
// CHECK-SAME: memref<256xi8, 3>
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: memref.store {{.*}} : memref<1x64x1xf32, 3>
// CHECK: nvvm.barrier0
// CHECK-COUNT-2: memref.load {{.*}} : memref<1x64x1xf32, 3>
// CHECK: nvvm.barrier0
tile.program @block_sums_a_row outputs 1 {
^bb0(%x: !tile.slice<8x512xf32, global>, %y: !tile.slice<8xf32, global>):
  tile.parallel [8] tiles [1] workgroups 8 attributes {tile.threads = 64 : i64, tile.group = 64 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [8, 512] sizes [1, 512] offsets [0] (%i) vector 1 reduce [1] into (%y : !tile.slice<8xf32, global>)
        at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<8x512xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d1)>

// Threads along columns take neighbouring vectors, and threads that share a column combine their vectors.
// CHECK-LABEL: func.func @sums_columns
// CHECK: vector.load {{.*}} vector<4xf32>
// CHECK-NOT: vector.reduction
// CHECK: nvvm.shfl.sync bfly
// CHECK: vector.store {{.*}} : memref<1x64x4xf32, 3>, vector<4xf32>
// CHECK: nvvm.barrier0
// CHECK: vector.store {{.*}} : memref<64xf32, 1>, vector<4xf32>
tile.program @sums_columns outputs 1 {
^bb0(%x: !tile.slice<77x64xf32, global>, %y: !tile.slice<64xf32, global>):
  tile.parallel [64] tiles [64] workgroups 1 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%j: index):
    tile.compute [77, 64] sizes [77, 64] offsets [1] (%j) vector 1 reduce [0] into (%y : !tile.slice<64xf32, global>)
        at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<77x64xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#id = affine_map<(d0)[s0] -> (d0)>

// An odd length has no aligned vectors, so threads take single elements, and the last tile ends at the extent.
// CHECK-LABEL: func.func @ends_at_the_extent
// CHECK: %[[END:.*]] = arith.minui
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[END]] step %c128
// CHECK:   memref.load {{.*}} : memref<1027xf32, 1>
// CHECK-NOT: mask
tile.program @ends_at_the_extent outputs 1 {
^bb0(%x: !tile.slice<1027xf32, global>, %y: !tile.slice<1027xf32, global>):
  tile.parallel [1027] tiles [512] workgroups 3 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [1027] sizes [512] offsets [0] (%i) vector 0 reduce [] {
      %v = tile.load %x at #id : !tile.slice<1027xf32, global> -> f32
      %n = arith.negf %v : f32
      tile.store %n, %y at #id : f32, !tile.slice<1027xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>
#own = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>

// Rows stay within their warp, so handing them over needs no barrier of the block.
// CHECK-LABEL: func.func @hands_over_inside_the_warp
// CHECK: memref.store {{.*}} : memref<4xf32, 3>
// CHECK: nvvm.bar.warp.sync
// CHECK: memref.load {{.*}} : memref<4xf32, 3>
// CHECK-NOT: nvvm.barrier0
tile.program @hands_over_inside_the_warp outputs 1 {
^bb0(%x: !tile.slice<8x256xf32, global>, %y: !tile.slice<8x256xf32, global>):
  tile.parallel [8] tiles [4] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %s = tile.alloc at 0 : !tile.slice<4xf32, block>
    tile.compute [8, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [1] into (%s : !tile.slice<4xf32, block>)
        at [#own] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<8x256xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <warp>
    tile.compute [8, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<8x256xf32, global> -> f32
      %m = tile.load %s at #own : !tile.slice<4xf32, block> -> f32
      %n = arith.subf %v, %m : f32
      tile.store %n, %y at #id : f32, !tile.slice<8x256xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// The warps of a block synchronise in a reduction, so trip counts are equal; those past the last row store nothing.
// CHECK-LABEL: func.func @meets_past_the_last_row
// CHECK: scf.for
// CHECK:   %[[VALID:.*]] = arith.cmpi ult
// CHECK:   arith.select %[[VALID]]
// CHECK:   nvvm.barrier0
// CHECK:   arith.andi %{{.*}}, %[[VALID]]
// CHECK:   scf.if
// CHECK:     memref.store
tile.program @meets_past_the_last_row outputs 1 {
^bb0(%x: !tile.slice<5x256xf32, global>, %y: !tile.slice<5xf32, global>):
  tile.parallel [5] tiles [5] workgroups 1 attributes {tile.threads = 128 : i64, tile.group = 64 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [5, 256] sizes [5, 256] offsets [0] (%i) vector 1 reduce [1] into (%y : !tile.slice<5xf32, global>)
        at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<5x256xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}
