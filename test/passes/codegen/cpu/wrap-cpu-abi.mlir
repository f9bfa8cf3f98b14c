// RUN: tilewright-opt %s --tile-wrap-cpu-abi --split-input-file | FileCheck %s

// The kernel reads its binding, the workgroup's memory and the workgroup's index from IREE's structs.
// CHECK-LABEL: llvm.func @alone(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr) -> i32
// CHECK: llvm.getelementptr %arg1[32]
// CHECK: llvm.getelementptr %arg2[16]
// CHECK: llvm.getelementptr %arg2[0]
// CHECK: llvm.call @alone.kernel
// CHECK: llvm.return %{{.*}} : i32
// CHECK: llvm.func internal @alone.kernel
llvm.func @alone(%x: !llvm.ptr, %memory: !llvm.ptr, %workgroup: i64) attributes {tile.workgroups = 3 : i64,
    tile.outputs = 1 : i64, tile.block_bytes = 0 : i64, tile.binding_bytes = array<i64: 4>} {
  llvm.return
}

// -----

// The kernel's entry tests the processor's features, widest variant first, and fails if no variant fits. The entry is
// compiled for the narrowest target, so that it runs everywhere.
// The first variant needs FMA, F16C, AVX2 and AVX-512 (F, CD, VL, DQ, BW): bits 11, 14, 15, 20-24; x86-64-v2 bits 0-3.
// CHECK-LABEL: llvm.func @k(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr) -> i32
// CHECK-SAME: tile.target = "x86-64-v2"
// CHECK: %[[AT:.*]] = llvm.getelementptr %arg0[32]
// CHECK: %[[REPORTED:.*]] = llvm.load %[[AT]] : !llvm.ptr -> i64
// CHECK: %[[WIDE:.*]] = llvm.mlir.constant(32557056 : i64)
// CHECK: %[[FOUND:.*]] = llvm.and %[[REPORTED]], %[[WIDE]]
// CHECK: %[[FITS:.*]] = llvm.icmp "eq" %[[FOUND]], %[[WIDE]]
// CHECK: llvm.cond_br %[[FITS]], ^bb1, ^bb2
// CHECK: ^bb1:
// CHECK: llvm.call @"k.x86-64-avx512"(%arg0, %arg1, %arg2)
// CHECK: ^bb2:
// CHECK: llvm.mlir.constant(15 : i64)
// CHECK: ^bb3:
// CHECK: llvm.call @"k.x86-64-v2"(%arg0, %arg1, %arg2)
// CHECK: ^bb4:
// CHECK: %[[NONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK: llvm.return %[[NONE]]
// CHECK: llvm.func internal @"k.x86-64-avx512"(
// CHECK-SAME: no_inline
// CHECK: llvm.func internal @"k.x86-64-v2"(
// CHECK-SAME: no_inline
llvm.func @k(%x: !llvm.ptr, %memory: !llvm.ptr, %workgroup: i64) attributes {tile.target = "x86-64-avx512",
    tile.variant_of = "k", tile.workgroups = 3 : i64, tile.outputs = 1 : i64, tile.block_bytes = 0 : i64,
    tile.binding_bytes = array<i64: 4>} {
  llvm.return
}
llvm.func @"k.x86-64-v2"(%x: !llvm.ptr, %memory: !llvm.ptr, %workgroup: i64) attributes {tile.target = "x86-64-v2",
    tile.variant_of = "k", tile.workgroups = 3 : i64, tile.outputs = 1 : i64, tile.block_bytes = 0 : i64,
    tile.binding_bytes = array<i64: 4>} {
  llvm.return
}

// -----

// Launches whose second result reuses the memory of the first input pass two bindings; the kernel gets three pointers.
// CHECK-LABEL: llvm.func @pair_in_place_n_0(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr) -> i32
// CHECK: %[[STATE:.*]] = llvm.alloca %{{.*}} x i8
// CHECK: %[[POINTERS:.*]] = llvm.alloca %{{.*}} x i8
// CHECK: %[[AT:.*]] = llvm.getelementptr %arg1[32]
// CHECK: %[[GIVEN:.*]] = llvm.load %[[AT]]
// CHECK: llvm.getelementptr %[[GIVEN]][0]
// CHECK: llvm.getelementptr %[[POINTERS]][0]
// CHECK: llvm.getelementptr %[[GIVEN]][8]
// CHECK: llvm.getelementptr %[[POINTERS]][8]
// CHECK: llvm.getelementptr %[[GIVEN]][0]
// CHECK: llvm.getelementptr %[[POINTERS]][16]
// CHECK: llvm.store %[[POINTERS]]
// CHECK: llvm.call @pair(%arg0, %[[STATE]], %arg2)
llvm.func @pair(%x: !llvm.ptr, %y: !llvm.ptr, %z: !llvm.ptr, %memory: !llvm.ptr, %workgroup: i64) attributes {
    tile.workgroups = 3 : i64, tile.outputs = 2 : i64, tile.block_bytes = 0 : i64,
    tile.binding_bytes = array<i64: 4, 4, 4>, tile.in_place = [array<i64: -1, 0>]} {
  llvm.return
}
