// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-splice-iree=object=kernels.o --mlir-print-op-generic \
// RUN:   | FileCheck %s

// A launch becomes a dispatch of an export that calls the object's kernel through a shim.
// CHECK: "hal.executable.source"()
// CHECK: "hal.executable.export"()
// CHECK: %[[N:.*]] = "arith.constant"() <{value = 3 : index}>
// CHECK: "hal.return"(%[[N]],
// CHECK: layout = #hal.pipeline.layout<bindings = [#hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer>]>
// CHECK-SAME: sym_name = "k_dispatch"
// CHECK-SAME: workgroup_local_memory = 4096 : index
// A result that reuses an input's memory has no binding of its own.
// CHECK: layout = #hal.pipeline.layout<bindings = [#hal.pipeline.binding<storage_buffer>]>
// CHECK-SAME: sym_name = "k_in_place_0_dispatch"
// CHECK: sym_name = "k"
// CHECK: {hal.import.static}
// CHECK: objects = #hal.executable.objects<{{.*}}path = "kernels.o"
// CHECK: "flow.dispatch"(%{{.*}}) {entry_points = [@tilewright_kernels::@k_dispatch]
// CHECK-SAME: tied_operands = [-1 : index]
// CHECK: "flow.dispatch"(%{{.*}}) {entry_points = [@tilewright_kernels::@k_in_place_0_dispatch]
// CHECK-SAME: tied_operands = [0 : index]
module {
  module @tilewright_kernels {
    llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) -> i32
        attributes {tile.workgroups = 3 : i64, tile.outputs = 1 : i64, tile.block_bytes = 100 : i64} {
      %0 = llvm.mlir.constant(0 : i32) : i32
      llvm.return %0 : i32
    }
  }
  func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {
    %y = tile.launch @tilewright_kernels::@k(%x) : (tensor<7xf32>) -> tensor<7xf32>
    %z = tile.launch @tilewright_kernels::@k(%y) {tied = array<i64: 0>} : (tensor<7xf32>) -> tensor<7xf32>
    return %z : tensor<7xf32>
  }
}
