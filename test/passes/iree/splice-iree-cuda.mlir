// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-splice-iree=object=kernels.ptx --mlir-print-op-generic \
// RUN:   | FileCheck %s

// On CUDA, an export has the name of its PTX entry and no shim, and gives the block size; static shared memory belongs
// to the kernel.
// CHECK: "hal.executable.export"()
// CHECK: layout = #hal.pipeline.layout<bindings = [#hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer>]>
// CHECK-SAME: subgroup_size = 32 : index
// CHECK-SAME: sym_name = "k"
// CHECK-SAME: workgroup_size = [256 : index, 1 : index, 1 : index]
// CHECK-NOT: hal.import.static
// CHECK: sym_name = "dynamic"
// CHECK-SAME: workgroup_local_memory = 65536 : index
// CHECK: objects = #hal.executable.objects<{#hal.executable.target<"cuda", "cuda-nvptx-fb">{{.*}}path = "kernels.ptx"
// CHECK: "flow.dispatch"(%{{.*}}) {entry_points = [@tilewright_kernels::@k]
module {
  module @tilewright_kernels {
    gpu.module @kernels {
      llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {tile.workgroups = 3 : i64, tile.outputs = 1 : i64,
          tile.block_bytes = 100 : i64, tile.threads = 256 : i64} {
        llvm.return
      }
      llvm.func @dynamic(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {tile.workgroups = 3 : i64,
          tile.outputs = 1 : i64, tile.block_bytes = 65536 : i64, tile.threads = 256 : i64} {
        llvm.return
      }
    }
  }
  func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {
    %y = tile.launch @tilewright_kernels::@k(%x) : (tensor<7xf32>) -> tensor<7xf32>
    %z = tile.launch @tilewright_kernels::@dynamic(%y) : (tensor<7xf32>) -> tensor<7xf32>
    return %z : tensor<7xf32>
  }
}
