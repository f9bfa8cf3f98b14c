// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-print-movement))' --verify-diagnostics

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#turned = affine_map<(d0, d1)[s0, s1] -> (d1, d0)>
#own = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>

// A block has four warps, a warp takes a row: lanes take every fourth column, and the first lanes have the row sums.
tile.program @rows outputs 1 {
^bb0(%x: !tile.slice<8x512xf32, global>, %y: !tile.slice<8x256xf32, global>):
  tile.parallel [8] tiles [4] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %s = tile.alloc : !tile.slice<4xf32, block>
    // expected-remark @below {{1 x 4 by 4, threads [0, 0, 0, 0, 0, d0/1, d0/2]}}
    tile.compute [8, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [1] into (%s : !tile.slice<4xf32, block>)
        at [#own] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      // expected-remark @below {{4 x 256 by 512, threads [d1/4, d1/8, d1/16, d1/32, d1/64, d0/1, d0/2]}}
      %v = tile.load %x at #id : !tile.slice<8x512xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <warp>
    tile.compute [8, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [] {
      // expected-remark @below {{1 x 4 by 4, threads [*, *, *, *, *, d0/1, d0/2]}}
      %m = tile.load %s at #own : !tile.slice<4xf32, block> -> f32
      // expected-remark @below {{1 x 1024 by 1024, threads [d1/4, d1/8, d1/16, d1/32, d1/64, d0/1, d0/2]}}
      tile.store %m, %y at #id : f32, !tile.slice<8x256xf32, global>
      tile.yield
    }
  }
  }
}

// A column of a matrix has as many segments as rows.
tile.program @columns outputs 1 {
^bb0(%x: !tile.slice<53x7xf32, global>, %y: !tile.slice<7x53xf32, global>):
  tile.parallel [7] tiles [1] workgroups 7 attributes {tile.threads = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [7, 53] sizes [1, 53] offsets [0] (%i) vector 1 reduce [] {
      // expected-remark @below {{53 x 1 by 7, threads [d0/1, d0/2, d0/4, d0/8, d0/16]}}
      %v = tile.load %x at #turned : !tile.slice<53x7xf32, global> -> f32
      // expected-remark @below {{1 x 53 by 53, threads [d1/1, d1/2, d1/4, d1/8, d1/16]}}
      tile.store %v, %y at #id : f32, !tile.slice<7x53xf32, global>
      tile.yield
    }
  }
  }
}
