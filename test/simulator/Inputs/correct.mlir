// These kernels have no bugs, and their results and counts are known.
gpu.module @correct {
  // y[i] = 2 x[i] for i < n
  llvm.func @scale(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %n: i32) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %two = llvm.mlir.constant(2.0 : f32) : f32
    %in = llvm.icmp "slt" %i, %n : i32
    llvm.cond_br %in, ^body, ^exit
  ^body:
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %px {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %w = llvm.fmul %v, %two : f32
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %w, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.br ^exit
  ^exit:
    llvm.return
  }
  // Returns the sum over a warp, in every lane.
  llvm.func internal @warp_sum(%value: f32) -> f32 {
    %mask = llvm.mlir.constant(-1 : i32) : i32
    %clamp = llvm.mlir.constant(31 : i32) : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %c8 = llvm.mlir.constant(8 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %o16 = nvvm.shfl.sync bfly %mask, %value, %c16, %clamp : f32 -> f32
    %s16 = llvm.fadd %value, %o16 : f32
    %o8 = nvvm.shfl.sync bfly %mask, %s16, %c8, %clamp : f32 -> f32
    %s8 = llvm.fadd %s16, %o8 : f32
    %o4 = nvvm.shfl.sync bfly %mask, %s8, %c4, %clamp : f32 -> f32
    %s4 = llvm.fadd %s8, %o4 : f32
    %o2 = nvvm.shfl.sync bfly %mask, %s4, %c2, %clamp : f32 -> f32
    %s2 = llvm.fadd %s4, %o2 : f32
    %o1 = nvvm.shfl.sync bfly %mask, %s2, %c1, %clamp : f32 -> f32
    %s1 = llvm.fadd %s2, %o1 : f32
    llvm.return %s1 : f32
  }
  // y[w] = the sum of x[32 w] to x[32 w + 31]
  llvm.func @warp_sums(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %five = llvm.mlir.constant(5 : i32) : i32
    %low = llvm.mlir.constant(31 : i32) : i32
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %px {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %sum = llvm.call @warp_sum(%v) : (f32) -> f32
    %lane = llvm.and %t, %low : i32
    %first = llvm.icmp "eq" %lane, %zero : i32
    llvm.cond_br %first, ^write, ^exit
  ^write:
    %w = llvm.lshr %i, %five : i32
    %py = llvm.getelementptr %y[%w] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %sum, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.br ^exit
  ^exit:
    llvm.return
  }
  // Returns the sum over a block of 4 warps, in every thread. It starts with a barrier, so that it can be called again.
  llvm.mlir.global internal @partial() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4 x f32>
  llvm.func internal @block_sum(%value: f32) -> f32 {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %five = llvm.mlir.constant(5 : i32) : i32
    %low = llvm.mlir.constant(31 : i32) : i32
    %warps = llvm.mlir.constant(4 : i32) : i32
    %fzero = llvm.mlir.constant(0.0 : f32) : f32
    %shared = llvm.mlir.addressof @partial : !llvm.ptr<3>
    %sum = llvm.call @warp_sum(%value) : (f32) -> f32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %lane = llvm.and %t, %low : i32
    %warp = llvm.lshr %t, %five : i32
    nvvm.barrier0
    %first = llvm.icmp "eq" %lane, %zero : i32
    llvm.cond_br %first, ^write, ^wait
  ^write:
    %p = llvm.getelementptr %shared[%warp] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %sum, %p {alignment = 4 : i64} : f32, !llvm.ptr<3>
    llvm.br ^wait
  ^wait:
    nvvm.barrier0
    llvm.br ^loop(%zero, %fzero : i32, f32)
  ^loop(%k: i32, %acc: f32):
    %q = llvm.getelementptr %shared[%k] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %v = llvm.load %q {alignment = 4 : i64} : !llvm.ptr<3> -> f32
    %next = llvm.fadd %acc, %v : f32
    %k1 = llvm.add %k, %one : i32
    %more = llvm.icmp "ult" %k1, %warps : i32
    llvm.cond_br %more, ^loop(%k1, %next : i32, f32), ^done
  ^done:
    llvm.return %next : f32
  }
  // y[b] = the sum of the elements that block b reads
  llvm.func @block_sums(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %px {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %sum = llvm.call @block_sum(%v) : (f32) -> f32
    %first = llvm.icmp "eq" %t, %zero : i32
    llvm.cond_br %first, ^write, ^exit
  ^write:
    %py = llvm.getelementptr %y[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %sum, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.br ^exit
  ^exit:
    llvm.return
  }
  // The simulated device replaces this function by a rendezvous of its own.
  llvm.mlir.global internal @counter(0 : i32) {addr_space = 1 : i32, alignment = 4 : i64} : i32
  llvm.func @tile_grid_barrier(%counter: !llvm.ptr<1>, %blocks: i32) {
    llvm.return
  }
  // Blocks store their sums in scratch; every thread adds up all of them, and adds that to its element: y[i] = x[i] +
  // sum(x). There must be 128 blocks.
  llvm.func @add_sum(%x: !llvm.ptr<1>, %scratch: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %counter = llvm.mlir.addressof @counter : !llvm.ptr<1>
    %blocks = nvvm.read.ptx.sreg.nctaid.x : i32
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %px {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %sum = llvm.call @block_sum(%v) : (f32) -> f32
    %first = llvm.icmp "eq" %t, %zero : i32
    llvm.cond_br %first, ^write, ^wait
  ^write:
    %ps = llvm.getelementptr %scratch[%b] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %sum, %ps {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.br ^wait
  ^wait:
    llvm.call @tile_grid_barrier(%counter, %blocks) : (!llvm.ptr<1>, i32) -> ()
    %pt = llvm.getelementptr %scratch[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %part = llvm.load %pt {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %total = llvm.call @block_sum(%part) : (f32) -> f32
    %result = llvm.fadd %v, %total : f32
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %result, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // y[i] = x[stride i]
  llvm.func @strided(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %stride: i32) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %j = llvm.mul %i, %stride : i32
    %px = llvm.getelementptr %x[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %px {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  llvm.mlir.global external @dynamic() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  // A warp writes dynamic shared memory contiguously and reads it with a stride; a mask keeps the index in bounds.
  llvm.func @banks(%y: !llvm.ptr<1>, %stride: i32, %mask: i32) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %lanes = llvm.mlir.constant(32 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %shared = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    llvm.br ^fill(%t : i32)
  ^fill(%k: i32):
    %p = llvm.getelementptr %shared[%k] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %k, %p {alignment = 4 : i64} : i32, !llvm.ptr<3>
    %k1 = llvm.add %k, %lanes : i32
    %more = llvm.icmp "ule" %k1, %mask : i32
    llvm.cond_br %more, ^fill(%k1 : i32), ^read
  ^read:
    nvvm.bar.warp.sync %all : i32
    %far = llvm.mul %t, %stride : i32
    %j = llvm.and %far, %mask : i32
    %q = llvm.getelementptr %shared[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %v = llvm.load %q {alignment = 4 : i64} : !llvm.ptr<3> -> i32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %v, %py {alignment = 4 : i64} : i32, !llvm.ptr<1>
    llvm.return
  }
  // A warp fills 32 x 32 floats of dynamic shared memory row by row, `pitch` apart; each thread reads its own row while
  // it adds up squares, and reads the first element of the row once more.
  llvm.func @square_sums(%y: !llvm.ptr<1>, %pitch: i32) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %lanes = llvm.mlir.constant(32 : i32) : i32
    %none = llvm.mlir.constant(0.0 : f32) : f32
    %two = llvm.mlir.constant(2.0 : f32) : f32
    %shared = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    %own = llvm.mul %t, %pitch : i32
    llvm.br ^fill(%zero : i32)
  ^fill(%i: i32):
    %row = llvm.mul %i, %pitch : i32
    %to = llvm.add %row, %t : i32
    %p = llvm.getelementptr %shared[%to] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %two, %p {alignment = 4 : i64} : f32, !llvm.ptr<3>
    %i1 = llvm.add %i, %one : i32
    %filling = llvm.icmp "ult" %i1, %lanes : i32
    llvm.cond_br %filling, ^fill(%i1 : i32), ^ready
  ^ready:
    nvvm.bar.warp.sync %all : i32
    llvm.br ^add(%zero, %none : i32, f32)
  ^add(%k: i32, %sum: f32):
    %from = llvm.add %own, %k : i32
    %q = llvm.getelementptr %shared[%from] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %v = llvm.load %q {alignment = 4 : i64} : !llvm.ptr<3> -> f32
    %next = llvm.intr.fma(%v, %v, %sum) : (f32, f32, f32) -> f32
    %k1 = llvm.add %k, %one : i32
    %adding = llvm.icmp "ult" %k1, %lanes : i32
    llvm.cond_br %adding, ^add(%k1, %next : i32, f32), ^write
  ^write:
    %first = llvm.getelementptr %shared[%own] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %again = llvm.load %first {alignment = 4 : i64} : !llvm.ptr<3> -> f32
    %result = llvm.fadd %next, %again : f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %result, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
  // Every thread adds its index to y[0].
  llvm.func @count(%y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 64, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %d = nvvm.read.ptx.sreg.ntid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bd = llvm.mul %b, %d : i32
    %i = llvm.add %bd, %t : i32
    %old = llvm.atomicrmw add %y, %i monotonic : !llvm.ptr<1>, i32
    llvm.return
  }
  // Lane 0 alone executes a loop of n iterations.
  llvm.func @lonely_lane(%n: i32) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %first = llvm.icmp "eq" %t, %zero : i32
    llvm.cond_br %first, ^loop(%zero : i32), ^exit
  ^loop(%k: i32):
    %k1 = llvm.add %k, %one : i32
    %more = llvm.icmp "slt" %k1, %n : i32
    llvm.cond_br %more, ^loop(%k1 : i32), ^exit
  ^exit:
    llvm.return
  }
}
