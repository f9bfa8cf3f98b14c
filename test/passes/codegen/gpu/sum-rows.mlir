// RUN: tilewright-opt %s --tile-convert-to-gpu=target=sm_80 --canonicalize --cse --split-input-file | FileCheck %s

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#acc = affine_map<(m, n, k)[s0, s1, s2] -> (m - s0, n - s1)>
#local = affine_map<(m, n)[s0, s1] -> (m - s0, n - s1)>
#row = affine_map<(m, n)[s0, s1] -> (m - s0)>
#id = affine_map<(m, n)[s0, s1] -> (m, n)>

// A softmax without its division: two nests read the accumulators, and both reduce them. Each thread keeps its 2 x 4
// accumulators, and combines each row with the three lanes that share it, then with the neighbouring warp. The
// accumulators need no buffer, and the value subtracted from them is read once per row.
// CHECK-LABEL: func.func @softmax
// CHECK: nvvm.mma.sync
// CHECK-NOT: memref<16x64xf32, 3>
// CHECK: arith.maximumf {{.*}} : vector<2xf32>
// CHECK-COUNT-4: nvvm.shfl.sync {{.*}}f32
// CHECK: vector.store {{.*}} : memref<1x128x2xf32, 3>, vector<2xf32>
// CHECK: nvvm.barrier
// CHECK-COUNT-4: vector.load {{.*}} : memref<1x128x2xf32, 3>, vector<2xf32>
// CHECK: nvvm.barrier
// CHECK: scf.if
// CHECK: memref.store {{.*}} : memref<16xf32, 3>
// CHECK: nvvm.barrier
// CHECK: memref.load {{.*}} : memref<16xf32, 3>
// CHECK-COUNT-2: math.exp {{.*}} : vector<2xf32>
// CHECK: memref.load {{.*}} : memref<16xf32, 3>
// CHECK-COUNT-2: math.exp {{.*}} : vector<2xf32>
// CHECK-COUNT-4: nvvm.shfl.sync {{.*}}f32
// CHECK-NOT: memref<16x64xf32, 3>
tile.program @softmax outputs 2 {
^bb0(%a: !tile.slice<64x64xf16, global>, %b: !tile.slice<64x64xf16, global>, %y: !tile.slice<64x64xf32, global>,
     %z: !tile.slice<64xf32, global>):
  tile.parallel [64] tiles [16] workgroups 4 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %t = tile.alloc : !tile.slice<16x64xf32, block>
    %m = tile.alloc : !tile.slice<16xf32, block>
    tile.compute [64, 64, 64] sizes [16, 64, 64] offsets [0] (%i) vector 1 reduce [2]
        into (%t : !tile.slice<16x64xf32, block>) at [#acc] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 4, step = 64, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<64x64xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<64x64xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [64, 64] sizes [16, 64] offsets [0] (%i) vector 1 reduce [1]
        into (%m : !tile.slice<16xf32, block>) at [#row] inits [0xFF800000 : f32] kinds ["maximumf"] {
    ^bb0(%s: f32):
      %v = tile.load %t at #local : !tile.slice<16x64xf32, block> -> f32
      %n = arith.maximumf %v, %s : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [64, 64] sizes [16, 64] offsets [0] (%i) vector 1 reduce [1]
        into (%z : !tile.slice<64xf32, global>) at [affine_map<(m, n)[s0, s1] -> (m)>] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%s: f32):
      %v = tile.load %t at #local : !tile.slice<16x64xf32, block> -> f32
      %w = tile.load %m at #row : !tile.slice<16xf32, block> -> f32
      %d = arith.subf %v, %w : f32
      %e = math.exp %d : f32
      tile.store %e, %y at #id : f32, !tile.slice<64x64xf32, global>
      %n = arith.addf %e, %s : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#acc = affine_map<(m, n, k)[s0, s1, s2] -> (m - s0, n - s1)>
#local = affine_map<(m, n)[s0, s1] -> (m - s0, n - s1)>
#column = affine_map<(m, n)[s0, s1] -> (n - s1)>

// Columns are not reduced this way: their accumulators belong to other rows, so all of them go through memory.
// CHECK-LABEL: func.func @columns
// CHECK: vector.store {{.*}} : memref<16x64xf32, 3>, vector<2xf32>
tile.program @columns outputs 1 {
^bb0(%a: !tile.slice<16x64xf16, global>, %b: !tile.slice<64x64xf16, global>, %z: !tile.slice<64xf32, global>):
  tile.parallel [64] tiles [64] workgroups 1 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%j: index):
    %t = tile.alloc : !tile.slice<16x64xf32, block>
    tile.compute [16, 64, 64] sizes [16, 64, 64] offsets [1] (%j) vector 1 reduce [2]
        into (%t : !tile.slice<16x64xf32, block>) at [#acc] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 4, step = 64, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<16x64xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<64x64xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [16, 64] sizes [16, 64] offsets [1] (%j) vector 1 reduce [0]
        into (%z : !tile.slice<64xf32, global>) at [affine_map<(m, n)[s0, s1] -> (n)>] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%s: f32):
      %v = tile.load %t at #local : !tile.slice<16x64xf32, block> -> f32
      %n = arith.addf %v, %s : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#acc = affine_map<(m, n, k)[s0, s1, s2] -> (m - s0, n - s1)>
#local = affine_map<(m, n)[s0, s1] -> (m - s0, n - s1)>
#row = affine_map<(m, n)[s0, s1] -> (m - s0)>
#id = affine_map<(m, n)[s0, s1] -> (m, n)>

// The loop over blocks carries the accumulators, 2 x 4 of a thread: they neither start in memory nor are read from
// there behind the loop.
// CHECK-LABEL: func.func @grows
// CHECK-NOT: memref<16x64xf32, 3>
// CHECK: %[[sums:.*]]:8 = scf.for {{.*}} iter_args({{.*}}) -> (f32, f32, f32, f32, f32, f32, f32, f32)
// CHECK:   nvvm.mma.sync
// CHECK:   %[[half:.*]] = vector.from_elements {{.*}} : vector<2xf32>
// CHECK:   arith.addf {{.*}} : vector<2xf32>
// CHECK:   scf.yield {{.*}} : f32, f32, f32, f32, f32, f32, f32, f32
// CHECK: vector.from_elements %[[sums]]#0, %[[sums]]#1 : vector<2xf32>
// CHECK: vector.store {{.*}} : memref<64x64xf32, 1>, vector<2xf32>
// CHECK-NOT: memref<16x64xf32, 3>
tile.program @grows outputs 1 {
^bb0(%a: !tile.slice<64x256xf16, global>, %b: !tile.slice<256x64xf16, global>, %f: !tile.slice<64xf32, global>,
     %y: !tile.slice<64x64xf32, global>):
  tile.parallel [64] tiles [16] workgroups 4 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %o = tile.alloc : !tile.slice<16x64xf32, block>
    %t = tile.alloc : !tile.slice<16x64xf32, block>
    tile.compute [64, 64] sizes [16, 64] offsets [0] (%i) vector 1 reduce [] {
      %z = arith.constant 0.0 : f32
      tile.store %z, %o at #local : f32, !tile.slice<16x64xf32, block>
      tile.yield
    }
    tile.sync <block>
    %end = arith.constant 256 : index
    %begin = arith.constant 0 : index
    %step = arith.constant 64 : index
    scf.for %k = %begin to %end step %step {
      tile.compute [64, 64, 256] sizes [16, 64, 64] offsets [0, 2] (%i, %k) vector 1 reduce [2]
          into (%t : !tile.slice<16x64xf32, block>) at [#acc] inits [0.0 : f32] kinds ["add"]
          attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 4, step = 64, stages = 3>} {
      ^bb0(%s: f32):
        %u = tile.load %a at #rows : !tile.slice<64x256xf16, global> -> f16
        %v = tile.load %b at #lanes : !tile.slice<256x64xf16, global> -> f16
        %ue = arith.extf %u : f16 to f32
        %ve = arith.extf %v : f16 to f32
        %p = arith.mulf %ue, %ve : f32
        %n = arith.addf %s, %p : f32
        tile.yield %n : f32
      }
      tile.sync <block>
      tile.compute [64, 64] sizes [16, 64] offsets [0] (%i) vector 1 reduce [] {
        %old = tile.load %o at #local : !tile.slice<16x64xf32, block> -> f32
        %new = tile.load %t at #local : !tile.slice<16x64xf32, block> -> f32
        %n = arith.addf %old, %new : f32
        tile.store %n, %o at #local : f32, !tile.slice<16x64xf32, block>
        tile.yield
      }
    }
    tile.sync <block>
    tile.compute [64, 64] sizes [16, 64] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %o at #local : !tile.slice<16x64xf32, block> -> f32
      %w = tile.load %f at affine_map<(m, n)[s0, s1] -> (m)> : !tile.slice<64xf32, global> -> f32
      %x = arith.mulf %v, %w : f32
      tile.store %x, %y at #id : f32, !tile.slice<64x64xf32, global>
      tile.yield
    }
  }
  }
}
