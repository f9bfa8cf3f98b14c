// RUN: tilewright-opt %s --tile-allocate-partials=target=cuda:h200 --split-input-file --verify-diagnostics

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

module {
tile.program @other_steps outputs 1 {
^bb0(%a: !tile.slice<128x256xf16, global>, %b: !tile.slice<256x128xf16, global>, %y: !tile.slice<128x128xf32, global>):
  // expected-error @below {{workgroups cannot share tiles: a tile has 4 steps along K, not 8}}
  tile.parallel [128, 128] tiles [64, 128] workgroups 3 steps 8 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [128, 128, 256] sizes [64, 128, 256] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "wgmma-64x8", gemm = #tile.gemm<m = 1, n = 1, step = 64, stages = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x256xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<256x128xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
}

// -----

#id = affine_map<(i)[s0] -> (i)>

module {
tile.program @no_contraction outputs 1 {
^bb0(%x: !tile.slice<1024xf32, global>, %y: !tile.slice<1024xf32, global>):
  // expected-error @below {{workgroups cannot share tiles: a tile does not end with its only contraction}}
  tile.parallel [1024] tiles [256] workgroups 5 steps 2 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [1024] sizes [256] offsets [0] (%i) vector 0 reduce [] {
      %u = tile.load %x at #id : !tile.slice<1024xf32, global> -> f32
      %v = arith.addf %u, %u : f32
      tile.store %v, %y at #id : f32, !tile.slice<1024xf32, global>
      tile.yield
    }
  }
  }
}
}
