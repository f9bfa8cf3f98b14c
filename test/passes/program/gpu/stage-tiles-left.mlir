// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-stage-tiles{target=cuda:h200}))' --mlir-print-local-scope --split-input-file | FileCheck %s

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// Vectors of whole sectors gain nothing.
// CHECK-LABEL: tile.program @leaves_aligned_rows
// CHECK-NOT: tile.alloc
tile.program @leaves_aligned_rows outputs 1 {
^bb0(%x: !tile.slice<8x512xf32, global>, %y: !tile.slice<8xf32, global>):
  tile.parallel [8] tiles [1] workgroups 8 attributes {tile.threads = 64 : i64, tile.group = 64 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [8, 512] sizes [1, 512] offsets [0] (%i) vector 1 reduce [1]
        into (%y : !tile.slice<8xf32, global>) at [#acc] inits [0.0 : f32] kinds ["add"] {
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

// A tile of columns is not contiguous in memory, and its rows are not whole sectors.
// CHECK-LABEL: tile.program @leaves_columns
// CHECK-NOT: tile.alloc
tile.program @leaves_columns outputs 1 {
^bb0(%x: !tile.slice<129x77xf32, global>, %y: !tile.slice<77xf32, global>):
  tile.parallel [77] tiles [32] workgroups 3 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [129, 77] sizes [129, 32] offsets [1] (%i) vector 1 reduce [0]
        into (%y : !tile.slice<77xf32, global>) at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<129x77xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// A row of 400 KB exceeds the memory of a block.
// CHECK-LABEL: tile.program @leaves_what_does_not_fit
// CHECK-NOT: tile.alloc
tile.program @leaves_what_does_not_fit outputs 1 {
^bb0(%x: !tile.slice<3x100003xf32, global>, %y: !tile.slice<3xf32, global>):
  tile.parallel [3] tiles [1] workgroups 3 attributes {tile.threads = 256 : i64, tile.group = 256 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [3, 100003] sizes [1, 100003] offsets [0] (%i) vector 1 reduce [1]
        into (%y : !tile.slice<3xf32, global>) at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<3x100003xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d1, d2)>
#rotated = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d1, (d2 + 31) mod 62)>

// Runs that start inside sectors are left alone.
// CHECK-LABEL: tile.program @leaves_runs_of_parts_of_sectors
// CHECK-NOT: tile.alloc
tile.program @leaves_runs_of_parts_of_sectors outputs 1 {
^bb0(%x: !tile.slice<5x7x62xf32, global>, %y: !tile.slice<5x7x62xf32, global>):
  tile.parallel [5, 7] tiles [3, 1] workgroups 14 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [5, 7, 62] sizes [3, 1, 62] offsets [0, 1] (%i, %j) vector 2 reduce [] {
      %v = tile.load %x at #id : !tile.slice<5x7x62xf32, global> -> f32
      %r = tile.load %x at #rotated : !tile.slice<5x7x62xf32, global> -> f32
      %s = arith.addf %v, %r : f32
      tile.store %s, %y at #id : f32, !tile.slice<5x7x62xf32, global>
      tile.yield
    }
  }
  }
}
