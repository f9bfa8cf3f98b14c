// RUN: not tilewright-opt %s --allow-unregistered-dialect --tile-import-iree 2>&1 | FileCheck %s

// Later passes would take the inner module for one of kernels.
// CHECK: error: a module in a module is not supported; move its functions into the outer one
module @outer {
  module @inner {
    func.func @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {
      return %arg0 : tensor<4xf32>
    }
  }
}
