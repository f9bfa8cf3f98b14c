// RUN: tilewright-opt %s --tile-verify-planned --split-input-file --verify-diagnostics

#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>

// This subprogram is valid.
func.func @legal(%x: tensor<5x5xf32>) -> tensor<5x5xf32> {
  %r = tile.subprogram "k" (%x) extents [5, 5] tiles [1, 5] grid [0] vector 1 workgroups 1
      : (tensor<5x5xf32>) -> tensor<5x5xf32> {
  ^bb0(%a: tensor<5x5xf32>):
    %s = tile.expr domain [5, 5] reduce [1] (%a) maps [#id] guards [unit] into [#row] inits [0.0 : f32] dims [0, 1]
        : (tensor<5x5xf32>) -> tensor<5xf32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    %c = tile.connect %s <block> : tensor<5xf32>
    %y = tile.expr domain [5, 5] reduce [] (%a, %c) maps [#id, #row] guards [unit, unit] into [#id] inits []
        dims [0, 1] : (tensor<5x5xf32>, tensor<5xf32>) -> tensor<5x5xf32> {
    ^bb0(%v: f32, %w: f32):
      %n = arith.subf %v, %w : f32
      tile.yield %n : f32
    }
    tile.yield %y : tensor<5x5xf32>
  }
  return %r : tensor<5x5xf32>
}

// -----

#id = affine_map<(i) -> (i)>
func.func @g1_missing_connect(%x: tensor<5xf32>) -> tensor<5xf32> {
  %r = tile.subprogram "k" (%x) extents [5] tiles [5] grid [] vector 0 workgroups 1 : (tensor<5xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<5xf32>):
    %b = tile.expr domain [5] reduce [] (%a) maps [#id] guards [unit] into [#id] inits [] : (tensor<5xf32>) -> tensor<5xf32> {
    ^bb0(%v: f32):
      tile.yield %v : f32
    }
    // expected-error @+1 {{G1: an edge between two expressions needs a tile.connect}}
    %c = tile.expr domain [5] reduce [] (%b) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<5xf32>) -> tensor<5xf32> {
    ^bb0(%v: f32):
      tile.yield %v : f32
    }
    tile.yield %c : tensor<5xf32>
  }
  return %r : tensor<5xf32>
}

// -----

func.func @g1_connected_input(%x: tensor<5xf32>) -> tensor<5xf32> {
  %r = tile.subprogram "k" (%x) extents [5] tiles [5] grid [] vector 0 workgroups 1 : (tensor<5xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<5xf32>):
    // expected-error @+1 {{G1: an edge comes from a tile.expr of the subprogram}}
    %c = tile.connect %a <block> : tensor<5xf32>
    tile.yield %c : tensor<5xf32>
  }
  return %r : tensor<5xf32>
}

// -----

#id = affine_map<(i) -> (i)>
func.func @g2_scope(%x: tensor<5xf32>) -> tensor<5xf32> {
  %r = tile.subprogram "k" (%x) extents [5] tiles [5] grid [] vector 0 workgroups 1 : (tensor<5xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<5xf32>):
    %b = tile.expr domain [5] reduce [] (%a) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<5xf32>) -> tensor<5xf32> {
    ^bb0(%v: f32):
      tile.yield %v : f32
    }
    // expected-error @+1 {{G2: scope cluster cannot be carried out yet; use thread or block}}
    %c = tile.connect %b <cluster> : tensor<5xf32>
    tile.yield %c : tensor<5xf32>
  }
  return %r : tensor<5xf32>
}

// -----

func.func @g2_reduction(%x: tensor<5xf32>) -> tensor<f32> {
  %r = tile.subprogram "k" (%x) extents [5] tiles [5] grid [] vector 0 workgroups 1 : (tensor<5xf32>) -> tensor<f32> {
  ^bb0(%a: tensor<5xf32>):
    %b = tile.expr domain [5] reduce [0] (%a) maps [affine_map<(i) -> (i)>] guards [unit] into [affine_map<(i) -> ()>]
        inits [0.0 : f32] dims [0] : (tensor<5xf32>) -> tensor<f32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    // expected-error @+1 {{G2: a reduction cannot be handed over at scope thread}}
    %c = tile.connect %b <thread> : tensor<f32>
    tile.yield %c : tensor<f32>
  }
  return %r : tensor<f32>
}

