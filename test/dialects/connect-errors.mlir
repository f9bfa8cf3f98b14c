// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @c1_scope(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: a launch edge leaves the subprogram; it cannot be connected inside}}
  %c = tile.connect %x <launch> : tensor<4xf32>
  return
}

// -----

func.func @c2_wide(%x: tensor<4xf32>) {
  // expected-error @+1 {{C2: only bf16 and f16 values are handed over unrounded, at scope thread}}
  %c = tile.connect %x <thread> unrounded : tensor<4xf32>
  return
}

// -----

func.func @c2_block(%x: tensor<4xbf16>) {
  // expected-error @+1 {{C2: only bf16 and f16 values are handed over unrounded, at scope thread}}
  %c = tile.connect %x <block> unrounded : tensor<4xbf16>
  return
}
