// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-emit-object{target=x86-64-avx2 path=%t.o dump-assembly=%t.s})' -o /dev/null
// RUN: FileCheck %s --input-file=%t.s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-emit-object{target=x86-64-avx512 path=%t.o dump-assembly=%t.512.s})' -o /dev/null
// RUN: FileCheck %s --input-file=%t.512.s --check-prefix=AVX512
module {
  module @tilewright_kernels {
    // The half whose mask is always off is not read: it has the lanes of the passthru.
    // CHECK-LABEL: load_of_half:
    // CHECK-NOT: 32(%rdi)
    // CHECK: vmaskmovps (%rdi), %ymm
    // CHECK-NOT: 32(%rdi)
    // CHECK: retq
    // AVX512-LABEL: load_of_half:
    // AVX512: vmovups (%rdi), %zmm{{[0-9]+}} {%k1}
    llvm.func @load_of_half(%p: !llvm.ptr, %q: !llvm.ptr, %o: !llvm.ptr, %r: i64) {
      %some = llvm.mlir.constant(dense<[true, true, false, false, false, false, false, false, false, false, false, false, false, false, false, false]> : vector<16xi1>) : vector<16xi1>
      %zero = llvm.mlir.constant(0 : i64) : i64
      %end = llvm.mlir.constant(16 : i64) : i64
      %poison = llvm.mlir.poison : vector<16xi1>
      %inside = llvm.icmp "ult" %r, %end : i64
      %first = llvm.insertelement %inside, %poison[%zero : i64] : vector<16xi1>
      %all = llvm.shufflevector %first, %poison [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] : vector<16xi1>
      %mask = llvm.and %all, %some : vector<16xi1>
      %others = llvm.load %q {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
      %v = llvm.intr.masked.load %p, %mask, %others {alignment = 4 : i32} : (!llvm.ptr, vector<16xi1>, vector<16xf32>) -> vector<16xf32>
      llvm.store %v, %o {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
      llvm.return
    }

    // The half whose mask is always off is not written.
    // CHECK-LABEL: store_of_half:
    // CHECK-NOT: 32(%rdi)
    // CHECK: vpmaskmovd %ymm{{[0-9]+}}, %ymm{{[0-9]+}}, (%rdi)
    // CHECK-NOT: 32(%rdi)
    // CHECK: retq
    llvm.func @store_of_half(%p: !llvm.ptr, %q: !llvm.ptr, %r: i64) {
      %some = llvm.mlir.constant(dense<[false, true, true, false, true, true, true, true, false, false, false, false, false, false, false, false]> : vector<16xi1>) : vector<16xi1>
      %zero = llvm.mlir.constant(0 : i64) : i64
      %end = llvm.mlir.constant(16 : i64) : i64
      %poison = llvm.mlir.poison : vector<16xi1>
      %inside = llvm.icmp "ult" %r, %end : i64
      %first = llvm.insertelement %inside, %poison[%zero : i64] : vector<16xi1>
      %all = llvm.shufflevector %first, %poison [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] : vector<16xi1>
      %mask = llvm.and %all, %some : vector<16xi1>
      %v = llvm.load %q {alignment = 4 : i64} : !llvm.ptr -> vector<16xi32>
      llvm.intr.masked.store %v, %p, %mask {alignment = 4 : i32} : vector<16xi32>, vector<16xi1> into !llvm.ptr
      llvm.return
    }

    // A half whose mask is all on needs no mask.
    // CHECK-LABEL: whole_and_rest:
    // CHECK-DAG: vmovups (%rdi), %ymm
    // CHECK-DAG: vmaskmovps 32(%rdi), %ymm
    // CHECK: retq
    llvm.func @whole_and_rest(%p: !llvm.ptr, %o: !llvm.ptr, %r: i32) {
      %places = llvm.mlir.constant(dense<[0, 0, 0, 0, 0, 0, 0, 0, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xi32>) : vector<16xi32>
      %zero = llvm.mlir.constant(0 : i64) : i64
      %poison = llvm.mlir.poison : vector<16xi32>
      %zeros = llvm.mlir.zero : vector<16xf32>
      %one = llvm.mlir.constant(1 : i32) : i32
      %count = llvm.or %r, %one : i32
      %first = llvm.insertelement %count, %poison[%zero : i64] : vector<16xi32>
      %all = llvm.shufflevector %first, %poison [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] : vector<16xi32>
      %mask = llvm.icmp "ugt" %all, %places : vector<16xi32>
      %v = llvm.intr.masked.load %p, %mask, %zeros {alignment = 4 : i32} : (!llvm.ptr, vector<16xi1>, vector<16xf32>) -> vector<16xf32>
      llvm.store %v, %o {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
      llvm.return
    }
  }
}