// -----

#id = affine_map<(i) -> (i)>
func.func @g3_dims(%x: tensor<5xf32>) -> tensor<5xf32> {
  %r = tile.subprogram "k" (%x) extents [5] tiles [5] grid [] vector 0 workgroups 1 : (tensor<5xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<5xf32>):
    // expected-error @+1 {{G3: a root needs dims}}
    %b = tile.expr domain [5] reduce [] (%a) maps [#id] guards [unit] into [#id] inits []
        : (tensor<5xf32>) -> tensor<5xf32> {
    ^bb0(%v: f32):
      tile.yield %v : f32
    }
    tile.yield %b : tensor<5xf32>
  }
  return %r : tensor<5xf32>
}

// -----

#id = affine_map<(i) -> (i)>
func.func @g4_missing(%x: tensor<5xf32>) -> tensor<5xf32> {
  %r = tile.subprogram "k" (%x) extents [5, 7] tiles [5, 1] grid [1] vector 0 workgroups 1
      : (tensor<5xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<5xf32>):
    // expected-error @+1 {{G4: lacks grid dim 1}}
    %b = tile.expr domain [5] reduce [] (%a) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<5xf32>) -> tensor<5xf32> {
    ^bb0(%v: f32):
      tile.yield %v : f32
    }
    tile.yield %b : tensor<5xf32>
  }
  return %r : tensor<5xf32>
}

// -----

