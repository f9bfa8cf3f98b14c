// Products of small matrices and asynchronous copies, one warp per block. Kernels with a bug have it at "planted".
gpu.module @tensor {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<512 x i8>

  // d = a * b + c, where the fragments of each lane are contiguous: 4, 2 and 4 words.
  llvm.func @multiply_f16(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %d: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %pa = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<4 x vector<2xf16>>
    %pb = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<2 x vector<2xf16>>
    %pc = llvm.getelementptr %c[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
    %pd = llvm.getelementptr %d[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
    %va = llvm.load %pa {alignment = 16 : i64} : !llvm.ptr<1> -> !llvm.array<4 x vector<2xf16>>
    %vb = llvm.load %pb {alignment = 8 : i64} : !llvm.ptr<1> -> !llvm.array<2 x vector<2xf16>>
    %vc = llvm.load %pc {alignment = 16 : i64} : !llvm.ptr<1> -> !llvm.array<4 x f32>
    %a0 = llvm.extractvalue %va[0] : !llvm.array<4 x vector<2xf16>>
    %a1 = llvm.extractvalue %va[1] : !llvm.array<4 x vector<2xf16>>
    %a2 = llvm.extractvalue %va[2] : !llvm.array<4 x vector<2xf16>>
    %a3 = llvm.extractvalue %va[3] : !llvm.array<4 x vector<2xf16>>
    %b0 = llvm.extractvalue %vb[0] : !llvm.array<2 x vector<2xf16>>
    %b1 = llvm.extractvalue %vb[1] : !llvm.array<2 x vector<2xf16>>
    %c0 = llvm.extractvalue %vc[0] : !llvm.array<4 x f32>
    %c1 = llvm.extractvalue %vc[1] : !llvm.array<4 x f32>
    %c2 = llvm.extractvalue %vc[2] : !llvm.array<4 x f32>
    %c3 = llvm.extractvalue %vc[3] : !llvm.array<4 x f32>
    %r = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%c0, %c1, %c2, %c3]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.store %r, %pd {alignment = 16 : i64} : !llvm.struct<(f32, f32, f32, f32)>, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @multiply_bf16(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %d: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %pa = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<4 x i32>
    %pb = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<2 x i32>
    %pc = llvm.getelementptr %c[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
    %pd = llvm.getelementptr %d[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
    %va = llvm.load %pa {alignment = 16 : i64} : !llvm.ptr<1> -> !llvm.array<4 x i32>
    %vb = llvm.load %pb {alignment = 8 : i64} : !llvm.ptr<1> -> !llvm.array<2 x i32>
    %vc = llvm.load %pc {alignment = 16 : i64} : !llvm.ptr<1> -> !llvm.array<4 x f32>
    %a0 = llvm.extractvalue %va[0] : !llvm.array<4 x i32>
    %a1 = llvm.extractvalue %va[1] : !llvm.array<4 x i32>
    %a2 = llvm.extractvalue %va[2] : !llvm.array<4 x i32>
    %a3 = llvm.extractvalue %va[3] : !llvm.array<4 x i32>
    %b0 = llvm.extractvalue %vb[0] : !llvm.array<2 x i32>
    %b1 = llvm.extractvalue %vb[1] : !llvm.array<2 x i32>
    %c0 = llvm.extractvalue %vc[0] : !llvm.array<4 x f32>
    %c1 = llvm.extractvalue %vc[1] : !llvm.array<4 x f32>
    %c2 = llvm.extractvalue %vc[2] : !llvm.array<4 x f32>
    %c3 = llvm.extractvalue %vc[3] : !llvm.array<4 x f32>
    %r = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%c0, %c1, %c2, %c3]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
         multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>,
         shape = #nvvm.shape<m = 16, n = 8, k = 16>}
        : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.store %r, %pd {alignment = 16 : i64} : !llvm.struct<(f32, f32, f32, f32)>, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @multiply_s8u8(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %d: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %pa = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<4 x i32>
    %pb = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<2 x i32>
    %pc = llvm.getelementptr %c[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xi32>
    %pd = llvm.getelementptr %d[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xi32>
    %va = llvm.load %pa {alignment = 16 : i64} : !llvm.ptr<1> -> !llvm.array<4 x i32>
    %vb = llvm.load %pb {alignment = 8 : i64} : !llvm.ptr<1> -> !llvm.array<2 x i32>
    %vc = llvm.load %pc {alignment = 16 : i64} : !llvm.ptr<1> -> !llvm.array<4 x i32>
    %a0 = llvm.extractvalue %va[0] : !llvm.array<4 x i32>
    %a1 = llvm.extractvalue %va[1] : !llvm.array<4 x i32>
    %a2 = llvm.extractvalue %va[2] : !llvm.array<4 x i32>
    %a3 = llvm.extractvalue %va[3] : !llvm.array<4 x i32>
    %b0 = llvm.extractvalue %vb[0] : !llvm.array<2 x i32>
    %b1 = llvm.extractvalue %vb[1] : !llvm.array<2 x i32>
    %c0 = llvm.extractvalue %vc[0] : !llvm.array<4 x i32>
    %c1 = llvm.extractvalue %vc[1] : !llvm.array<4 x i32>
    %c2 = llvm.extractvalue %vc[2] : !llvm.array<4 x i32>
    %c3 = llvm.extractvalue %vc[3] : !llvm.array<4 x i32>
    %r = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%c0, %c1, %c2, %c3]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
         intOverflowBehavior = #nvvm.mma_int_overflow<wrapped>,
         multiplicandAPtxType = #nvvm.mma_type<s8>, multiplicandBPtxType = #nvvm.mma_type<u8>,
         shape = #nvvm.shape<m = 16, n = 8, k = 32>}
        : (i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
    llvm.store %r, %pd {alignment = 16 : i64} : !llvm.struct<(i32, i32, i32, i32)>, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @rounds_to_tf32(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %v = llvm.load %px {alignment = 4 : i64} : !llvm.ptr<1> -> f32
    %r = nvvm.convert.float.to.tf32 %v {rnd = #nvvm.fp_rnd_mode<rna>}
    llvm.store %r, %py {alignment = 4 : i64} : i32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @multiply_tf32(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %d: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %pa = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<4 x i32>
    %pb = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<2 x i32>
    %pc = llvm.getelementptr %c[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
    %pd = llvm.getelementptr %d[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
    %va = llvm.load %pa {alignment = 16 : i64} : !llvm.ptr<1> -> !llvm.array<4 x i32>
    %vb = llvm.load %pb {alignment = 8 : i64} : !llvm.ptr<1> -> !llvm.array<2 x i32>
    %vc = llvm.load %pc {alignment = 16 : i64} : !llvm.ptr<1> -> !llvm.array<4 x f32>
    %a0 = llvm.extractvalue %va[0] : !llvm.array<4 x i32>
    %a1 = llvm.extractvalue %va[1] : !llvm.array<4 x i32>
    %a2 = llvm.extractvalue %va[2] : !llvm.array<4 x i32>
    %a3 = llvm.extractvalue %va[3] : !llvm.array<4 x i32>
    %b0 = llvm.extractvalue %vb[0] : !llvm.array<2 x i32>
    %b1 = llvm.extractvalue %vb[1] : !llvm.array<2 x i32>
    %c0 = llvm.extractvalue %vc[0] : !llvm.array<4 x f32>
    %c1 = llvm.extractvalue %vc[1] : !llvm.array<4 x f32>
    %c2 = llvm.extractvalue %vc[2] : !llvm.array<4 x f32>
    %c3 = llvm.extractvalue %vc[3] : !llvm.array<4 x f32>
    %r = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%c0, %c1, %c2, %c3]
        {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>,
         multiplicandAPtxType = #nvvm.mma_type<tf32>, multiplicandBPtxType = #nvvm.mma_type<tf32>,
         shape = #nvvm.shape<m = 16, n = 8, k = 8>}
        : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.store %r, %pd {alignment = 16 : i64} : !llvm.struct<(f32, f32, f32, f32)>, !llvm.ptr<1>
    llvm.return
  }
  // 32 rows of 16 bytes are copied asynchronously, one per lane, and stored as four matrices.
  llvm.func @load_matrices(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xi32>
    %row = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    nvvm.cp.async.shared.global %row, %px, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    nvvm.barrier0
    %r = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xi32>
    llvm.store %r, %py {alignment = 16 : i64} : !llvm.struct<(i32, i32, i32, i32)>, !llvm.ptr<1>
    llvm.return
  }
  // Two matrices are copied the same way, each transposed.
  llvm.func @load_transposed(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xi32>
    %row = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    nvvm.cp.async.shared.global %row, %px, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    nvvm.barrier0
    %r = nvvm.ldmatrix %row {num = 2 : i32, layout = #nvvm.mma_layout<col>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<2xi32>
    llvm.store %r, %py {alignment = 8 : i64} : !llvm.struct<(i32, i32)>, !llvm.ptr<1>
    llvm.return
  }
  // Lanes from 20 on copy nothing, and find zeros.
  llvm.func @copies_a_part(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %bound = llvm.mlir.constant(20 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %all = llvm.mlir.constant(4 : i32) : i32
    %in = llvm.icmp "ult" %t, %bound : i32
    %bytes = llvm.select %in, %all, %zero : i1, i32
    %i = llvm.select %in, %t, %zero : i1, i32
    %shared = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %px = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %own = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    nvvm.cp.async.shared.global %own, %px, 4, cache = ca, %bytes : !llvm.ptr<3>, !llvm.ptr<1>, i32
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %v = llvm.load %own {alignment = 4 : i64} : !llvm.ptr<3> -> f32
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %v, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
}
