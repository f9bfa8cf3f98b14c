// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-print-launches=output=%t.json -o /dev/null
// RUN: FileCheck %s < %t.json

// Parts of tensors that move in some steps only are printed with the first and the last of these: a read that stays at
// the last part of a sequence, and a result that begins with step 3.
// CHECK: "slice": {
// CHECK-NEXT: "from": 0,
// CHECK-NEXT: "offset": 0,
// CHECK-NEXT: "result": {{[0-9]+}},
// CHECK-NEXT: "stride": 2,
// CHECK-NEXT: "to": 1,
// CHECK: "update": {
// CHECK-NEXT: "from": 3,
// CHECK-NEXT: "offset": -6,
// CHECK-NEXT: "part": {{[0-9]+}},
// CHECK-NEXT: "result": {{[0-9]+}},
// CHECK-NEXT: "stride": 2,
// CHECK-NEXT: "to": 9223372036854775807,
// A position that passes its bound between two steps is no such part.
// CHECK-NOT: "slice"
module {
  module @tilewright_kernels {
    gpu.module @kernels {
      llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {tile.workgroups = 3 : i64,
          tile.outputs = 1 : i64, tile.block_bytes = 64 : i64, tile.threads = 256 : i64} {
        llvm.return
      }
    }
  }
  func.func @main(%view: !hal.buffer_view, %fence: !hal.fence) -> (!hal.buffer_view, !hal.buffer_view) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c5 = arith.constant 5 : index
    %x = "hal.tensor.import"(%view, %fence) : (!hal.buffer_view, !hal.fence) -> tensor<2x2xf32>
    %e = tensor.empty() : tensor<2x2xf32>
    %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%y = %e) -> (tensor<2x2xf32>) {
      %read = arith.minsi %c1, %i : index
      %behind = arith.subi %i, %c3 : index
      %written = arith.maxsi %behind, %c0 : index
      %part = tensor.extract_slice %x[%read, 0] [1, 2] [1, 1] : tensor<2x2xf32> to tensor<2xf32>
      %next = tile.launch @tilewright_kernels::@k(%part) : (tensor<2xf32>) -> tensor<2xf32>
      %all = tensor.insert_slice %next into %y[%written, 0] [1, 2] [1, 1] : tensor<2xf32> into tensor<2x2xf32>
      scf.yield %all : tensor<2x2xf32>
    }
    %s = scf.for %i = %c0 to %c5 step %c1 iter_args(%y = %e) -> (tensor<2x2xf32>) {
      %twice = arith.muli %i, %c2 : index
      %read = arith.minsi %twice, %c1 : index
      %part = tensor.extract_slice %x[%read, 0] [1, 2] [1, 1] : tensor<2x2xf32> to tensor<2xf32>
      %next = tile.launch @tilewright_kernels::@k(%part) : (tensor<2xf32>) -> tensor<2xf32>
      %all = tensor.insert_slice %next into %y[%c0, 0] [1, 2] [1, 1] : tensor<2xf32> into tensor<2x2xf32>
      scf.yield %all : tensor<2x2xf32>
    }
    %0 = "hal.tensor.export"(%r) : (tensor<2x2xf32>) -> !hal.buffer_view
    %1 = "hal.tensor.export"(%s) : (tensor<2x2xf32>) -> !hal.buffer_view
    return %0, %1 : !hal.buffer_view, !hal.buffer_view
  }
}
