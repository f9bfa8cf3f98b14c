// RUN: tilewright-opt %s --tile-convert-to-gpu=target=cuda:h200 --split-input-file --verify-diagnostics

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k floordiv 64, n, k mod 64)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// The attribute does not fit the tensor.
tile.program @other_shape outputs 1 {
^bb0(%a: !tile.slice<128x256xf16, global>, %b: !tile.slice<4x128x64xf16, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 128] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    // expected-error @below {{its N operand does not have the swizzled layout that 'tile.swizzled' states}}
    tile.compute [128, 128, 256] sizes [64, 128, 256] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "wgmma-64x8", gemm = #tile.gemm<m = 1, n = 1, step = 64, stages = 4>, tile.swizzled = array<i64: 256, 64>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x256xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<4x128x64xf16, global> -> f16
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

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k floordiv 64, n, k mod 64)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// Only warpgroups read a swizzled layout.
tile.program @other_micro_kernel outputs 1 {
^bb0(%a: !tile.slice<128x256xf16, global>, %b: !tile.slice<4x128x64xf16, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 128] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    // expected-error @below {{only warpgroups that do not round their operands read swizzled layouts, but 'mma_sync' computes it}}
    tile.compute [128, 128, 256] sizes [64, 128, 256] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "mma_sync-16x8", gemm = #tile.gemm<m = 1, n = 4, step = 64, stages = 4>, tile.swizzled = array<i64: 128, 64>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x256xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<4x128x64xf16, global> -> f16
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

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k floordiv 32, n, k mod 32)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// The layout has steps other than K = 64.
tile.program @other_step outputs 1 {
^bb0(%a: !tile.slice<128x256xf16, global>, %b: !tile.slice<8x128x32xf16, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 128] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    // expected-error @below {{tiles of N = 128 in steps of K = 64 do not fit a swizzled layout of 128 lines of 32}}
    tile.compute [128, 128, 256] sizes [64, 128, 256] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "wgmma-64x8", gemm = #tile.gemm<m = 1, n = 1, step = 64, stages = 4>, tile.swizzled = array<i64: 128, 32>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x256xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<8x128x32xf16, global> -> f16
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

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k floordiv 64, n, k mod 64)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// The last tile would read past the end of the swizzled layout.
tile.program @too_few_lines outputs 1 {
^bb0(%a: !tile.slice<128x256xf16, global>, %b: !tile.slice<4x128x64xf16, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 96] workgroups 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    // expected-error @below {{tiles of N = 96 in steps of K = 64 do not fit a swizzled layout of 128 lines of 64}}
    tile.compute [128, 128, 256] sizes [64, 96, 256] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "wgmma-64x8", gemm = #tile.gemm<m = 1, n = 1, step = 64, stages = 4>, tile.swizzled = array<i64: 128, 64>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x256xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<4x128x64xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
