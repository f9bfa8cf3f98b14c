// RUN: tilewright-opt %s --tile-convert-to-gpu=target=cuda:h200 --split-input-file --verify-diagnostics

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

tile.program @launched outputs 1 {
^bb0(%a: !tile.slice<128x64xf32, global>, %b: !tile.slice<64x128xf32, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 64] workgroups 4 attributes {tile.threads = 256 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    // expected-error @below {{its rhs cannot stay in shared memory: its kernel is not repeated}}
    tile.compute [128, 128, 64] sizes [64, 64, 64] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "fma-8x8", gemm = #tile.gemm<m = 16, n = 16, step = 16, stages = 4>, tile.resident_weight} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x64xf32, global> -> f32
      %v = tile.load %b at #lanes : !tile.slice<64x128xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

tile.program @other_operand outputs 1 attributes {tile.repeated = array<i64: 0>} {
^bb0(%a: !tile.slice<128x64xf32, global>, %b: !tile.slice<64x128xf32, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 64] workgroups 4 attributes {tile.threads = 256 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    // expected-error @below {{its rhs cannot stay in shared memory: its rhs is no input that is the same in all steps}}
    tile.compute [128, 128, 64] sizes [64, 64, 64] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "fma-8x8", gemm = #tile.gemm<m = 16, n = 16, step = 16, stages = 4>, tile.resident_weight} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x64xf32, global> -> f32
      %v = tile.load %b at #lanes : !tile.slice<64x128xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// 8 blocks of 256 threads have too few registers.
// expected-error @below {{in 'crowded' residentBlocks is 8, but an SM of target 'cuda:h200' holds}}
tile.program @crowded outputs 1 attributes {tile.given, tile.resident_blocks = 8 : i64} {
^bb0(%a: !tile.slice<128x64xf32, global>, %b: !tile.slice<64x128xf32, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 64] workgroups 4 attributes {tile.threads = 256 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [128, 128, 64] sizes [64, 64, 64] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "fma-8x8", gemm = #tile.gemm<m = 16, n = 16, step = 16, stages = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x64xf32, global> -> f32
      %v = tile.load %b at #lanes : !tile.slice<64x128xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
