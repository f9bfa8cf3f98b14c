// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @e1_domain(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E1: the domain must be positive and the reduced dims among its dims}}
  %r = tile.expr domain [4, 0] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e1_reduced(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E1: the domain must be positive and the reduced dims among its dims}}
  %r = tile.expr domain [4, 5] reduce [2] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e1_maps(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E1: expected one map and one guard or unit per input}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e1_rank(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E1: map or guard of input 0 does not fit the domain and the input's rank}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e1_guard(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E1: map or guard of input 0 does not fit the domain and the input's rank}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [affine_set<(i) : (i >= 0)>] into [affine_map<(i, j) -> (i, j)>] inits [] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e2_outside(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E2: input 0 is read at [1, 5] along dim 1 of size 5}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j + 1)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e3_maps(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E3: expected one result map per result}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [] inits [] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e3_rank(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E3: result map 0 does not fit the domain and the result's rank}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i)>] inits [] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e3_shape(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E3: result map 0 is not a projected permutation with the result's shape}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (j, i)>] inits [] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e3_parallel(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E3: result map 0 must use every parallel dim and no reduced one}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i)>] inits [] : (tensor<4x5xf32>) -> tensor<4xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e3_reduced(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E3: result map 0 must use every parallel dim and no reduced one}}
  %r = tile.expr domain [4, 5] reduce [1] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [0.0 : f32] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32, %acc: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e4_missing(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E4: a reduction has an init per result, other expressions have none}}
  %r = tile.expr domain [4, 5] reduce [1] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i)>] inits [] : (tensor<4x5xf32>) -> tensor<4xf32> {
  ^bb0(%v: f32, %acc: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e4_superfluous(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E4: a reduction has an init per result, other expressions have none}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [0.0 : f32] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e5_arguments(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E5: body arguments must be the input elements or tables, then the accumulators}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f64):
    %w = arith.truncf %v : f64 to f32
    tile.yield %w : f32
  }
  return
}

// -----

func.func @e5_yield(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E5: the body must yield one element per result}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v, %v : f32, f32
  }
  return
}

// -----

func.func @e6_repeated(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E6: dims must map each domain dim to a dim of the iteration space}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [] dims [0, 0] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e6_length(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E6: dims must map each domain dim to a dim of the iteration space}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [] dims [0] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e6_nowhere(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E6: dims must map each domain dim to a dim of the iteration space}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [] dims [0, -1] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e6_extent(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %r = tile.subprogram "k" (%x) extents [5, 4] tiles [5, 4] grid [] vector 0 workgroups 1
      : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%a: tensor<4x5xf32>):
    // expected-error @+1 {{E6: dims must map each domain dim to a dim of the iteration space of the same extent}}
    %y = tile.expr domain [4, 5] reduce [] (%a) maps [affine_map<(i, j) -> (i, j)>] guards [unit]
        into [affine_map<(i, j) -> (i, j)>] inits [] dims [0, 1] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
    ^bb0(%v: f32):
      tile.yield %v : f32
    }
    tile.yield %y : tensor<4x5xf32>
  }
  return %r : tensor<4x5xf32>
}

// -----

func.func @e7_rank(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E7: a tiling must have one size per domain dim}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [] tilings [#tile.tiling<block, sizes = [4], order = [0]>] : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

// An accumulator may be wider than the result, not narrower.
func.func @e5_narrow_accumulator(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E5: body arguments must be the input elements or tables, then the accumulators}}
  %r = tile.expr domain [4, 5] reduce [1] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i)>] inits [0.0 : f16] : (tensor<4x5xf32>) -> tensor<4xf32> {
  ^bb0(%v: f32, %acc: f16):
    tile.yield %acc : f16
  }
  return
}

// -----

func.func @e8_nothing_accumulated(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E8: nothing is accumulated in order}}
  %r = tile.expr domain [4, 5] reduce [] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i, j)>] inits [] in_order : (tensor<4x5xf32>) -> tensor<4x5xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return
}

// -----

func.func @e9_no_contraction(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E9: a micro kernel computes a reduction of one result over two inputs}}
  %r = tile.expr domain [4, 5] reduce [1] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i)>] inits [0.0 : f32] {micro_kernel = "fma-6x4"} : (tensor<4x5xf32>) -> tensor<4xf32> {
  ^bb0(%v: f32, %acc: f32):
    tile.yield %acc : f32
  }
  return
}

// -----

func.func @e10_no_micro_kernel(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{E10: only a contraction with a micro kernel has a gemm}}
  %r = tile.expr domain [4, 5] reduce [1] (%x) maps [affine_map<(i, j) -> (i, j)>] guards [unit] into [affine_map<(i, j) -> (i)>] inits [0.0 : f32] {gemm = #tile.gemm<m = 1, n = 1, step = 8, stages = 2>} : (tensor<4x5xf32>) -> tensor<4xf32> {
  ^bb0(%v: f32, %acc: f32):
    tile.yield %acc : f32
  }
  return
}
