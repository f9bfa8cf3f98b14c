// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-keep-resident-tiles{target=cuda:h200}))' --split-input-file --verify-diagnostics

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#sum = affine_map<(d0, d1)[s0, s1] -> (d0)>
#none = affine_map<(d0, d1)[s0, s1] -> (0)>

// 200 blocks with a tile of 120000 bytes each may not all be resident, because an SM has space for one.
tile.program @has_no_room outputs 2 {
^bb0(%x: !tile.slice<200x30000xf32, global>, %p: !tile.slice<200xf32, global>, %y: !tile.slice<200x30000xf32, global>):
  tile.parallel [200] tiles [1] workgroups 200 attributes {tile.resident = array<i64: 0, 0>, tile.threads = 128 : i64, tile.group = 128 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [200, 30000] sizes [1, 30000] offsets [0] (%i) vector 1 reduce [1]
          into (%p : !tile.slice<200xf32, global>) at [#sum] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%acc: f32):
        %v = tile.load %x at #id : !tile.slice<200x30000xf32, global> -> f32
        %n = arith.addf %v, %acc : f32
        tile.yield %n : f32
      }
    }
  }
  tile.sync <grid>
  // expected-error @below {{a tile of an earlier phase cannot stay in shared memory: blocks would have 120576 bytes of shared memory, so that not all of them are sure to be resident}}
  tile.parallel [200, 30000] tiles [1, 30000] workgroups 200 attributes {tile.resident = array<i64: 0, 0>, tile.threads = 128 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index, %j: index):
      tile.compute [200, 30000] sizes [1, 30000] offsets [0, 1] (%i, %j) vector 1 reduce [] {
        %v = tile.load %x at #id : !tile.slice<200x30000xf32, global> -> f32
        %s = tile.load %p at #none : !tile.slice<200xf32, global> -> f32
        %d = arith.subf %v, %s : f32
        tile.store %d, %y at #id : f32, !tile.slice<200x30000xf32, global>
        tile.yield
      }
    }
  }
}
