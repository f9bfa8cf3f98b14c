// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @c1_scope(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: a launch edge leaves the subprogram; it cannot be connected inside}}
  %c = tile.connect %x <launch> : tensor<4xf32>
  return
}
