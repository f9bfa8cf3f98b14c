// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

tile.program @m1_rank outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 1 reduce [] {
        %c = arith.constant 0.0 : f32
        // expected-error @+1 {{M1: the map has 1 results for a slice of rank 2}}
        %v = tile.load %x at affine_map<(i, j)[a, b] -> (i)> : !tile.slice<4x5xf32, global> -> f32
        tile.yield
      }
    }
  }
}

// -----

tile.program @m1_space outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 1 reduce [] {
        %c = arith.constant 0.0 : f32
        // expected-error @+1 {{M1: expected 2 dims and at most 2 symbols, got 3 and 0}}
        %v = tile.load %x at affine_map<(i, j, k) -> (i, k)> : !tile.slice<4x5xf32, global> -> f32
        tile.yield
      }
    }
  }
}

// -----

tile.program @m1_guard outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 1 reduce [] {
        %c = arith.constant 0.0 : f32
        // expected-error @+1 {{M1: expected 2 dims and at most 2 symbols, got 1 and 0}}
        %v = tile.load %x at affine_map<(i, j)[a, b] -> (i, j)> guard affine_set<(i) : (i >= 0)> : !tile.slice<4x5xf32, global> -> f32
        tile.yield
      }
    }
  }
}

// -----

tile.program @m1_element outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 1 reduce [] {
        %c = arith.constant 0.0 : f32
        // expected-error @+1 {{M1: the value must have the slice's element type}}
        %v = tile.load %x at affine_map<(i, j)[a, b] -> (i, j)> : !tile.slice<4x5xf32, global> -> f64
        tile.yield
      }
    }
  }
}
