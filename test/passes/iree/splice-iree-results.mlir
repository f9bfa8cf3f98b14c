// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-splice-iree=object=kernels.o --mlir-print-op-generic \
// RUN:   | FileCheck %s

// Results larger than the blocks of IREE's pools are allocated from the device's allocator, before the barrier that
// announces them.
// CHECK: sym_name = "large"
// CHECK: %[[MADE:.*]] = "flow.dispatch"
// CHECK: %[[SHAPED:.*]] = "tensor.expand_shape"(%[[MADE]])
// CHECK: %[[DEVICE:.*]] = "hal.devices.get"(%{{.*}}) : (index) -> !hal.device
// CHECK: %[[ALLOCATOR:.*]] = "hal.device.allocator"(%[[DEVICE]])
// CHECK: %[[SIZE:.*]] = "arith.constant"() <{value = 67108868 : index}>
// CHECK: %[[BUFFER:.*]] = "hal.allocator.allocate"(%[[ALLOCATOR]], %{{.*}}, %{{.*}}, %{{.*}}, %[[SIZE]])
// CHECK: %[[PLACED:.*]] = "hal.tensor.alias"(%[[SHAPED]], %[[BUFFER]]) {operandSegmentSizes = array<i32: 1, 0, 1, 0>}
// CHECK: %[[READY:.*]] = "hal.tensor.barrier"(%[[PLACED]], %{{.*}})
// CHECK: "hal.tensor.export"(%[[READY]])

// Left alone are results that fit the pools, reuse the memory of an argument, are read again or exported twice (IREE
// would make copies), or are computed by IREE.
// CHECK: sym_name = "others"
// CHECK-NOT: hal.tensor.alias
module {
  module @tilewright_kernels {
    llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr) -> i32
        attributes {tile.workgroups = 3 : i64, tile.outputs = 1 : i64} {
      %0 = llvm.mlir.constant(0 : i32) : i32
      llvm.return %0 : i32
    }
  }
  func.func @large(%x: tensor<16777217xf32>, %fence: !hal.fence) -> !hal.buffer_view {
    %y = tile.launch @tilewright_kernels::@k(%x) : (tensor<16777217xf32>) -> tensor<16777217xf32>
    %z = tensor.expand_shape %y [[0, 1]] output_shape [1, 16777217] : tensor<16777217xf32> into tensor<1x16777217xf32>
    %ready = "hal.tensor.barrier"(%z, %fence) : (tensor<1x16777217xf32>, !hal.fence) -> tensor<1x16777217xf32>
    %view = "hal.tensor.export"(%ready) : (tensor<1x16777217xf32>) -> !hal.buffer_view
    return %view : !hal.buffer_view
  }
  func.func @others(%x: tensor<16777217xf32>) -> (!hal.buffer_view, !hal.buffer_view, !hal.buffer_view, !hal.buffer_view) {
    %small = tile.launch @tilewright_kernels::@k(%x) : (tensor<16777217xf32>) -> tensor<16777216xf32>
    %tied = tile.launch @tilewright_kernels::@k(%x) {tied = array<i64: 0>} : (tensor<16777217xf32>) -> tensor<16777217xf32>
    %twice = tile.launch @tilewright_kernels::@k(%tied) : (tensor<16777217xf32>) -> tensor<16777217xf32>
    %theirs = "theirs.compute"(%twice) : (tensor<16777217xf32>) -> tensor<16777217xf32>
    %0 = "hal.tensor.export"(%small) : (tensor<16777216xf32>) -> !hal.buffer_view
    %1 = "hal.tensor.export"(%tied) : (tensor<16777217xf32>) -> !hal.buffer_view
    %2 = "hal.tensor.export"(%twice) : (tensor<16777217xf32>) -> !hal.buffer_view
    %3 = "hal.tensor.export"(%theirs) : (tensor<16777217xf32>) -> !hal.buffer_view
    return %0, %1, %2, %3 : !hal.buffer_view, !hal.buffer_view, !hal.buffer_view, !hal.buffer_view
  }
}
