// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-print-launches="output=%t.json for-runtime" -o /dev/null
// RUN: FileCheck %s < %t.json

// A tensor that an initializer computes has the number of the result of the function that returns it. A global that the
// program changes is no constant, and a store to it is something that a runtime must not leave out.
// CHECK: "at_load": {
// CHECK-NEXT: "function": "main$at_load",
// CHECK-NEXT: "results": [
// CHECK-NEXT: {
// CHECK-NEXT: "element": "i8",
// CHECK-NEXT: "shape": [
// CHECK-NEXT: 5
// CHECK: "element": "f32",
// CHECK-NEXT: "shape": [
// CHECK-NEXT: 2
// CHECK: "launches": [
// CHECK: "inputs": [
// CHECK-NEXT: 0,
// CHECK-NEXT: 1
// CHECK: "op": "util.global.store"
// CHECK: "tensors": [
// CHECK-NEXT: {
// CHECK-NEXT: "at_load": 1,
// CHECK-NEXT: "element": "f32",
// CHECK: "global": ""
module {
  "util.global"() <{sym_name = "main$at_load_0", type = tensor<5xi8>}> : () -> ()
  "util.global"() <{sym_name = "main$at_load_1", type = tensor<2xf32>}> : () -> ()
  "util.global"() <{initial_value = #stream.parameter.named<"model"::"m"> : tensor<2xf32>, is_mutable, sym_name = "m"}>
      : () -> ()
  module @tilewright_kernels {
    llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) -> i32
        attributes {tile.workgroups = 3 : i64, tile.outputs = 1 : i64, tile.block_bytes = 100 : i64} {
      %0 = llvm.mlir.constant(0 : i32) : i32
      llvm.return %0 : i32
    }
  }
  func.func @main() -> tensor<2xf32> {
    %v = "util.global.load"() <{global = @main$at_load_1}> : () -> tensor<2xf32>
    %m = "util.global.load"() <{global = @m}> : () -> tensor<2xf32>
    %y = tile.launch @tilewright_kernels::@k(%v, %m) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "util.global.store"(%y) <{global = @m}> : (tensor<2xf32>) -> ()
    return %y : tensor<2xf32>
  }
  "util.func"() <{function_type = () -> (!hal.buffer_view, !hal.buffer_view), sym_name = "main$at_load"}> ({
    %0 = "util.global.load"() <{global = @main$at_load_0}> : () -> tensor<5xi8>
    %1 = "util.global.load"() <{global = @main$at_load_1}> : () -> tensor<2xf32>
    %2 = "hal.tensor.export"(%0) : (tensor<5xi8>) -> !hal.buffer_view
    %3 = "hal.tensor.export"(%1) : (tensor<2xf32>) -> !hal.buffer_view
    "util.return"(%2, %3) : (!hal.buffer_view, !hal.buffer_view) -> ()
  }) : () -> ()
}
