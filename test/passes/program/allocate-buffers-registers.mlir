// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-allocate-buffers))' --split-input-file | FileCheck %s

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#acc = affine_map<(m, n, k)[s0, s1, s2] -> (m - s0, n - s1)>
#local = affine_map<(m, n)[s0, s1] -> (m - s0, n - s1)>
#id = affine_map<(m, n)[s0, s1] -> (m, n)>

// On a GPU, threads keep a contraction's accumulators in registers for the epilogue: the buffer takes no memory.
// CHECK-LABEL: tile.program @sums_in_registers
// CHECK: tile.alloc : <16x16xf32, block>
tile.program @sums_in_registers outputs 1 {
^bb0(%a: !tile.slice<32x8xf32, global>, %b: !tile.slice<8x32xf32, global>, %y: !tile.slice<32x32xf32, global>):
  tile.parallel [32, 32] tiles [16, 16] workgroups 4 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    %t = tile.alloc : !tile.slice<16x16xf32, block>
    tile.compute [32, 32, 8] sizes [16, 16, 8] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%t : !tile.slice<16x16xf32, block>) at [#acc] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-8x8"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<32x8xf32, global> -> f32
      %v = tile.load %b at #lanes : !tile.slice<8x32xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [32, 32] sizes [16, 16] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %t at #local : !tile.slice<16x16xf32, block> -> f32
      %w = math.absf %v : f32
      tile.store %w, %y at #id : f32, !tile.slice<32x32xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#acc = affine_map<(m, n, k)[s0, s1, s2] -> (m - s0, n - s1)>
#across = affine_map<(m, n)[s0, s1] -> (n - s1, m - s0)>
#id = affine_map<(m, n)[s0, s1] -> (m, n)>

// A thread that reads another thread's accumulators finds them in memory.
// CHECK-LABEL: tile.program @sums_in_memory
// CHECK: tile.alloc at 0 : <16x16xf32, block>
tile.program @sums_in_memory outputs 1 {
^bb0(%a: !tile.slice<16x8xf32, global>, %b: !tile.slice<8x16xf32, global>, %y: !tile.slice<16x16xf32, global>):
  tile.parallel [16, 16] tiles [16, 16] workgroups 1 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    %t = tile.alloc : !tile.slice<16x16xf32, block>
    tile.compute [16, 16, 8] sizes [16, 16, 8] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%t : !tile.slice<16x16xf32, block>) at [#acc] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-8x8"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<16x8xf32, global> -> f32
      %v = tile.load %b at #lanes : !tile.slice<8x16xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [16, 16] sizes [16, 16] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %t at #across : !tile.slice<16x16xf32, block> -> f32
      tile.store %v, %y at #id : f32, !tile.slice<16x16xf32, global>
      tile.yield
    }
  }
  }
}
