// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-stage-tiles{target=cuda:h200}))' --split-input-file --verify-diagnostics

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>

// All reads depend on the row, so blocks that form clusters have nothing to share.
tile.program @nothing_in_common outputs 1 {
^bb0(%x: !tile.slice<64x70xf32, global>, %y: !tile.slice<64xf32, global>):
  // expected-error @+1 {{clusters of 8 blocks have nothing to share: no input that all blocks read is copied to shared memory as a whole}}
  tile.parallel [64] tiles [1] workgroups 64 attributes {tile.threads = 32 : i64, tile.group = 32 : i64, tile.cluster = 8 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64, 70] sizes [1, 70] offsets [0] (%i) vector 1 reduce [1]
        into (%y : !tile.slice<64xf32, global>) at [affine_map<(d0, d1)[s0, s1] -> (d0)>] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<64x70xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// A block has every second row of its box.
tile.program @reads_no_box outputs 1 {
^bb0(%x: !tile.slice<128x70xf32, global>, %y: !tile.slice<64xf32, global>):
  // expected-error @+1 {{the tile of binding 0 cannot be copied as a whole: that takes nests outside of loops and contractions that access a box of it}}
  tile.parallel [64] tiles [1] workgroups 64 attributes {tile.accesses = [#tile.access<whole>, #tile.access<derived>], tile.threads = 32 : i64, tile.group = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64, 70] sizes [1, 70] offsets [0] (%i) vector 1 reduce [1]
        into (%y : !tile.slice<64xf32, global>) at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at affine_map<(d0, d1)[s0, s1] -> (d0 * 2, d1)> : !tile.slice<128x70xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// A row of 240000 bytes is more than a block's memory.
tile.program @has_no_room outputs 1 {
^bb0(%x: !tile.slice<64x60000xf32, global>, %y: !tile.slice<64xf32, global>):
  // expected-error @+1 {{the tile of binding 0 cannot be copied as a whole: a block has no room for 240064 bytes more}}
  tile.parallel [64] tiles [1] workgroups 64 attributes {tile.accesses = [#tile.access<whole>, #tile.access<derived>], tile.threads = 32 : i64, tile.group = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64, 60000] sizes [1, 60000] offsets [0] (%i) vector 1 reduce [1]
        into (%y : !tile.slice<64xf32, global>) at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<64x60000xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}
