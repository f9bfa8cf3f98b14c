// One thread starts a bulk copy that completes on an mbarrier, and all threads wait for it. Tests remove lines by the
// name in their trailing comment, or replace them.
gpu.module @bulk {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<256 x i8>
  llvm.mlir.global internal @full() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.array<8 x i8>
  llvm.func @copies(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %ticks = llvm.mlir.constant(10000 : i32) : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %full = llvm.mlir.addressof @full : !llvm.ptr<3>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %leads = llvm.icmp "eq" %t, %zero : i32
    llvm.cond_br %leads, ^first, ^all
  ^first:
    nvvm.mbarrier.init %full, %one : !llvm.ptr<3>, i32
    nvvm.fence.mbarrier.init // fence
    llvm.br ^all
  ^all:
    nvvm.barrier0 // barrier
    llvm.cond_br %leads, ^copy, ^wait
  ^copy:
    nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32 // arrive
    nvvm.cp.async.bulk.shared.cluster.global %tile, %x, %full, %bytes : !llvm.ptr<3>, !llvm.ptr<1> // copy
    llvm.br ^wait
  ^wait:
    nvvm.mbarrier.try_wait.parity %full, %zero, %ticks : !llvm.ptr<3>, i32, i32 // wait
    %own = llvm.getelementptr %tile[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %own {alignment = 4 : i64} : !llvm.ptr<3> -> f32 // read
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1> // write
    llvm.return
  }
}
