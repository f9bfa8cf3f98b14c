// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-print-launches=output=%t.json -o /dev/null
// RUN: FileCheck %s < %t.json

// A loop is printed with the tensors that it carries, its steps, and its body. The offsets of slices are linear in the
// number of the step: here the steps 1, 3 and 5 of a sequence of parts of 2 elements, read from its end.
// CHECK: "launches": [
// CHECK-NEXT: {
// CHECK-NEXT: "loop": {
// CHECK-NEXT: "body": [
// CHECK: "slice": {
// CHECK-NEXT: "offset": 10,
// CHECK-NEXT: "result": [[PART:[0-9]+]],
// CHECK-NEXT: "stride": -4,
// CHECK-NEXT: "whole": [[SEQUENCE:[0-9]+]]
// CHECK: "inputs": [
// CHECK-NEXT: [[PART]],
// CHECK-NEXT: [[BEFORE:[0-9]+]]
// CHECK: "kernel": "k",
// CHECK: "outputs": [
// CHECK-NEXT: [[AFTER:[0-9]+]]
// CHECK: "update": {
// CHECK-NEXT: "offset": 2,
// CHECK-NEXT: "part": [[AFTER]],
// CHECK-NEXT: "result": [[COLLECTED:[0-9]+]],
// CHECK-NEXT: "stride": 4,
// CHECK-NEXT: "whole": {{[0-9]+}}
// CHECK: "carried": [
// CHECK-NEXT: {
// CHECK-NEXT: "argument": [[BEFORE]],
// CHECK-NEXT: "initial": 0,
// CHECK-NEXT: "next": [[AFTER]],
// CHECK: "next": [[COLLECTED]],
// CHECK: "op": "scf.for",
// CHECK-NEXT: "steps": 3
// A loop that may end early has its name only, and what comes from it is no function of other tensors.
// CHECK: "loop": {
// CHECK-NEXT: "op": "scf.while"
// CHECK-NEXT: }
// CHECK: "tensors": [
// CHECK-NOT: scf.while{{.*}}sym_name
module {
  module @tilewright_kernels {
    gpu.module @kernels {
      llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>) attributes {tile.workgroups = 3 : i64,
          tile.outputs = 1 : i64, tile.block_bytes = 64 : i64, tile.threads = 256 : i64} {
        llvm.return
      }
    }
  }
  func.func @main(%view: !hal.buffer_view, %fence: !hal.fence, %c: i1) -> (!hal.buffer_view, !hal.buffer_view) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c6 = arith.constant 6 : index
    %x = "hal.tensor.import"(%view, %fence) : (!hal.buffer_view, !hal.fence) -> tensor<7x2xf32>
    %first = arith.constant dense<1.0> : tensor<2xf32>
    %e = tensor.empty() : tensor<7x2xf32>
    %r:2 = scf.for %i = %c1 to %c6 step %c2 iter_args(%h = %first, %y = %e) -> (tensor<2xf32>, tensor<7x2xf32>) {
      %back = arith.subi %c6, %i : index
      %part = tensor.extract_slice %x[%back, 0] [1, 2] [1, 1] : tensor<7x2xf32> to tensor<2xf32>
      %next = tile.launch @tilewright_kernels::@k(%part, %h) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %all = tensor.insert_slice %next into %y[%i, 0] [1, 2] [1, 1] : tensor<2xf32> into tensor<7x2xf32>
      scf.yield %next, %all : tensor<2xf32>, tensor<7x2xf32>
    }
    %w = scf.while (%h = %r#0) : (tensor<2xf32>) -> tensor<2xf32> {
      scf.condition(%c) %h : tensor<2xf32>
    } do {
    ^bb0(%h: tensor<2xf32>):
      %next = tile.launch @tilewright_kernels::@k(%h, %h) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      scf.yield %next : tensor<2xf32>
    }
    %out = "hal.tensor.export"(%w) : (tensor<2xf32>) -> !hal.buffer_view
    %outs = "hal.tensor.export"(%r#1) : (tensor<7x2xf32>) -> !hal.buffer_view
    return %out, %outs : !hal.buffer_view, !hal.buffer_view
  }
}
