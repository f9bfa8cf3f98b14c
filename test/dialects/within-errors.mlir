// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @w1_rank() -> tensor<4xi1> {
  %r = tile.expr domain [4] reduce [] () maps [] guards [] into [affine_map<(i) -> (i)>] inits [] : () -> tensor<4xi1> {
    // expected-error @+1 {{W1: expected 1 dims and at most 0 symbols, got 1 and 1}}
    %i = tile.within affine_set<(i)[s] : (i - s >= 0)>
    tile.yield %i : i1
  }
  return %r : tensor<4xi1>
}
