// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

tile.program @m2_rank outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 1 reduce [] {
        %c = arith.constant 0.0 : f32
        // expected-error @+1 {{M2: the map has 1 results for a slice of rank 2}}
        tile.store %c, %x at affine_map<(i, j)[a, b] -> (i)> : f32, !tile.slice<4x5xf32, global>
        tile.yield
      }
    }
  }
}

// -----

tile.program @m2_element outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 1 reduce [] {
        %c = arith.constant 0.0 : f64
        // expected-error @+1 {{M2: the value must have the slice's element type}}
        tile.store %c, %x at affine_map<(i, j)[a, b] -> (i, j)> : f64, !tile.slice<4x5xf32, global>
        tile.yield
      }
    }
  }
}

// -----

tile.program @m3_buffer outputs 0 {
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      %b = tile.alloc : !tile.slice<4xf32, block>
      tile.compute [4] sizes [4] offsets [] () vector 0 reduce [] {
        %c = arith.constant 0.0 : f32
        // expected-error @+1 {{M3: only a store to a global slice is streamed}}
        tile.store %c, %b at affine_map<(i)[a] -> (i)> streamed : f32, !tile.slice<4xf32, block>
        tile.yield
      }
    }
  }
}
