// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-splice-iree=object=kernels.o --mlir-print-op-generic \
// RUN:   | FileCheck %s

// Kernels see bytes, so they read the source of a reshape: for a reshape with several readers, IREE would copy a tensor
// that was updated in place. A tensor that a result overwrites keeps its type.
// CHECK-DAG: %[[UPDATED:.*]] = "state.update"
// CHECK-DAG: %[[EXPANDED:.*]] = "tensor.expand_shape"(%[[UPDATED]])
// CHECK: "flow.dispatch"(%[[UPDATED]]) {{.*}} : (tensor<35xf32>) -> tensor<7xf32>
// CHECK: "flow.dispatch"(%[[EXPANDED]]) {{.*}} : (tensor<5x7xf32>) -> tensor<5x7xf32>
// CHECK: "flow.dispatch"(%{{.*}}) {{.*}} : (tensor<?x7xf32>) -> tensor<7xf32>
module {
  module @tilewright_kernels {
    llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) -> i32
        attributes {tile.workgroups = 3 : i64, tile.outputs = 1 : i64} {
      %0 = llvm.mlir.constant(0 : i32) : i32
      llvm.return %0 : i32
    }
  }
  func.func @main(%x: tensor<35xf32>, %d: tensor<?xf32>, %n: index)
      -> (tensor<7xf32>, tensor<5x7xf32>, tensor<7xf32>) {
    %u = "state.update"(%x) : (tensor<35xf32>) -> tensor<35xf32>
    %e = tensor.expand_shape %u [[0, 1]] output_shape [5, 7] : tensor<35xf32> into tensor<5x7xf32>
    %y = tile.launch @tilewright_kernels::@k(%e) : (tensor<5x7xf32>) -> tensor<7xf32>
    %z = tile.launch @tilewright_kernels::@k(%e) {tied = array<i64: 0>} : (tensor<5x7xf32>) -> tensor<5x7xf32>
    %f = tensor.expand_shape %d [[0, 1]] output_shape [%n, 7] : tensor<?xf32> into tensor<?x7xf32>
    %v = tile.launch @tilewright_kernels::@k(%f) : (tensor<?x7xf32>) -> tensor<7xf32>
    return %y, %z, %v : tensor<7xf32>, tensor<5x7xf32>, tensor<7xf32>
  }
}
