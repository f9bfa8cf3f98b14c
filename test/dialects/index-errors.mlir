// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @i1_results() -> tensor<4xindex> {
  %r = tile.expr domain [4] reduce [] () maps [] guards [] into [affine_map<(i) -> (i)>] inits [] : () -> tensor<4xindex> {
    // expected-error @+1 {{I1: expected a map with one result}}
    %i = tile.index affine_map<(i) -> (i, i)>
    tile.yield %i : index
  }
  return %r : tensor<4xindex>
}

// -----

func.func @i1_rank() -> tensor<4xindex> {
  %r = tile.expr domain [4] reduce [] () maps [] guards [] into [affine_map<(i) -> (i)>] inits [] : () -> tensor<4xindex> {
    // expected-error @+1 {{I1: expected 1 dims and at most 0 symbols, got 2 and 0}}
    %i = tile.index affine_map<(i, j) -> (i)>
    tile.yield %i : index
  }
  return %r : tensor<4xindex>
}
