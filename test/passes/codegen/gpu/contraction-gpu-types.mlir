// RUN: tilewright-opt %s --tile-convert-to-gpu=target=sm_80 --canonicalize --cse --split-input-file | FileCheck %s

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// Bytes that are contiguous along columns come in transposed pairs, which are split: even columns are one block, odd
// ones the other, so four neighbouring accumulators are stored at once.
// CHECK-LABEL: func.func @bytes
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>
// CHECK: llvm.shufflevector {{.*}} [0, 2, 4, 6]
// CHECK: llvm.shufflevector {{.*}} [1, 3, 5, 7]
// CHECK: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<s8>, multiplicandBPtxType = #nvvm.mma_type<u8>, shape = #nvvm.shape<m = 16, n = 8, k = 32>
// CHECK: vector.store {{.*}} vector<4xi32>
tile.program @bytes outputs 1 {
^bb0(%a: !tile.slice<32x64xi8, global>, %b: !tile.slice<64x32xi8, global>, %y: !tile.slice<32x32xi32, global>):
  tile.parallel [32, 32] tiles [32, 32] workgroups 1 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [32, 32, 64] sizes [32, 32, 64] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<32x32xi32, global>) at [#out] inits [0 : i32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 64, stages = 3>} {
    ^bb0(%s: i32):
      %u = tile.load %a at #rows : !tile.slice<32x64xi8, global> -> i8
      %v = tile.load %b at #lanes : !tile.slice<64x32xi8, global> -> i8
      %ue = arith.extsi %u : i8 to i32
      %ve = arith.extui %v : i8 to i32
      %p = arith.muli %ue, %ve : i32
      %n = arith.addi %s, %p : i32
      tile.yield %n : i32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// f32 is multiplied in tf32 only if the plan names it; operands are rounded, not truncated.
// CHECK-LABEL: func.func @tf32
// CHECK: nvvm.convert.float.to.tf32 {{.*}}rna
// CHECK: nvvm.mma.sync {{.*}}#nvvm.mma_type<tf32>{{.*}}k = 8
tile.program @tf32 outputs 1 {
^bb0(%a: !tile.slice<32x64xf32, global>, %b: !tile.slice<64x32xf32, global>, %y: !tile.slice<32x32xf32, global>):
  tile.parallel [32, 32] tiles [32, 32] workgroups 1 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [32, 32, 64] sizes [32, 32, 64] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<32x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_tf32-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 32, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<32x64xf32, global> -> f32
      %v = tile.load %b at #lanes : !tile.slice<64x32xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
