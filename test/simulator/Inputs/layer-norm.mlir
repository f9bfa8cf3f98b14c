// A layer norm over rows of 768: a block takes a row, and a thread four elements.
gpu.module @layer_norm {
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
  // Returns the sum over a block of 6 warps, in every thread. It starts with a barrier, so that it can be called again.
  llvm.mlir.global internal @partial() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<6 x f32>
  llvm.func internal @block_sum(%value: f32) -> f32 {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %five = llvm.mlir.constant(5 : i32) : i32
    %low = llvm.mlir.constant(31 : i32) : i32
    %warps = llvm.mlir.constant(6 : i32) : i32
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
  // y[r, c] = (x[r, c] - mean) / sqrt(variance + 1e-5) gamma[c] + beta[c]
  llvm.func @layer_norm(%x: !llvm.ptr<1>, %gamma: !llvm.ptr<1>, %beta: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 192, 1, 1>} {
    %b = nvvm.read.ptx.sreg.ctaid.x : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %four = llvm.mlir.constant(4 : i32) : i32
    %columns = llvm.mlir.constant(768 : i32) : i32
    %share = llvm.mlir.constant(0.00130208337 : f32) : f32
    %epsilon = llvm.mlir.constant(9.99999974E-6 : f32) : f32
    %fone = llvm.mlir.constant(1.0 : f32) : f32
    %row = llvm.mul %b, %columns : i32
    %c = llvm.mul %t, %four : i32
    %i = llvm.add %row, %c : i32
    %l0 = llvm.mlir.constant(0 : i32) : i32
    %l1 = llvm.mlir.constant(1 : i32) : i32
    %l2 = llvm.mlir.constant(2 : i32) : i32
    %l3 = llvm.mlir.constant(3 : i32) : i32
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %v = llvm.load %px {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    %v0 = llvm.extractelement %v[%l0 : i32] : vector<4xf32>
    %v1 = llvm.extractelement %v[%l1 : i32] : vector<4xf32>
    %v2 = llvm.extractelement %v[%l2 : i32] : vector<4xf32>
    %v3 = llvm.extractelement %v[%l3 : i32] : vector<4xf32>
    %v01 = llvm.fadd %v0, %v1 : f32
    %v23 = llvm.fadd %v2, %v3 : f32
    %sum = llvm.fadd %v01, %v23 : f32
    %total = llvm.call @block_sum(%sum) : (f32) -> f32
    %mean = llvm.fmul %total, %share : f32
    %means_ = llvm.mlir.undef : vector<4xf32>
    %means0 = llvm.insertelement %mean, %means_[%l0 : i32] : vector<4xf32>
    %means = llvm.shufflevector %means0, %means_ [0, 0, 0, 0] : vector<4xf32>
    %centred = llvm.fsub %v, %means : vector<4xf32>
    %squares = llvm.fmul %centred, %centred : vector<4xf32>
    %squares0 = llvm.extractelement %squares[%l0 : i32] : vector<4xf32>
    %squares1 = llvm.extractelement %squares[%l1 : i32] : vector<4xf32>
    %squares2 = llvm.extractelement %squares[%l2 : i32] : vector<4xf32>
    %squares3 = llvm.extractelement %squares[%l3 : i32] : vector<4xf32>
    %squares01 = llvm.fadd %squares0, %squares1 : f32
    %squares23 = llvm.fadd %squares2, %squares3 : f32
    %square = llvm.fadd %squares01, %squares23 : f32
    %squared = llvm.call @block_sum(%square) : (f32) -> f32
    %variance = llvm.fmul %squared, %share : f32
    %safe = llvm.fadd %variance, %epsilon : f32
    %root = llvm.intr.sqrt(%safe) : (f32) -> f32
    %scale = llvm.fdiv %fone, %root : f32
    %scales_ = llvm.mlir.undef : vector<4xf32>
    %scales0 = llvm.insertelement %scale, %scales_[%l0 : i32] : vector<4xf32>
    %scales = llvm.shufflevector %scales0, %scales_ [0, 0, 0, 0] : vector<4xf32>
    %pg = llvm.getelementptr %gamma[%c] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %g = llvm.load %pg {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    %pb = llvm.getelementptr %beta[%c] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %bv = llvm.load %pb {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    %n = llvm.fmul %centred, %scales : vector<4xf32>
    %ng = llvm.fmul %n, %g : vector<4xf32>
    %r = llvm.fadd %ng, %bv : vector<4xf32>
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %r, %py {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
    llvm.return
  }
}
