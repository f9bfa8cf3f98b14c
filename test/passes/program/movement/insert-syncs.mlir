// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-insert-syncs))' --split-input-file | FileCheck %s

// Blocks have four warps in all tests.

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#own = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>

// If a buffer is written and read in one pattern, every element stays with its thread, and no barrier is needed.
// CHECK-LABEL: tile.program @one_pattern
// CHECK: tile.compute
// CHECK: tile.sync <thread>
// CHECK-NEXT: tile.compute
// CHECK-NOT: tile.sync
tile.program @one_pattern outputs 1 {
^bb0(%x: !tile.slice<8x256xf32, global>, %y: !tile.slice<8x256xf32, global>):
  tile.parallel [8] tiles [4] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %b = tile.alloc : !tile.slice<4x256xf32, block>
    tile.compute [8, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<8x256xf32, global> -> f32
      tile.store %v, %b at #own : f32, !tile.slice<4x256xf32, block>
      tile.yield
    }
    tile.sync <block>
    tile.compute [8, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %b at #own : !tile.slice<4x256xf32, block> -> f32
      tile.store %v, %y at #id : f32, !tile.slice<8x256xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>

// A warp reads what it has written, in another pattern: lane 0 has the sum that all lanes read.
// CHECK-LABEL: tile.program @one_warp
// CHECK: tile.compute
// CHECK: tile.sync <warp>
// CHECK-NEXT: tile.compute
// CHECK-NOT: tile.sync
tile.program @one_warp outputs 1 {
^bb0(%x: !tile.slice<8x256xf32, global>, %y: !tile.slice<8x256xf32, global>):
  tile.parallel [8] tiles [4] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %s = tile.alloc : !tile.slice<4xf32, block>
    tile.compute [8, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [1] into (%s : !tile.slice<4xf32, block>)
        at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<8x256xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [8, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [] {
      %m = tile.load %s at #acc : !tile.slice<4xf32, block> -> f32
      tile.store %m, %y at #id : f32, !tile.slice<8x256xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>

// The four warps of a block share a row, so the first warp writes what the others read. Tiles follow each other: the
// sum of the next tile waits for the readers of this one.
// CHECK-LABEL: tile.program @four_warps
// CHECK: tile.compute
// CHECK: tile.sync <block>
// CHECK-NEXT: tile.compute
// CHECK: tile.yield
// CHECK: tile.sync <block>
// CHECK-NOT: tile.sync
tile.program @four_warps outputs 1 {
^bb0(%x: !tile.slice<8x256xf32, global>, %y: !tile.slice<8x256xf32, global>):
  tile.parallel [8] tiles [1] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 128 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %s = tile.alloc : !tile.slice<1xf32, block>
    tile.compute [8, 256] sizes [1, 256] offsets [0] (%i) vector 1 reduce [1] into (%s : !tile.slice<1xf32, block>)
        at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<8x256xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.compute [8, 256] sizes [1, 256] offsets [0] (%i) vector 1 reduce [] {
      %m = tile.load %s at #acc : !tile.slice<1xf32, block> -> f32
      tile.store %m, %y at #id : f32, !tile.slice<8x256xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#own = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1 - s1)>

// A transposition inside the tile crosses warps; a second read needs no further barrier.
// CHECK-LABEL: tile.program @one_sync_serves_two_readers
// CHECK: tile.compute
// CHECK: tile.sync <block>
// CHECK-NEXT: tile.compute
// CHECK-NOT: tile.sync
#turned = affine_map<(d0, d1)[s0, s1] -> (d1 - s1, d0 - s0)>
tile.program @one_sync_serves_two_readers outputs 2 {
^bb0(%x: !tile.slice<32x32xf32, global>, %y: !tile.slice<32x32xf32, global>, %z: !tile.slice<32x32xf32, global>):
  tile.parallel [32, 32] tiles [32, 32] workgroups 1 attributes {tile.threads = 128 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    %b = tile.alloc : !tile.slice<32x32xf32, block>
    tile.compute [32, 32] sizes [32, 32] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<32x32xf32, global> -> f32
      tile.store %v, %b at #own : f32, !tile.slice<32x32xf32, block>
      tile.yield
    }
    tile.compute [32, 32] sizes [32, 32] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %b at #turned : !tile.slice<32x32xf32, block> -> f32
      tile.store %v, %y at #id : f32, !tile.slice<32x32xf32, global>
      tile.yield
    }
    tile.sync <block>
    tile.compute [32, 32] sizes [32, 32] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %b at #own : !tile.slice<32x32xf32, block> -> f32
      tile.store %v, %z at #id : f32, !tile.slice<32x32xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#own = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)>

// Two buffers share memory: the second one is written after all threads have finished with the first, whose elements
// lie elsewhere.
// CHECK-LABEL: tile.program @shared_memory_is_free_again
// CHECK: tile.sync <thread>
// CHECK-NEXT: tile.compute
// CHECK: tile.yield
// CHECK: tile.sync <block>
// CHECK-NEXT: tile.compute
// CHECK-NOT: tile.sync
tile.program @shared_memory_is_free_again outputs 2 {
^bb0(%x: !tile.slice<4x256xf32, global>, %y: !tile.slice<4x256xf32, global>, %z: !tile.slice<4x256xf16, global>):
  tile.parallel [4] tiles [4] workgroups 1 attributes {tile.threads = 128 : i64, tile.group = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %b = tile.alloc at 0 : !tile.slice<4x256xf32, block>
    %h = tile.alloc at 0 : !tile.slice<4x256xf16, block>
    tile.compute [4, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<4x256xf32, global> -> f32
      tile.store %v, %b at #own : f32, !tile.slice<4x256xf32, block>
      tile.yield
    }
    tile.sync <warp>
    tile.compute [4, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %b at #own : !tile.slice<4x256xf32, block> -> f32
      tile.store %v, %y at #id : f32, !tile.slice<4x256xf32, global>
      tile.yield
    }
    tile.sync <warp>
    tile.compute [4, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<4x256xf32, global> -> f32
      %n = arith.truncf %v : f32 to f16
      tile.store %n, %h at #own : f16, !tile.slice<4x256xf16, block>
      tile.store %n, %z at #id : f16, !tile.slice<4x256xf16, global>
      tile.yield
    }
  }
  }
}

// -----

// A buffer for all tiles of a workgroup: the part keeps its syncs.
// CHECK-LABEL: tile.program @keeps_the_syncs_of_a_preamble
// CHECK: tile.sync <block>
#at = affine_map<(d0)[s0] -> (d0)>
tile.program @keeps_the_syncs_of_a_preamble outputs 1 {
^bb0(%x: !tile.slice<64xf32, global>, %y: !tile.slice<64xf32, global>):
  tile.parallel [64] tiles [64] workgroups 1 attributes {tile.threads = 128 : i64} {
  %b = tile.alloc : !tile.slice<64xf32, block>
  tile.move %x, %b : !tile.slice<64xf32, global>, !tile.slice<64xf32, block>
  tile.walk {
  ^bb0(%i: index):
    tile.sync <block>
    tile.compute [64] sizes [64] offsets [] () vector 0 reduce [] {
      %v = tile.load %b at #at : !tile.slice<64xf32, block> -> f32
      tile.store %v, %y at #at : f32, !tile.slice<64xf32, global>
      tile.yield
    }
  }
  }
}
