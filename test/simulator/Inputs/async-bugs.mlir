// Each kernel has one bug, at the op with the location "planted": a copy without a wait, or warps that do not
// synchronise. All run with one block of 64 threads.
gpu.module @bugs {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<1024 x i8>
  // The barrier alone does not complete the copy.
  llvm.func @reads_without_a_wait(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %own = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    nvvm.cp.async.shared.global %own, %px, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.barrier0
    %v = llvm.load %own {alignment = 4 : i64} : !llvm.ptr<3> -> f32 loc("planted")
    nvvm.cp.async.wait.group 0
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // A wait completes only groups that were committed.
  llvm.func @reads_without_a_commit(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %own = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    nvvm.cp.async.shared.global %own, %px, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.wait.group 0
    %v = llvm.load %own {alignment = 4 : i64} : !llvm.ptr<3> -> f32 loc("planted")
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // The last group may be in flight after a wait for all but one.
  llvm.func @waits_for_too_few_groups(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %own = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    nvvm.cp.async.shared.global %own, %px, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 1
    %v = llvm.load %own {alignment = 4 : i64} : !llvm.ptr<3> -> f32 loc("planted")
    nvvm.cp.async.wait.group 0
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // A thread waits for its own copies; the copies of other threads need a barrier.
  llvm.func @reads_what_another_thread_copied(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %own = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    nvvm.cp.async.shared.global %own, %px, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %one = llvm.mlir.constant(1 : i32) : i32
    %j = llvm.lshr %t, %one : i32
    %other = llvm.getelementptr %shared[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %v = llvm.load %other {alignment = 4 : i64} : !llvm.ptr<3> -> f32 loc("planted")
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // The destination of a copy in flight must not be written.
  llvm.func @writes_what_a_copy_fills(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %own = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    nvvm.cp.async.shared.global %own, %px, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    %v = llvm.mlir.constant(1.0 : f32) : f32
    llvm.store %v, %own {alignment = 4 : i64} : f32, !llvm.ptr<3> loc("planted")
    nvvm.cp.async.wait.group 0
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // A stage is refilled while other threads may still read it.
  llvm.func @fills_what_others_read(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %own = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    nvvm.cp.async.shared.global %own, %px, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    nvvm.barrier0
    %last = llvm.mlir.constant(63 : i32) : i32
    %j = llvm.sub %last, %t : i32
    %other = llvm.getelementptr %shared[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %v = llvm.load %other {alignment = 4 : i64} : !llvm.ptr<3> -> f32
    nvvm.cp.async.shared.global %own, %px, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1> loc("planted")
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // The block has ended when the bytes arrive.
  llvm.func @ends_before_its_copy(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %own = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    nvvm.cp.async.shared.global %own, %px, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1> loc("planted")
    nvvm.cp.async.commit.group
    %v = llvm.mlir.constant(1.0 : f32) : f32
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // The size of a copy must not exceed the alignment of its addresses.
  llvm.func @copies_misaligned(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %own = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    nvvm.cp.async.shared.global %own, %px, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1> loc("planted")
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %v = llvm.mlir.constant(1.0 : f32) : f32
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // The last thread copies one element past the end.
  llvm.func @copies_past_the_end(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %own = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %one = llvm.mlir.constant(1 : i32) : i32
    %j = llvm.add %t, %one : i32
    %past = llvm.getelementptr %x[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    nvvm.cp.async.shared.global %own, %past, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1> loc("planted")
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %v = llvm.load %own {alignment = 4 : i64} : !llvm.ptr<3> -> f32
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // All lanes of a warp must take part in a product.
  llvm.func @multiplies_in_half_a_warp(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %own = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %half = llvm.mlir.constant(16 : i32) : i32
    %h = llvm.mlir.constant(dense<1.0> : vector<2xf16>) : vector<2xf16>
    %v = llvm.mlir.constant(1.0 : f32) : f32
    %low = llvm.icmp "ult" %t, %half : i32
    llvm.cond_br %low, ^multiply, ^end
  ^multiply:
    %r = nvvm.mma.sync A[%h, %h, %h, %h] B[%h, %h] C[%v, %v, %v, %v]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)> loc("planted")
    llvm.br ^end
  ^end:
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
}
