// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

tile.program @k1_lengths outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{K1: expected one size per extent}}
      tile.compute [4, 5] sizes [4] offsets [] () vector 0 reduce [] {
        tile.yield
      }
    }
  }
}

// -----

tile.program @k1_size outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{K1: size 6 does not fit extent 5}}
      tile.compute [4, 5] sizes [4, 6] offsets [] () vector 0 reduce [] {
        tile.yield
      }
    }
  }
}

// -----

tile.program @k2_offsets outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{K2: expected one distinct dim per offset}}
      tile.compute [4, 5] sizes [4, 5] offsets [0] () vector 0 reduce [] {
        tile.yield
      }
    }
  }
}

// -----

tile.program @k2_dims outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{K2: expected one distinct dim per offset}}
      tile.compute [4, 5] sizes [4, 5] offsets [2] (%i) vector 0 reduce [] {
        tile.yield
      }
    }
  }
}

// -----

tile.program @k3_inits outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      %s = tile.alloc : !tile.slice<4xf32, block>
      // expected-error @+1 {{K3: expected one map, init, kind and body argument per accumulator}}
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 1 reduce [1] into (%s : !tile.slice<4xf32, block>) at [affine_map<(i, j)[a, b] -> (i)>] inits [] kinds ["add"] {
      ^bb0(%acc: f32):
        tile.yield %acc : f32
      }
    }
  }
}

// -----

tile.program @k3_yield outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      %s = tile.alloc : !tile.slice<4xf32, block>
      // expected-error @+1 {{K3: the body must yield its accumulators}}
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 1 reduce [1] into (%s : !tile.slice<4xf32, block>) at [affine_map<(i, j)[a, b] -> (i)>] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%acc: f32):
        tile.yield
      }
    }
  }
}

// -----

tile.program @k4_reduced outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      %s = tile.alloc : !tile.slice<4xf32, block>
      // expected-error @+1 {{K4: accumulator map uses reduced dim 1}}
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 1 reduce [1] into (%s : !tile.slice<4xf32, block>) at [affine_map<(i, j)[a, b] -> (j)>] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%acc: f32):
        tile.yield %acc : f32
      }
    }
  }
}

// -----

tile.program @k5_vector outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{K5: vector dim 2 of 2 dims}}
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 2 reduce [] {
        tile.yield
      }
    }
  }
}

// -----

tile.program @k3_goes_on_without_micro_kernel outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      %s = tile.alloc : !tile.slice<4xf32, block>
      // expected-error @+1 {{K3: only a micro kernel can continue from the values in the slice}}
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 1 reduce [1] into (%s : !tile.slice<4xf32, block>) at [affine_map<(i, j)[a, b] -> (i)>] inits [unit] kinds ["add"] {
      ^bb0(%acc: f32):
        tile.yield %acc : f32
      }
    }
  }
}

// -----

tile.program @k6_no_maximum outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      %s = tile.alloc : !tile.slice<4xf32, block>
      // expected-error @+1 {{K6: a running accumulator is a maximum of f32, with a block of points}}
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 1 reduce [1] into (%s : !tile.slice<4xf32, block>) at [affine_map<(i, j)[a, b] -> (i)>] inits [0.0 : f32] kinds ["add"] running <0 every 16> {
      ^bb0(%acc: f32):
        tile.yield %acc : f32
      }
    }
  }
}

// -----

tile.program @k6_across_lanes outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      %s = tile.alloc : !tile.slice<4xf32, block>
      // expected-error @+1 {{K6: a nest with a running maximum reduces the vector dim alone}}
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 0 reduce [1] into (%s : !tile.slice<4xf32, block>) at [affine_map<(i, j)[a, b] -> (i)>] inits [0xFF800000 : f32] kinds ["maximumf"] running <0 every 16> {
      ^bb0(%acc: f32):
        tile.yield %acc : f32
      }
    }
  }
}

// -----

tile.program @k6_no_sum outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      %s = tile.alloc : !tile.slice<4xf32, block>
      // expected-error @+1 {{K6: accumulator 1 depends on the running maximum and is not a sum of f32 from zero}}
      tile.compute [4, 5] sizes [4, 5] offsets [] () vector 1 reduce [1] into (%s, %s : !tile.slice<4xf32, block>, !tile.slice<4xf32, block>) at [affine_map<(i, j)[a, b] -> (i)>, affine_map<(i, j)[a, b] -> (i)>] inits [0xFF800000 : f32, 1.0 : f32] kinds ["maximumf", "mul"] running <0 every 16> {
      ^bb0(%max: f32, %product: f32):
        %v = tile.load %x at affine_map<(i, j)[a, b] -> (i, j)> : !tile.slice<4x5xf32, global> -> f32
        %n = arith.maximumf %v, %max : f32
        %d = arith.subf %v, %n : f32
        %p = arith.mulf %d, %product : f32
        tile.yield %n, %p : f32, f32
      }
    }
  }
}

// -----

tile.program @k7_no_micro_kernel outputs 0 {
^bb0(%x: !tile.slice<4x5xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{K7: only a contraction with a micro kernel has a gemm}}
      tile.compute [4, 5] sizes [1, 5] offsets [0] (%i) vector 1 reduce [] attributes {gemm = #tile.gemm<m = 1, n = 1, step = 8, stages = 2>} {
        tile.yield
      }
    }
  }
}
