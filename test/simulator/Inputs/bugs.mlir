// Each kernel has one bug, at the op with the location "planted". All run with two blocks of 128 threads.
gpu.module @bugs {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<128 x f32>
  // The simulated device replaces this function by a rendezvous of its own.
  llvm.mlir.global internal @counter(0 : i32) {addr_space = 1 : i32, alignment = 4 : i64} : i32
  llvm.func @tile_grid_barrier(%counter: !llvm.ptr<1>, %blocks: i32) {
    llvm.return
  }
  // The last thread reads one element past the end.
  llvm.func @reads_past_the_end(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %j = llvm.add %i, %one : i32
    %px = llvm.getelementptr %x[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %px {alignment = 4 : i64} : !llvm.ptr<1> -> f32 loc("planted")
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // Thread 127 writes past the end of the tile.
  llvm.func @writes_past_the_tile(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %v = llvm.mlir.constant(1.0 : f32) : f32
    %j = llvm.add %t, %one : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %p = llvm.getelementptr %shared[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %v, %p {alignment = 4 : i64} : f32, !llvm.ptr<3> loc("planted")
    llvm.return
  }
  // 16 bytes are read at an offset of 4.
  llvm.func @misaligned(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %one = llvm.mlir.constant(1 : i32) : i32
    %p = llvm.getelementptr %x[%one] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %p : !llvm.ptr<1> -> vector<4xf32> loc("planted")
    llvm.store %v, %y {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr<1>
    llvm.return
  }
  // Only the first 64 threads fill the tile that all threads read.
  llvm.func @reads_unwritten_shared(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %half = llvm.mlir.constant(64 : i32) : i32
    %v = llvm.mlir.constant(1.0 : f32) : f32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %p = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %low = llvm.icmp "slt" %t, %half : i32
    llvm.cond_br %low, ^write, ^read
  ^write:
    llvm.store %v, %p {alignment = 4 : i64} : f32, !llvm.ptr<3>
    llvm.br ^read
  ^read:
    nvvm.barrier0
    %w = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<3> -> f32 loc("planted")
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %w, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // A buffer is read before the kernel writes it.
  llvm.func @reads_unwritten_scratch(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %py {alignment = 4 : i64} : !llvm.ptr<1> -> f32 loc("planted")
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %v, %px {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // Only the first 64 threads arrive at the barrier.
  llvm.func @barrier_of_some(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %half = llvm.mlir.constant(64 : i32) : i32
    %low = llvm.icmp "slt" %t, %half : i32
    llvm.cond_br %low, ^wait, ^exit
  ^wait:
    nvvm.barrier0 loc("planted")
    llvm.br ^exit
  ^exit:
    llvm.return
  }
  // The halves of the block wait at different barriers.
  llvm.func @two_barriers(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %half = llvm.mlir.constant(64 : i32) : i32
    %low = llvm.icmp "slt" %t, %half : i32
    llvm.cond_br %low, ^one, ^two
  ^one:
    nvvm.barrier0 loc("the other")
    llvm.br ^exit
  ^two:
    nvvm.barrier0 loc("planted")
    llvm.br ^exit
  ^exit:
    llvm.return
  }
  // Half a warp shuffles with the mask of a whole warp.
  llvm.func @shuffle_of_some(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %half = llvm.mlir.constant(16 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %clamp = llvm.mlir.constant(31 : i32) : i32
    %low = llvm.icmp "slt" %t, %half : i32
    llvm.cond_br %low, ^shuffle, ^exit
  ^shuffle:
    %v = nvvm.shfl.sync bfly %all, %t, %half, %clamp : i32 -> i32 loc("planted")
    llvm.br ^exit
  ^exit:
    llvm.return
  }
  // Block 1 does not arrive at the grid barrier.
  llvm.func @grid_barrier_of_some(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %blocks = nvvm.read.ptx.sreg.nctaid.x : i32
    %counter = llvm.mlir.addressof @counter : !llvm.ptr<1>
    %first = llvm.icmp "eq" %b, %zero : i32
    llvm.cond_br %first, ^wait, ^exit
  ^wait:
    llvm.call @tile_grid_barrier(%counter, %blocks) : (!llvm.ptr<1>, i32) -> () loc("planted")
    llvm.br ^exit
  ^exit:
    llvm.return
  }
  // A thread reads another thread's element of the tile without a barrier.
  llvm.func @race_in_shared(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %last = llvm.mlir.constant(127 : i32) : i32
    %v = llvm.mlir.constant(1.0 : f32) : f32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %p = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %v, %p {alignment = 4 : i64} : f32, !llvm.ptr<3> loc("the other")
    %mask = llvm.mlir.constant(-1 : i32) : i32
    nvvm.bar.warp.sync %mask : i32
    %j = llvm.sub %last, %t : i32
    %mine = llvm.icmp "slt" %t, %j : i32
    llvm.cond_br %mine, ^exit, ^read
  ^read:
    %q = llvm.getelementptr %shared[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %w = llvm.load %q {alignment = 4 : i64} : !llvm.ptr<3> -> f32 loc("planted")
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %w, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.br ^exit
  ^exit:
    llvm.return
  }
  // The tile is refilled before all threads have read it.
  llvm.func @overwrites_what_is_read(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %last = llvm.mlir.constant(127 : i32) : i32
    %v = llvm.mlir.constant(1.0 : f32) : f32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %p = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %v, %p {alignment = 4 : i64} : f32, !llvm.ptr<3>
    nvvm.barrier0
    %j = llvm.sub %last, %t : i32
    %q = llvm.getelementptr %shared[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %w = llvm.load %q {alignment = 4 : i64} : !llvm.ptr<3> -> f32 loc("the other")
    %sum = llvm.fadd %w, %v : f32
    llvm.store %sum, %p {alignment = 4 : i64} : f32, !llvm.ptr<3> loc("planted")
    llvm.return
  }
  // Both blocks write the same elements.
  llvm.func @race_of_blocks(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %v = llvm.mlir.constant(1.0 : f32) : f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1> loc("planted")
    llvm.return
  }
  // A block reads elements that the other block writes, with only a block barrier between.
  llvm.func @reads_of_the_other_block(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %v = llvm.mlir.constant(1.0 : f32) : f32
    %last = llvm.mlir.constant(255 : i32) : i32
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1> loc("planted")
    nvvm.barrier0
    %j = llvm.sub %last, %i : i32
    %q = llvm.getelementptr %y[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %w = llvm.load %q {alignment = 4 : i64} : !llvm.ptr<1> -> f32 loc("planted")
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %w, %px {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // The divisor is the block's index, which is zero in block 0.
  llvm.func @divides_by_zero(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %q = llvm.udiv %t, %b : i32 loc("planted")
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %q, %py {alignment = 4 : i64} : i32, !llvm.ptr<1>
    llvm.return
  }
  // The kernel traps.
  llvm.func @traps(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    "llvm.intr.trap"() : () -> () loc("planted")
    llvm.return
  }
  // The kernel never ends.
  llvm.func @endless(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    llvm.br ^loop(%t : i32)
  ^loop(%k: i32):
    %k1 = llvm.add %k, %k : i32 loc("planted")
    %never = llvm.icmp "ult" %k1, %zero : i32
    llvm.cond_br %never, ^exit, ^loop(%k1 : i32)
  ^exit:
    llvm.return
  }
}
