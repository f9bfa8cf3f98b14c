// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @g1_one_index_per_dim(%x: tensor<9x5xf32>, %at: tensor<4xindex>) -> tensor<4xf32> {
  %r = tile.expr domain [4] reduce [] (%x, %at) maps [affine_map<(i) -> (0, 0)>, affine_map<(i) -> (i)>] guards [unit, unit] into [affine_map<(i) -> (i)>] inits [] : (tensor<9x5xf32>, tensor<4xindex>) -> tensor<4xf32> {
  ^bb0(%t: tensor<9x5xf32>, %k: index):
    // expected-error @+1 {{G1: expected one index per dim}}
    %v = tile.gather %t[%k] : tensor<9x5xf32> -> f32
    tile.yield %v : f32
  }
  return %r : tensor<4xf32>
}

// -----

func.func @g1_element(%x: tensor<9xf32>, %at: tensor<4xindex>) -> tensor<4xf64> {
  %r = tile.expr domain [4] reduce [] (%x, %at) maps [affine_map<(i) -> (0)>, affine_map<(i) -> (i)>] guards [unit, unit] into [affine_map<(i) -> (i)>] inits [] : (tensor<9xf32>, tensor<4xindex>) -> tensor<4xf64> {
  ^bb0(%t: tensor<9xf32>, %k: index):
    // expected-error @+1 {{G1: expected one index per dim of a tensor or of a slice of global memory, and its element}}
    %v = tile.gather %t[%k] : tensor<9xf32> -> f64
    tile.yield %v : f64
  }
  return %r : tensor<4xf64>
}
