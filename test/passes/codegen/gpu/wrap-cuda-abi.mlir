// RUN: tilewright-opt %s --tile-wrap-cuda-abi --split-input-file | FileCheck %s

// The parameters are the bindings alone; shared memory is a global of the kernel, and the block's index a register.
// CHECK-LABEL: gpu.module @kernels
// CHECK: llvm.mlir.global internal @alone_shared() {addr_space = 3 : i32, alignment = 64 : i64{{.*}}} : !llvm.array<100 x i8>
// CHECK: llvm.func @alone(%[[X:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias})
// CHECK-SAME: gpu.kernel
// CHECK-SAME: nvvm.kernel
// CHECK-SAME: nvvm.maxntid = array<i32: 128, 1, 1>
// CHECK: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK: %[[INDEX:.*]] = llvm.zext %[[BLOCK]] : i32 to i64
// CHECK: %[[SHARED:.*]] = llvm.mlir.addressof @alone_shared : !llvm.ptr<3>
// CHECK: llvm.store %[[INDEX]], %[[SHARED]]
llvm.func @alone(%x: !llvm.ptr<1> {llvm.noalias}, %memory: !llvm.ptr<3> {llvm.noalias}, %workgroup: i64) attributes {
    tile.workgroups = 3 : i64, tile.outputs = 1 : i64, tile.block_bytes = 100 : i64, tile.threads = 128 : i64,
    tile.binding_bytes = array<i64: 4>} {
  llvm.store %workgroup, %memory : i64, !llvm.ptr<3>
  llvm.return
}

// -----

// More than 48 KiB becomes dynamic shared memory, one symbol for all kernels.
// CHECK-LABEL: gpu.module @kernels
// CHECK: llvm.mlir.global external @tile_dynamic_shared() {addr_space = 3 : i32, alignment = 64 : i64{{.*}}} : !llvm.array<0 x i8>
// CHECK-NOT: llvm.mlir.global
// CHECK: llvm.func @much
// CHECK: llvm.mlir.addressof @tile_dynamic_shared
// CHECK: llvm.func @more
// CHECK: llvm.mlir.addressof @tile_dynamic_shared
llvm.func @much(%x: !llvm.ptr<1>, %memory: !llvm.ptr<3>, %workgroup: i64) attributes {tile.workgroups = 3 : i64,
    tile.outputs = 1 : i64, tile.block_bytes = 65536 : i64, tile.threads = 128 : i64,
    tile.binding_bytes = array<i64: 4>} {
  llvm.store %workgroup, %memory : i64, !llvm.ptr<3>
  llvm.return
}
llvm.func @more(%x: !llvm.ptr<1>, %memory: !llvm.ptr<3>, %workgroup: i64) attributes {tile.workgroups = 3 : i64,
    tile.outputs = 1 : i64, tile.block_bytes = 90000 : i64, tile.threads = 128 : i64,
    tile.binding_bytes = array<i64: 4>} {
  llvm.store %workgroup, %memory : i64, !llvm.ptr<3>
  llvm.return
}

// -----

// A wgmma fence, an op or inline assembly, shows that shared memory is swizzled: its alignment is 1024 bytes.
// CHECK-LABEL: gpu.module @kernels
// CHECK: llvm.mlir.global internal @described_shared() {addr_space = 3 : i32, alignment = 1024 : i64
llvm.func @described(%x: !llvm.ptr<1>, %memory: !llvm.ptr<3>, %workgroup: i64) attributes {tile.workgroups = 3 : i64,
    tile.outputs = 1 : i64, tile.block_bytes = 2048 : i64, tile.threads = 128 : i64,
    tile.binding_bytes = array<i64: 4>} {
  nvvm.wgmma.fence.aligned
  llvm.store %workgroup, %memory : i64, !llvm.ptr<3>
  llvm.return
}