func.func @g4_reduced(%x: tensor<5xf32>) -> tensor<f32> {
  %r = tile.subprogram "k" (%x) extents [5] tiles [1] grid [0] vector 0 workgroups 1 : (tensor<5xf32>) -> tensor<f32> {
  ^bb0(%a: tensor<5xf32>):
    // expected-error @+1 {{G4: reduces grid dim 0}}
    %b = tile.expr domain [5] reduce [0] (%a) maps [affine_map<(i) -> (i)>] guards [unit] into [affine_map<(i) -> ()>]
        inits [0.0 : f32] dims [0] : (tensor<5xf32>) -> tensor<f32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.yield %b : tensor<f32>
  }
  return %r : tensor<f32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>

// The transpose passes through a thread edge first: the check uses the access of the root.
func.func @g5_across_tiles(%x: tensor<5x5xf32>) -> tensor<5x5xf32> {
  %r = tile.subprogram "k" (%x) extents [5, 5] tiles [1, 5] grid [0] vector 1 workgroups 1
      : (tensor<5x5xf32>) -> tensor<5x5xf32> {
  ^bb0(%a: tensor<5x5xf32>):
    %b = tile.expr domain [5, 5] reduce [] (%a) maps [#id] guards [unit] into [#id] inits [] dims [0, 1]
        : (tensor<5x5xf32>) -> tensor<5x5xf32> {
    ^bb0(%v: f32):
      tile.yield %v : f32
    }
    %bc = tile.connect %b <block> : tensor<5x5xf32>
    %t = tile.expr domain [5, 5] reduce [] (%bc) maps [#t] guards [unit] into [#id] inits []
        : (tensor<5x5xf32>) -> tensor<5x5xf32> {
    ^bb0(%v: f32):
      tile.yield %v : f32
    }
    %tc = tile.connect %t <thread> : tensor<5x5xf32>
    // expected-error @+1 {{G5: reads another root across tiles of grid dim 0}}
    %y = tile.expr domain [5, 5] reduce [] (%tc) maps [#id] guards [unit] into [#id] inits [] dims [0, 1]
        : (tensor<5x5xf32>) -> tensor<5x5xf32> {
    ^bb0(%v: f32):
      tile.yield %v : f32
    }
    tile.yield %y : tensor<5x5xf32>
  }
  return %r : tensor<5x5xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @g6_needs_the_whole_sum(%x: tensor<6x77xf32>) -> tensor<6x77xf32> {
  // expected-error @+1 {{G6: dim 1 cannot be walked in blocks: an expression inside the walk reads a result that is complete only after it}}
  %r = tile.subprogram "k" (%x) extents [6, 77] tiles [1, 32] grid [0] vector 1 workgroups 1
      : (tensor<6x77xf32>) -> tensor<6x77xf32> {
  ^bb0(%a: tensor<6x77xf32>):
    %s = tile.expr domain [6, 77] reduce [1] (%a) maps [#id] guards [unit] into [#row] inits [0.0 : f32] dims [0, 1]
        : (tensor<6x77xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    %sc = tile.connect %s <block> : tensor<6xf32>
    %y = tile.expr domain [6, 77] reduce [] (%a, %sc) maps [#id, #row] guards [unit, unit] into [#id] inits []
        dims [0, 1] : (tensor<6x77xf32>, tensor<6xf32>) -> tensor<6x77xf32> {
    ^bb0(%v: f32, %sum: f32):
      %q = arith.divf %v, %sum : f32
      tile.yield %q : f32
    }
    tile.yield %y : tensor<6x77xf32>
  }
  return %r : tensor<6x77xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @g6_needs_the_form(%x: tensor<6x77xf32>) -> tensor<6xf32> {
  // expected-error @+1 {{G6: dim 1 cannot be walked in blocks: its maximum must be complete before it is used}}
  %r = tile.subprogram "k" (%x) extents [6, 77] tiles [1, 32] grid [0] vector 1 workgroups 1
      numerics <relaxed, fast> : (tensor<6x77xf32>) -> tensor<6xf32> {
  ^bb0(%a: tensor<6x77xf32>):
    %m = tile.expr domain [6, 77] reduce [1] (%a) maps [#id] guards [unit] into [#row] inits [0xFF800000 : f32]
        dims [0, 1] : (tensor<6x77xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.maximumf %v, %acc : f32
      tile.yield %n : f32
    }
    %mc = tile.connect %m <block> : tensor<6xf32>
    %s = tile.expr domain [6, 77] reduce [1] (%a, %mc) maps [#id, #row] guards [unit, unit] into [#row] inits [0.0 : f32]
        dims [0, 1] : (tensor<6x77xf32>, tensor<6xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %max: f32, %acc: f32):
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %n = arith.addf %e, %acc : f32
      tile.yield %n : f32
    }
    tile.yield %s : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @g7_counts_by_another_dim(%x: tensor<6x77xf32>) -> tensor<6xf32> {
  // expected-error @+1 {{G7: blocks of a dim can be left out only where tiles walk it}}
  %r = tile.subprogram "k" (%x) extents [6, 77] tiles [1, 32] grid [0] vector 1 workgroups 1
      numerics <relaxed, fast, forms = ["online softmax with a causal bound"]>
      {tile.counted = affine_map<(i, j) -> (j + 1)>} : (tensor<6x77xf32>) -> tensor<6xf32> {
  ^bb0(%a: tensor<6x77xf32>):
    %m = tile.expr domain [6, 77] reduce [1] (%a) maps [#id] guards [unit] into [#row] inits [0xFF800000 : f32]
        dims [0, 1] : (tensor<6x77xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.maximumf %v, %acc : f32
      tile.yield %n : f32
    }
    %mc = tile.connect %m <block> : tensor<6xf32>
    %s = tile.expr domain [6, 77] reduce [1] (%a, %mc) maps [#id, #row] guards [unit, unit] into [#row] inits [0.0 : f32]
        dims [0, 1] : (tensor<6x77xf32>, tensor<6xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %max: f32, %acc: f32):
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %n = arith.addf %e, %acc : f32
      tile.yield %n : f32
    }
    tile.yield %s : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}
