// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

tile.program @v1_shape outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      %a = tile.alloc : !tile.slice<5x4xf32, block>
      // expected-error @+1 {{V1: expected dense slices of one shape and element type}}
      tile.move %x, %a : !tile.slice<4x5xf32, global>, !tile.slice<5x4xf32, block>
    }
  }
}

// -----

tile.program @v1_element outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      %a = tile.alloc : !tile.slice<4x5xf16, block>
      // expected-error @+1 {{V1: expected dense slices of one shape and element type}}
      tile.move %x, %a : !tile.slice<4x5xf32, global>, !tile.slice<4x5xf16, block>
    }
  }
}
