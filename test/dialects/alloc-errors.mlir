// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

tile.program @b1_space outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{B1: only dense block slices are allocated}}
      %a = tile.alloc : !tile.slice<4xf32, global>
    }
  }
}

// -----

tile.program @b1_strides outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{B1: only dense block slices are allocated}}
      %a = tile.alloc : !tile.slice<4xf32, block, strides [2]>
    }
  }
}
