// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-emit-object{target=x86-64-avx2 path=%t.o dump-assembly=%t.s})' -o /dev/null
// RUN: llvm-nm %t.o | FileCheck %s
// RUN: FileCheck %s --input-file=%t.s --check-prefix=ASM

// Kernels are compiled apart from each other, so a file with two of them is an archive. Functions that call each other
// are in one object, and each object has an internal function that it calls.
// CHECK: kernels.0.o:
// CHECK-DAG: T again
// CHECK-DAG: t shared
// CHECK-DAG: T sums
// CHECK: kernels.1.o:
// CHECK-DAG: T other
// CHECK-DAG: t shared
// CHECK-NOT: T

// The assembly is that of all kernels, and labels count their functions.
// ASM: .file
// ASM: shared:
// ASM: .Lfunc_end0:
// ASM: sums:
// ASM: .Lfunc_end1:
// ASM: again:
// ASM: .Lfunc_end2:
// ASM-NOT: .file
// ASM: other:
// ASM: .Lfunc_end4:
// ASM: .note.GNU-stack
module {
  module @tilewright_kernels {
    llvm.func internal @shared(%x: i64) -> i64 attributes {no_inline} {
      %y = llvm.mul %x, %x : i64
      llvm.return %y : i64
    }
    llvm.func @sums(%x: i64) -> i64 attributes {no_inline} {
      %y = llvm.call @shared(%x) : (i64) -> i64
      %z = llvm.add %x, %y : i64
      llvm.return %z : i64
    }
    llvm.func @other(%x: i64) -> i64 {
      %y = llvm.call @shared(%x) : (i64) -> i64
      llvm.return %y : i64
    }
    llvm.func @again(%x: i64) -> i64 {
      %y = llvm.call @sums(%x) : (i64) -> i64
      llvm.return %y : i64
    }
  }
}
