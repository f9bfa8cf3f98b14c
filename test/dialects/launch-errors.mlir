// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

module {
  tile.program @k outputs 1 {
  ^bb0(%x: !tile.slice<8xf32, global>, %y: !tile.slice<8xf32, global>):
  }
  func.func @h1_bindings_differ(%a: tensor<7xf32>) -> tensor<7xf32> {
    // expected-error @+1 {{H1: inputs and results do not fit the bindings of @k}}
    %r = tile.launch @k(%a) : (tensor<7xf32>) -> tensor<7xf32>
    return %r : tensor<7xf32>
  }
}
