// RUN: tilewright-opt %s --tile-print-launches="output=%t.json for-runtime" -o /dev/null
// RUN: FileCheck %s < %t.json

// A function on tensors is a part of a program, such as tuning times. Its arguments have numbers, and what it computes
// of them is no argument.
// CHECK: "tensors": [
// CHECK-NEXT: {
// CHECK-NEXT: "argument": 1,
// CHECK-NEXT: "element": "f32",
// CHECK: {
// CHECK-NEXT: "element": "f32",
// CHECK: "op": "linalg.transpose"
// CHECK-NOT: "argument"
module {
  module @tilewright_kernels {
    llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) attributes {tile.workgroups = 2 : i64,
        tile.outputs = 1 : i64, tile.block_bytes = 64 : i64} {
      llvm.return
    }
  }
  func.func @main(%x: tensor<2x3xf32>, %y: tensor<5xf32>) -> tensor<7xf32> {
    %empty = tensor.empty() : tensor<3x2xf32>
    %t = linalg.transpose ins(%x : tensor<2x3xf32>) outs(%empty : tensor<3x2xf32>) permutation = [1, 0]
    %z = tile.launch @tilewright_kernels::@k(%y, %t) : (tensor<5xf32>, tensor<3x2xf32>) -> tensor<7xf32>
    return %z : tensor<7xf32>
  }
}
