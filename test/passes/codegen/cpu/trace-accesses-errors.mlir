// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-trace-accesses))' --verify-diagnostics

// A trace without these accesses would be silently wrong.
// expected-error @below {{loads and stores of tile registers are not recorded; use a target without AMX}}
func.func @tiles(%x: memref<64xi8>, %memory: memref<1xi8>, %workgroup: index) attributes {tile.workgroups = 1 : i64} {
  %at = memref.extract_aligned_pointer_as_index %x : memref<64xi8> -> index
  %bits = arith.index_cast %at : index to i64
  %pointer = llvm.inttoptr %bits : i64 to !llvm.ptr
  llvm.call_intrinsic "llvm.x86.ldtilecfg"(%pointer) : (!llvm.ptr) -> ()
  return
}
