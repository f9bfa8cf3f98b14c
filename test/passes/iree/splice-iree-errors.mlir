// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-splice-iree --verify-diagnostics

module {
  module @tilewright_kernels {
  }
  func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {
    // expected-error @+1 {{no compiled kernel 'k'; run the code generation passes first}}
    %y = tile.launch @tilewright_kernels::@k(%x) : (tensor<7xf32>) -> tensor<7xf32>
    return %y : tensor<7xf32>
  }
}
