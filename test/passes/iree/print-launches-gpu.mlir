// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-print-launches="output=%t.json for-runtime" -o /dev/null
// RUN: FileCheck %s < %t.json

// A runtime launches a kernel for a GPU by its own name, with the threads of its blocks and the shared memory that it
// cannot have without asking, and has to know whether blocks wait for each other.
// CHECK: "export": "waits",
// CHECK: "kernel": "waits",
// CHECK-NEXT: "local_bytes": 0,
// CHECK-NEXT: "meets_at_grid": true,
// CHECK: "shared_bytes": 65536,
// CHECK-NEXT: "threads": 256,
// CHECK: "workgroups": 3
// CHECK: "export": "plain",
// CHECK: "meets_at_grid": false,
// CHECK: "shared_bytes": 0,
// CHECK-NEXT: "threads": 64,
module {
  module @tilewright_kernels {
    gpu.module @kernels {
      llvm.func @waits(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {tile.workgroups = 3 : i64, tile.outputs = 1 : i64,
          tile.block_bytes = 65536 : i64, tile.threads = 256 : i64, tile.grid_sync} {
        llvm.return
      }
      llvm.func @plain(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {tile.workgroups = 5 : i64, tile.outputs = 1 : i64,
          tile.block_bytes = 1024 : i64, tile.threads = 64 : i64} {
        llvm.return
      }
    }
  }
  func.func @main(%view: !hal.buffer_view, %fence: !hal.fence) -> !hal.buffer_view {
    %x = "hal.tensor.import"(%view, %fence) : (!hal.buffer_view, !hal.fence) -> tensor<7xf32>
    %y = tile.launch @tilewright_kernels::@waits(%x) : (tensor<7xf32>) -> tensor<7xf32>
    %z = tile.launch @tilewright_kernels::@plain(%y) : (tensor<7xf32>) -> tensor<7xf32>
    %out = "hal.tensor.export"(%z) : (tensor<7xf32>) -> !hal.buffer_view
    return %out : !hal.buffer_view
  }
}
