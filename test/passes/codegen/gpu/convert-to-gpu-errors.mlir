// RUN: tilewright-opt %s --tile-convert-to-gpu=target=sm_86 --split-input-file --verify-diagnostics

#id = affine_map<(d0)[s0] -> (d0)>

// expected-error @below {{a block needs 120000 bytes of shared memory; target 'sm_86' has 101376: plan smaller tiles}}
tile.program @too_much_shared_memory outputs 1 {
^bb0(%x: !tile.slice<64xf32, global>):
  tile.parallel [64] tiles [64] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    %b = tile.alloc at 0 : !tile.slice<30000xf32, block>
  }
  }
}

// -----

tile.program @odd_blocks outputs 1 {
^bb0(%x: !tile.slice<64xf32, global>):
  // expected-error @below {{blocks have 96 threads in groups of 0, but target 'sm_86' supports powers of two from 32 to 1024}}
  tile.parallel [64] tiles [64] workgroups 1 attributes {tile.threads = 96 : i64} {
  tile.walk {
  ^bb0(%i: index):
  }
  }
}

// -----

#id = affine_map<(d0)[s0] -> (d0)>

tile.program @more_than_are_resident outputs 2 {
^bb0(%x: !tile.slice<524288xf32, global>, %p: !tile.slice<524288xf32, global>, %y: !tile.slice<524288xf32, global>):
  tile.parallel [524288] tiles [1024] workgroups 512 attributes {tile.threads = 256 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [524288] sizes [1024] offsets [0] (%i) vector 0 reduce [] {
      %v = tile.load %x at #id : !tile.slice<524288xf32, global> -> f32
      tile.store %v, %p at #id : f32, !tile.slice<524288xf32, global>
      tile.yield
    }
  }
  }
  // expected-error @below {{in 'more_than_are_resident' 512 blocks of 256 threads, 64 registers per thread and 0 bytes of shared memory wait for each other; target 'sm_86' is sure to have 40 resident: plan fewer workgroups, or scope launch}}
  tile.sync <grid>
  tile.parallel [524288] tiles [1024] workgroups 512 attributes {tile.threads = 256 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [524288] sizes [1024] offsets [0] (%i) vector 0 reduce [] {
      %v = tile.load %p at #id : !tile.slice<524288xf32, global> -> f32
      tile.store %v, %y at #id : f32, !tile.slice<524288xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

tile.program @too_many_sums outputs 1 {
^bb0(%a: !tile.slice<256x8xf32, global>, %b: !tile.slice<8x256xf32, global>, %y: !tile.slice<256x256xf32, global>):
  tile.parallel [256, 256] tiles [256, 256] workgroups 1 attributes {tile.threads = 256 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    // expected-error @below {{the contraction has no code generation on GPUs: a tile of 256x256 needs 256 accumulators in each of 256 threads, which hold 64}}
    tile.compute [256, 256, 8] sizes [256, 256, 8] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<256x256xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "fma-8x8", gemm = #tile.gemm<m = 16, n = 16, step = 8, stages = 2>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<256x8xf32, global> -> f32
      %v = tile.load %b at #lanes : !tile.slice<8x256xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

tile.program @no_clusters outputs 1 {
^bb0(%x: !tile.slice<64xf32, global>):
  // expected-error @below {{clusters have 8 blocks, but target 'sm_86' has no clusters}}
  tile.parallel [64] tiles [8] workgroups 8 attributes {tile.threads = 32 : i64, tile.cluster = 8 : i64} {
  tile.walk {
  ^bb0(%i: index):
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0] -> (k, n)>
#out = affine_map<(m, n, k)[s0] -> (m, n)>

tile.program @nobody_copied_ahead outputs 1 {
^bb0(%x: !tile.slice<64x96xf16, global>, %w: !tile.slice<96x32xf16, global>, %y: !tile.slice<64x32xf32, global>):
  tile.parallel [64] tiles [32] workgroups 2 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    // expected-error @below {{prefetch: the first steps of its rhs cannot be copied ahead: that takes a contraction before it}}
    tile.compute [64, 32, 96] sizes [32, 32, 96] offsets [0] (%i) vector 1 reduce [2]
        into (%y : !tile.slice<64x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 64, stages = 3, prefetch = rhs>} {
    ^bb0(%s: f32):
      %u = tile.load %x at #rows : !tile.slice<64x96xf16, global> -> f16
      %v = tile.load %w at #lanes : !tile.slice<96x32xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0] -> (k, n)>
#out = affine_map<(m, n, k)[s0] -> (m, n)>

tile.program @nothing_says_how outputs 1 {
^bb0(%x: !tile.slice<64x96xf16, global>, %w: !tile.slice<96x32xf16, global>, %y: !tile.slice<64x32xf32, global>):
  tile.parallel [64] tiles [32] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    // expected-error @below {{the contraction has no code generation on GPUs: it has no #tile.gemm, which says how the threads of a block share it}}
    tile.compute [64, 32, 96] sizes [32, 32, 96] offsets [0] (%i) vector 1 reduce [2]
        into (%y : !tile.slice<64x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8"} {
    ^bb0(%s: f32):
      %u = tile.load %x at #rows : !tile.slice<64x96xf16, global> -> f16
      %v = tile.load %w at #lanes : !tile.slice<96x32xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0] -> (k, n)>
#out = affine_map<(m, n, k)[s0] -> (m, n)>

tile.program @another_instruction outputs 1 {
^bb0(%x: !tile.slice<64x96xf16, global>, %w: !tile.slice<96x32xf16, global>, %y: !tile.slice<64x32xf32, global>):
  tile.parallel [64] tiles [32] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    // expected-error @below {{the contraction has no code generation on GPUs: target 'sm_86' has no 'wgmma' for f16 times f16 with accumulators in f32}}
    tile.compute [64, 32, 96] sizes [32, 32, 96] offsets [0] (%i) vector 1 reduce [2]
        into (%y : !tile.slice<64x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "wgmma-64x8", gemm = #tile.gemm<m = 1, n = 1, step = 32, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %x at #rows : !tile.slice<64x96xf16, global> -> f16
      %v = tile.load %w at #lanes : !tile.slice<96x32xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0] -> (k, n)>
#out = affine_map<(m, n, k)[s0] -> (m, n)>

tile.program @too_many_units outputs 1 {
^bb0(%x: !tile.slice<64x96xf16, global>, %w: !tile.slice<96x32xf16, global>, %y: !tile.slice<64x32xf32, global>):
  tile.parallel [64] tiles [32] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    // expected-error @below {{the contraction has no code generation on GPUs: 2x4 units cannot share a tile of 32x32: 'mma_sync' takes 16x16 at least}}
    tile.compute [64, 32, 96] sizes [32, 32, 96] offsets [0] (%i) vector 1 reduce [2]
        into (%y : !tile.slice<64x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 2, n = 4, step = 32, stages = 3>} {
    ^bb0(%s: f32):
      %u = tile.load %x at #rows : !tile.slice<64x96xf16, global> -> f16
      %v = tile.load %w at #lanes : !tile.slice<96x32xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0] -> (k, n)>
#out = affine_map<(m, n, k)[s0] -> (m, n)>

tile.program @nothing_is_walked outputs 1 {
^bb0(%x: !tile.slice<64x96xf16, global>, %w: !tile.slice<96x32xf16, global>, %y: !tile.slice<64x32xf32, global>):
  tile.parallel [64] tiles [32] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    // expected-error @below {{the contraction has no code generation on GPUs: its lhs cannot stay in shared memory: it is not the same in all iterations of a loop around the contraction}}
    tile.compute [64, 32, 96] sizes [32, 32, 96] offsets [0] (%i) vector 1 reduce [2]
        into (%y : !tile.slice<64x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 2, step = 32, stages = 3, lhs = walk>} {
    ^bb0(%s: f32):
      %u = tile.load %x at #rows : !tile.slice<64x96xf16, global> -> f16
      %v = tile.load %w at #lanes : !tile.slice<96x32xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
