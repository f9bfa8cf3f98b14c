// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-keep-resident-tiles{target=cuda:h200}))' --mlir-print-local-scope --split-input-file | FileCheck %s

#row = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d1, d2)>
#acc = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d1)>
#flat = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#all = affine_map<(d0, d1)[s0, s1] -> (0, 0)>

// The first phase keeps the tile of a tensor that it reads, and the second phase uses it with the same tiling; so both
// bindings are one tensor.
// CHECK-LABEL: tile.program @keeps_what_is_read_again
// CHECK: ^bb0(%[[X:.*]]: !tile.slice<3x5x40xf32, global>, %[[AGAIN:.*]]: !tile.slice<3x200xf32, global>
// CHECK-NOT: tile.resident
// CHECK: %[[LEFT:.*]] = tile.alloc {tile.aligned_as = affine_map<(d0, d1) -> (d0 * 200 + d1 * 40)>, tile.resident_tile = 0 : i64} : <1x1x40xf32, block>
// CHECK: %[[V:.*]] = tile.load %[[X]] at
// CHECK-NEXT: tile.store %[[V]], %[[LEFT]] at affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0 - s0, d1 - s1, d2)>
// CHECK: tile.sync <grid>
// CHECK: %[[FOUND:.*]] = tile.alloc {tile.aligned_as = affine_map<(d0, d1) -> (d0 * 200 + d1)>, tile.resident_tile = 0 : i64} : <1x40xf32, block>
// CHECK-NOT: %[[AGAIN]]
// CHECK: tile.load %[[FOUND]] at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1 - s1)>
tile.program @keeps_what_is_read_again outputs 2 {
^bb0(%x: !tile.slice<3x5x40xf32, global>, %again: !tile.slice<3x200xf32, global>, %p: !tile.slice<3x5xf32, global>,
     %y: !tile.slice<3x200xf32, global>):
  tile.parallel [3, 5] tiles [1, 1] workgroups 15 attributes {tile.resident = array<i64: 0, 0>, tile.threads = 32 : i64, tile.group = 32 : i64} {
    tile.walk {
    ^bb0(%i: index, %j: index):
      tile.compute [3, 5, 40] sizes [1, 1, 40] offsets [0, 1] (%i, %j) vector 2 reduce [2]
          into (%p : !tile.slice<3x5xf32, global>) at [#acc] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%acc: f32):
        %v = tile.load %x at #row : !tile.slice<3x5x40xf32, global> -> f32
        %n = arith.addf %v, %acc : f32
        tile.yield %n : f32
      }
    }
  }
  tile.sync <grid>
  tile.parallel [3, 200] tiles [1, 40] workgroups 15 attributes {tile.resident = array<i64: 0, 1>, tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index, %j: index):
      tile.compute [3, 200] sizes [1, 40] offsets [0, 1] (%i, %j) vector 1 reduce [] {
        %v = tile.load %again at #flat : !tile.slice<3x200xf32, global> -> f32
        %s = tile.load %p at #all : !tile.slice<3x5xf32, global> -> f32
        %d = arith.subf %v, %s : f32
        tile.store %d, %y at #flat : f32, !tile.slice<3x200xf32, global>
        tile.yield
      }
    }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#local = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)>
#sum = affine_map<(d0, d1)[s0, s1] -> (d0)>
#none = affine_map<(d0, d1)[s0, s1] -> (0)>

// If the first phase has a buffer for the tile already, that buffer stays resident, and no other is allocated.
// CHECK-LABEL: tile.program @keeps_the_buffer_that_holds_it
// CHECK: %[[HELD:.*]] = tile.alloc {{.*}}tile.resident_tile = 0 : i64} : <1x40xf32, block>
// CHECK-NOT: tile.alloc
// CHECK: tile.store %{{.*}}, %[[HELD]]
// CHECK-NOT: tile.store %{{.*}}, %[[HELD]]
// CHECK: tile.sync <grid>
tile.program @keeps_the_buffer_that_holds_it outputs 2 {
^bb0(%x: !tile.slice<7x40xf32, global>, %p: !tile.slice<7xf32, global>, %y: !tile.slice<7x40xf32, global>):
  tile.parallel [7] tiles [1] workgroups 7 attributes {tile.resident = array<i64: 0, 0>, tile.threads = 32 : i64, tile.group = 32 : i64} {
    tile.walk {
    ^bb0(%i: index):
      %held = tile.alloc : !tile.slice<1x40xf32, block>
      tile.compute [7, 40] sizes [1, 40] offsets [0] (%i) vector 1 reduce [1]
          into (%p : !tile.slice<7xf32, global>) at [#sum] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%acc: f32):
        %v = tile.load %x at #id : !tile.slice<7x40xf32, global> -> f32
        tile.store %v, %held at #local : f32, !tile.slice<1x40xf32, block>
        %n = arith.addf %v, %acc : f32
        tile.yield %n : f32
      }
    }
  }
  tile.sync <grid>
  tile.parallel [7, 40] tiles [1, 40] workgroups 7 attributes {tile.resident = array<i64: 0, 0>, tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index, %j: index):
      tile.compute [7, 40] sizes [1, 40] offsets [0, 1] (%i, %j) vector 1 reduce [] {
        %v = tile.load %x at #id : !tile.slice<7x40xf32, global> -> f32
        %s = tile.load %p at #none : !tile.slice<7xf32, global> -> f32
        %d = arith.subf %v, %s : f32
        tile.store %d, %y at #id : f32, !tile.slice<7x40xf32, global>
        tile.yield
      }
    }
  }
}
