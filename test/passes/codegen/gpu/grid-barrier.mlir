// RUN: tilewright-opt %s --tile-convert-to-gpu=target=cuda:h200 | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tilewright-cuda-codegen{target=cuda:h200 object-path=%t.ptx})' | FileCheck %s --check-prefix=NVVM
// RUN: FileCheck %s --check-prefix=PTX < %t.ptx

#row = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>
#id = affine_map<(d0)[s0] -> (d0)>
#all = affine_map<(d0)[s0] -> (0)>

// All blocks arrive at the barrier, even those without work in the phase behind it. All must be resident: 256 blocks on
// 132 SMs are 2 on each.
// CHECK-LABEL: func.func @sum_in_two_phases
// CHECK-SAME: tile.resident_blocks = 2 : i64
// CHECK: %[[COUNTER:.*]] = llvm.mlir.addressof @sum_in_two_phases_grid_counter : !llvm.ptr<1>
// CHECK: %[[BLOCKS:.*]] = llvm.mlir.constant(256 : i32) : i32
// CHECK: llvm.call @tile_grid_barrier(%[[COUNTER]], %[[BLOCKS]]) : (!llvm.ptr<1>, i32) -> ()
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : index
// CHECK: scf.if %[[FIRST]]

// The counter is zero when the module is loaded, and the wait is bounded. The buffer that blocks hand over is an
// output, so it is not noalias; inputs are.
// NVVM-DAG: llvm.mlir.global internal @sum_in_two_phases_grid_counter(0 : i32) {addr_space = 1 : i32
// NVVM-DAG: llvm.func @sum_in_two_phases(%{{.*}}: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias}, %{{.*}}: !llvm.ptr<1> {llvm.align = 16 : i64}, %{{.*}}: !llvm.ptr<1> {llvm.align = 16 : i64}){{.*}}nvvm.maxntid = array<i32: 128, 1, 1>, nvvm.minctasm = 2 : i32
// NVVM-DAG: llvm.func internal @tile_grid_barrier
// NVVM-DAG: llvm.atomicrmw add {{.*}} syncscope("device") monotonic
// NVVM-DAG: llvm.intr.trap

// The fences have device scope, and behind the barrier nothing is read from a cache that may be stale.
// PTX: .global .align 4 .u32 sum_in_two_phases_grid_counter;
// PTX: .minnctapersm 2
// PTX: ld.global.nc.v4
// PTX: st.global
// PTX: bar.sync
// PTX-NOT: ld.global.nc
// PTX: fence.acq_rel.gpu
// PTX: atom.global.add.u32
// PTX: ld.acquire.gpu.global
// PTX: trap
module {
module @tilewright_kernels {
tile.program @sum_in_two_phases outputs 2 {
^bb0(%x: !tile.slice<256x512xf32, global>, %p: !tile.slice<256xf32, global>, %y: !tile.slice<1xf32, global>):
  tile.parallel [256] tiles [1] workgroups 256 attributes {tile.threads = 128 : i64, tile.group = 128 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [256, 512] sizes [1, 512] offsets [0] (%i) vector 1 reduce [1]
          into (%p : !tile.slice<256xf32, global>) at [#acc] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%acc: f32):
        %v = tile.load %x at #row : !tile.slice<256x512xf32, global> -> f32
        %n = arith.addf %v, %acc : f32
        tile.yield %n : f32
      }
    }
  }
  tile.sync <grid>
  tile.parallel [] tiles [] workgroups 1 attributes {tile.threads = 64 : i64, tile.group = 64 : i64} {
    tile.walk {
      tile.compute [256] sizes [256] offsets [] () vector 0 reduce [0]
          into (%y : !tile.slice<1xf32, global>) at [#all] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%acc: f32):
        %v = tile.load %p at #id : !tile.slice<256xf32, global> -> f32
        %n = arith.addf %v, %acc : f32
        tile.yield %n : f32
      }
    }
  }
}
}
}
