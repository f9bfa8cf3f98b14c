// Four warps multiply a 64 x 16 matrix by a 16 x 8 one, which threads have copied to shared memory in the 32-byte
// swizzled layout, and store the accumulators as their registers hold them. Tests remove lines by the name in their
// trailing comment, or replace them.
gpu.module @warpgroups {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<2304 x i8>
  llvm.func @multiplies(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %y: !llvm.ptr<1>)
      attributes {gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>} {
    %one = llvm.mlir.constant(1 : i32) : i32
    %two = llvm.mlir.constant(2 : i32) : i32
    %few = llvm.mlir.constant(16 : i32) : i32
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %right = llvm.getelementptr %tile[2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %row = llvm.lshr %t, %one : i32
    %atom = llvm.and %t, %one : i32
    %group = llvm.lshr %row, %two : i32
    %turn = llvm.and %group, %one : i32
    %turned = llvm.xor %atom, %turn : i32
    %line = llvm.shl %row, %one : i32
    %place = llvm.add %line, %turned : i32
    %pa = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xi32>
    %sa = llvm.getelementptr %tile[%place] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    %va = llvm.load %pa {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
    llvm.store %va, %sa {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    %copies = llvm.icmp "ult" %t, %few : i32
    llvm.cond_br %copies, ^copy, ^meet
  ^copy:
    %pb = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xi32>
    %sb = llvm.getelementptr %right[%place] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    %vb = llvm.load %pb {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
    llvm.store %vb, %sb {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    llvm.br ^meet
  ^meet:
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>} // proxy
    nvvm.barrier0 // barrier
    %window = llvm.mlir.constant(262143 : i64) : i64
    %four = llvm.mlir.constant(4 : i64) : i64
    // Groups of 8 lines are 256 bytes apart; swizzle mode 3 is that of 32 bytes.
    %fixed = llvm.mlir.constant(-4611685949707911168 : i64) : i64
    %ia = llvm.ptrtoint %tile : !llvm.ptr<3> to i64
    %wa = llvm.and %ia, %window : i64
    %ra = llvm.lshr %wa, %four : i64
    %da = llvm.or %ra, %fixed : i64 // describe
    %ib = llvm.ptrtoint %right : !llvm.ptr<3> to i64
    %wb = llvm.and %ib, %window : i64
    %rb = llvm.lshr %wb, %four : i64
    %db = llvm.or %rb, %fixed : i64
    %none = llvm.mlir.undef : !llvm.struct<(f32, f32, f32, f32)>
    %n0 = llvm.insertvalue %zero, %none[0] : !llvm.struct<(f32, f32, f32, f32)>
    %n1 = llvm.insertvalue %zero, %n0[1] : !llvm.struct<(f32, f32, f32, f32)>
    %n2 = llvm.insertvalue %zero, %n1[2] : !llvm.struct<(f32, f32, f32, f32)>
    %n3 = llvm.insertvalue %zero, %n2[3] : !llvm.struct<(f32, f32, f32, f32)>
    nvvm.wgmma.fence.aligned // registers
    %d = nvvm.wgmma.mma_async %da, %db, %n3, <m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<one>], A [<f16>, #nvvm.wgmma_scale_in<one>, <row>], B [<f16>, #nvvm.wgmma_scale_in<one>, <col>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
    nvvm.wgmma.commit.group.sync.aligned // commit
    nvvm.wgmma.wait.group.sync.aligned 0 // wait
    %d0 = llvm.extractvalue %d[0] : !llvm.struct<(f32, f32, f32, f32)>
    %d1 = llvm.extractvalue %d[1] : !llvm.struct<(f32, f32, f32, f32)>
    %d2 = llvm.extractvalue %d[2] : !llvm.struct<(f32, f32, f32, f32)>
    %d3 = llvm.extractvalue %d[3] : !llvm.struct<(f32, f32, f32, f32)>
    %py = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
    %p1 = llvm.getelementptr %py[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %p2 = llvm.getelementptr %py[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %p3 = llvm.getelementptr %py[3] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    llvm.store %d0, %py {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.store %d1, %p1 {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.store %d2, %p2 {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.store %d3, %p3 {alignment = 4 : i64} : f32, !llvm.ptr<1>
    llvm.return
  }
}
