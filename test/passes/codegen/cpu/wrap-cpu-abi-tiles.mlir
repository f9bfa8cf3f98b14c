// RUN: tilewright-opt %s --tile-wrap-cpu-abi --split-input-file | FileCheck %s
// RUN: tilewright-opt %s --tile-wrap-cpu-abi=assume-tiles --split-input-file | FileCheck %s --check-prefix=ASSUMED

// A kernel that uses AMX checks first that the processor has it (bit 50) and that the system saves its state, then
// requests permission from the system for this process. It fails without any of these.
// CHECK-LABEL: llvm.func internal @tile_registers_granted() -> i1
// CHECK: llvm.inline_asm has_side_effects {{.*}} "xgetbv"
// CHECK: llvm.mlir.constant(393216 : i64)
// CHECK: llvm.cond_br %{{.*}}, ^bb1, ^bb2
// CHECK: ^bb1:
// CHECK: llvm.mlir.constant(158 : i64)
// CHECK: llvm.mlir.constant(4130 : i64)
// CHECK: llvm.inline_asm has_side_effects {{.*}} "syscall"
// CHECK: llvm.mlir.constant(262144 : i64)
// CHECK-LABEL: llvm.func @alone(
// CHECK: llvm.mlir.constant(1125899906842624 : i64)
// CHECK: llvm.cond_br %{{.*}}, ^bb1, ^bb2
// CHECK: ^bb1:
// CHECK: %[[GRANTED:.*]] = llvm.call @tile_registers_granted()
// CHECK: llvm.cond_br %[[GRANTED]], ^bb3, ^bb2
// CHECK: ^bb2:
// CHECK: llvm.mlir.constant(1 : i32)
// CHECK: llvm.return
// CHECK: ^bb3:
// CHECK: llvm.call @alone.kernel
// ASSUMED-NOT: tile_registers_granted
// ASSUMED-LABEL: llvm.func @alone(
// ASSUMED-NOT: llvm.cond_br
// ASSUMED: llvm.call @alone.kernel
llvm.func @alone(%x: !llvm.ptr, %memory: !llvm.ptr, %workgroup: i64) attributes {tile.workgroups = 3 : i64,
    tile.outputs = 1 : i64, tile.block_bytes = 0 : i64, tile.binding_bytes = array<i64: 4>} {
  llvm.call_intrinsic "llvm.x86.ldtilecfg"(%x) : (!llvm.ptr) -> ()
  llvm.return
}

// -----

// If a kernel has variants, the one that uses AMX is called if the system permits it; otherwise the next one is tried.
// CHECK-LABEL: llvm.func @k(
// CHECK: llvm.cond_br %{{.*}}, ^bb1, ^bb3
// CHECK: ^bb1:
// CHECK: %[[GRANTED:.*]] = llvm.call @tile_registers_granted()
// CHECK: llvm.cond_br %[[GRANTED]], ^bb2, ^bb3
// CHECK: ^bb2:
// CHECK: llvm.call @"k.x86-64-amx"
// CHECK: ^bb3:
// CHECK: llvm.cond_br %{{.*}}, ^bb4, ^bb5
// CHECK: ^bb4:
// CHECK: llvm.call @"k.x86-64-v2"
// ASSUMED-LABEL: llvm.func @k(
// ASSUMED-NOT: tile_registers_granted
llvm.func @k(%x: !llvm.ptr, %memory: !llvm.ptr, %workgroup: i64) attributes {tile.target = "x86-64-amx",
    tile.variant_of = "k", tile.workgroups = 3 : i64, tile.outputs = 1 : i64, tile.block_bytes = 0 : i64,
    tile.binding_bytes = array<i64: 4>} {
  llvm.call_intrinsic "llvm.x86.ldtilecfg"(%x) : (!llvm.ptr) -> ()
  llvm.return
}
llvm.func @"k.x86-64-v2"(%x: !llvm.ptr, %memory: !llvm.ptr, %workgroup: i64) attributes {tile.target = "x86-64-v2",
    tile.variant_of = "k", tile.workgroups = 3 : i64, tile.outputs = 1 : i64, tile.block_bytes = 0 : i64,
    tile.binding_bytes = array<i64: 4>} {
  llvm.return
}

// -----

// A kernel for a target with AMX that does not use tiles needs no permission.
// CHECK-LABEL: llvm.func @vectors(
// CHECK-NOT: tile_registers_granted
// CHECK: llvm.call @vectors.kernel
llvm.func @vectors(%x: !llvm.ptr, %memory: !llvm.ptr, %workgroup: i64) attributes {tile.workgroups = 3 : i64,
    tile.outputs = 1 : i64, tile.block_bytes = 0 : i64, tile.binding_bytes = array<i64: 4>} {
  llvm.return
}
