// RUN: tilewright-opt %s --tile-wrap-cuda-abi --verify-diagnostics

// expected-error @+1 {{the kernel uses shared memory, but declares 0 bytes of it}}
llvm.func @none(%x: !llvm.ptr<1>, %memory: !llvm.ptr<3>, %workgroup: i64) attributes {tile.workgroups = 3 : i64,
    tile.outputs = 1 : i64, tile.block_bytes = 0 : i64, tile.threads = 128 : i64, tile.binding_bytes = array<i64: 4>} {
  llvm.store %workgroup, %memory : i64, !llvm.ptr<3>
  llvm.return
}
