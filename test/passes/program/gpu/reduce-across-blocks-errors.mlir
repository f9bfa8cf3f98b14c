// RUN: tilewright-opt %s --tile-reduce-across-blocks --split-input-file --verify-diagnostics

#at = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, 0)>
#out = affine_map<(d0, d1)[s0, s1] -> (d0, 0)>

// A row's result in global memory would be that of one block's part.
tile.program @leaves_the_kernel outputs 1 {
^bb0(%x: !tile.slice<2x12xf32, global>, %y: !tile.slice<2x1xf32, global>):
  // expected-error @below {{blocks cannot share rows: a reduction's result leaves the kernel}}
  tile.parallel [2, 12] tiles [1, 3] workgroups 8 attributes {tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index, %j: index):
      tile.compute [2, 12] sizes [1, 3] offsets [0, 1] (%i, %j) vector 1 reduce [1]
          into (%y : !tile.slice<2x1xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%acc: f32):
        %v = tile.load %x at #at : !tile.slice<2x12xf32, global> -> f32
        %n = arith.addf %v, %acc : f32
        tile.yield %n : f32
      }
    }
  }
}

// -----

#at = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, 0)>

// Partial results of a sum that has an order cannot be added up afterwards.
tile.program @in_order outputs 1 {
^bb0(%x: !tile.slice<2x12xf32, global>, %y: !tile.slice<2x12xf32, global>):
  // expected-error @below {{blocks cannot share rows: a reduction has to be computed in order}}
  tile.parallel [2, 12] tiles [1, 3] workgroups 8 attributes {tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index, %j: index):
      %s = tile.alloc : !tile.slice<1x1xf32, block>
      tile.compute [2, 12] sizes [1, 3] offsets [0, 1] (%i, %j) vector 1 reduce [1]
          into (%s : !tile.slice<1x1xf32, block>) at [#row] inits [0.0 : f32] kinds ["none"] {
      ^bb0(%acc: f32):
        %v = tile.load %x at #at : !tile.slice<2x12xf32, global> -> f32
        %n = arith.addf %v, %acc : f32
        tile.yield %n : f32
      }
      tile.sync <block>
      tile.compute [2, 12] sizes [1, 3] offsets [0, 1] (%i, %j) vector 1 reduce [] {
        %u = tile.load %s at #row : !tile.slice<1x1xf32, block> -> f32
        tile.store %u, %y at #at : f32, !tile.slice<2x12xf32, global>
        tile.yield
      }
    }
  }
}

// -----

#at = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, 0)>

// Four blocks would wait for tiles that they compute only afterwards.
tile.program @several_tiles outputs 1 {
^bb0(%x: !tile.slice<2x12xf32, global>, %y: !tile.slice<2x12xf32, global>):
  // expected-error @below {{blocks cannot share rows: a block has several tiles}}
  tile.parallel [2, 12] tiles [1, 3] workgroups 4 attributes {tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index, %j: index):
      %s = tile.alloc : !tile.slice<1x1xf32, block>
      tile.compute [2, 12] sizes [1, 3] offsets [0, 1] (%i, %j) vector 1 reduce [1]
          into (%s : !tile.slice<1x1xf32, block>) at [#row] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%acc: f32):
        %v = tile.load %x at #at : !tile.slice<2x12xf32, global> -> f32
        %n = arith.addf %v, %acc : f32
        tile.yield %n : f32
      }
      tile.sync <block>
      tile.compute [2, 12] sizes [1, 3] offsets [0, 1] (%i, %j) vector 1 reduce [] {
        %u = tile.load %s at #row : !tile.slice<1x1xf32, block> -> f32
        tile.store %u, %y at #at : f32, !tile.slice<2x12xf32, global>
        tile.yield
      }
    }
  }
}

// -----

#at = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, 0)>

// The form is for squares of differences from a mean, which these are not.
tile.program @other_moments outputs 1 {
^bb0(%x: !tile.slice<2x12xf32, global>, %y: !tile.slice<2x12xf32, global>):
  // expected-error @below {{blocks cannot share rows: a sum that is to be exchanged with that of its mean is not one of squares}}
  tile.parallel [2, 12] tiles [1, 3] workgroups 8 attributes {tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index, %j: index):
      %s = tile.alloc : !tile.slice<1x1xf32, block>
      tile.compute [2, 12] sizes [1, 3] offsets [0, 1] (%i, %j) vector 1 reduce [1]
          into (%s : !tile.slice<1x1xf32, block>) at [#row] inits [0.0 : f32] kinds ["add"]
          attributes {tile.form = "two-moment variance"} {
      ^bb0(%acc: f32):
        %v = tile.load %x at #at : !tile.slice<2x12xf32, global> -> f32
        %n = arith.addf %v, %acc : f32
        tile.yield %n : f32
      }
      tile.sync <block>
      tile.compute [2, 12] sizes [1, 3] offsets [0, 1] (%i, %j) vector 1 reduce [] {
        %u = tile.load %s at #row : !tile.slice<1x1xf32, block> -> f32
        tile.store %u, %y at #at : f32, !tile.slice<2x12xf32, global>
        tile.yield
      }
    }
  }
}
