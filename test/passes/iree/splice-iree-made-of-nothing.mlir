// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-splice-iree=object=kernels.o --mlir-print-op-generic \
// RUN:   | FileCheck %s

// IREE 3.13 clones a dispatch without operands for its readers, and gives each clone the first result. So the first of
// two results is tied to an operand; the bindings of the kernel are the two results as before.
// CHECK: layout = #hal.pipeline.layout<bindings = [#hal.pipeline.binding<storage_buffer>, #hal.pipeline.binding<storage_buffer>]>
// CHECK-SAME: sym_name = "two_dispatch"
// CHECK: layout = #hal.pipeline.layout<bindings = [#hal.pipeline.binding<storage_buffer>]>
// CHECK-SAME: sym_name = "one_dispatch"
// CHECK: %[[MEMORY:.*]] = "flow.tensor.empty"()
// CHECK: "flow.dispatch"(%[[MEMORY]]) {entry_points = [@tilewright_kernels::@two_dispatch]
// CHECK-SAME: operandSegmentSizes = array<i32: 0, 1, 0, 0>, tied_operands = [0 : index, -1 : index]
// CHECK-SAME: (tensor<7xi64>) -> (tensor<7xi64>, tensor<5xi64>)
// A single result is always the first, so it needs no operand.
// CHECK: "flow.dispatch"() {entry_points = [@tilewright_kernels::@one_dispatch]
module {
  module @tilewright_kernels {
    llvm.func @two(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) -> i32
        attributes {tile.workgroups = 1 : i64, tile.outputs = 2 : i64} {
      %0 = llvm.mlir.constant(0 : i32) : i32
      llvm.return %0 : i32
    }
    llvm.func @one(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) -> i32
        attributes {tile.workgroups = 1 : i64, tile.outputs = 1 : i64} {
      %0 = llvm.mlir.constant(0 : i32) : i32
      llvm.return %0 : i32
    }
  }
  func.func @main() -> (tensor<7xi64>, tensor<5xi64>, tensor<3xi64>) {
    %a, %b = tile.launch @tilewright_kernels::@two() : () -> (tensor<7xi64>, tensor<5xi64>)
    %c = tile.launch @tilewright_kernels::@one() : () -> tensor<3xi64>
    return %a, %b, %c : tensor<7xi64>, tensor<5xi64>, tensor<3xi64>
  }
}
