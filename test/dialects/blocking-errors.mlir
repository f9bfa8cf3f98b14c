// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{A10: vectors must be between 1 and 16, not 17}}
func.func private @a10_vectors() attributes {blocking = #tile.blocking<vectors = 17>}

// -----

// expected-error @+1 {{A10: unroll must be between 1 and 16, not 0}}
func.func private @a10_no_step() attributes {blocking = #tile.blocking<vectors = 4, unroll = 0>}

// -----

// expected-error @+1 {{A11: panel_k must not be negative, but is -8}}
func.func private @a11_panel() attributes {blocking = #tile.blocking<vectors = 4, panel_k = -8>}

// -----

// expected-error @+1 {{A11: prefetch must not be negative, but is -1}}
func.func private @a11_prefetch() attributes {blocking = #tile.blocking<vectors = 4, prefetch = -1>}

// -----

// expected-error @+1 {{A11: even_rows must not be negative, but is -1}}
func.func private @a11_rows() attributes {blocking = #tile.blocking<vectors = 4, even_rows = -1>}

// -----

func.func @no_blocking(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'tile.blocking' must be a #tile.blocking}}
  %r = tile.expr domain [4] reduce [] (%x) maps [affine_map<(i) -> (i)>] guards [unit] into [affine_map<(i) -> (i)>] inits [] {tile.blocking = array<i64: 4, 1, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%v: f32):
    tile.yield %v : f32
  }
  return %r : tensor<4xf32>
}
