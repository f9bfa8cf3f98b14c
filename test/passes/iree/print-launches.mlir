// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-print-launches=output=%t.json -o /dev/null
// RUN: FileCheck %s < %t.json

// Launches are printed in order, with numbered tensors; a view has the number of its source.
// CHECK: "kernels": "module @tilewright_kernels {{.*}}llvm.func @k({{.*}}"
// CHECK: "launches": [
// CHECK: "dynamic_shared_bytes": 65536,
// CHECK: "inputs": [
// CHECK-NEXT: 0,
// CHECK-NEXT: 1
// CHECK: "kernel": "k",
// CHECK: "outputs": [
// CHECK-NEXT: 2
// CHECK: "threads": 256,
// CHECK: "workgroups": 3
// CHECK: "dynamic_shared_bytes": 0,
// CHECK: "inputs": [
// CHECK-NEXT: 2,
// CHECK-NEXT: 3,
// CHECK-NEXT: 4
// CHECK: "kernel": "l",
// CHECK: "results": [
// CHECK-NEXT: {
// CHECK-NEXT: "shape": [
// CHECK-NEXT: 1,
// CHECK-NEXT: 2
// CHECK-NEXT: ],
// CHECK-NEXT: "tensor": 5
// CHECK-NEXT: },
// CHECK-NEXT: {
// CHECK-NEXT: "argument": 0
// CHECK: "tensors": [
// CHECK: "argument": 0,
// CHECK: "element": "f32",
// CHECK: "global": "{{.*}}stream.parameter.named<\"model\"::\"w\">
// CHECK: "base64": "AACAPwAAAEA="
// CHECK: "splat": false
// CHECK: "function": "\"func.func\"() {{.*}}(tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>, sym_name = \"tensor_4\"
// CHECK-SAME: \"tensor.expand_shape\"(%arg0){{.*}}\"foreign.op\"(%{{.*}}, %arg1)
// CHECK: "inputs": [
// CHECK-NEXT: 2,
// CHECK-NEXT: 1
// CHECK: "loc": "loc(\"theirs\")"
// CHECK: "op": "foreign.op"
module {
  "util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<2xf32>, sym_name = "w"}> : () -> ()
  module @tilewright_kernels {
    gpu.module @kernels {
      llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>) attributes {tile.workgroups = 3 : i64,
          tile.outputs = 1 : i64, tile.block_bytes = 65536 : i64, tile.threads = 256 : i64} {
        llvm.return
      }
      llvm.func @l(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %d: !llvm.ptr<1>) attributes {
          tile.workgroups = 1 : i64, tile.outputs = 1 : i64, tile.block_bytes = 64 : i64, tile.threads = 256 : i64} {
        llvm.return
      }
    }
  }
  func.func @main(%view: !hal.buffer_view, %fence: !hal.fence) -> (!hal.buffer_view, !hal.buffer_view) {
    %x = "hal.tensor.import"(%view, %fence) : (!hal.buffer_view, !hal.fence) -> tensor<2xf32>
    %w = "util.global.load"() <{global = @w}> : () -> tensor<2xf32>
    %y = tile.launch @tilewright_kernels::@k(%x, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %v = tensor.expand_shape %y [[0, 1]] output_shape [1, 2] : tensor<2xf32> into tensor<1x2xf32>
    %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %e = tensor.collapse_shape %v [[0, 1]] : tensor<1x2xf32> into tensor<2xf32>
    %f = "foreign.op"(%e, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("theirs")
    %z = tile.launch @tilewright_kernels::@l(%v, %c, %f)
        : (tensor<1x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %u = tensor.expand_shape %z [[0, 1]] output_shape [1, 2] : tensor<2xf32> into tensor<1x2xf32>
    %b = "hal.tensor.barrier"(%u, %fence) : (tensor<1x2xf32>, !hal.fence) -> tensor<1x2xf32>
    %r = "hal.tensor.export"(%b) : (tensor<1x2xf32>) -> !hal.buffer_view
    return %r, %view : !hal.buffer_view, !hal.buffer_view
  }
}
