// A `tile.blocking` that no code can be emitted for is refused by its field.
// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --split-input-file --verify-diagnostics

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#panels = affine_map<(m, n, k)[s0, s1, s2] -> (n floordiv 64, k, n mod 64)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>
tile.program @vectors outputs 1 {
^bb0(%a: !tile.slice<102x96xf32, global>, %b: !tile.slice<2x96x64xf32, global>, %y: !tile.slice<102x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    // expected-error @+1 {{the contraction cannot be computed as 'tile.blocking' states: vectors: blocks of 3 vectors of 16 do not fill the panels of 64 that rhs is packed in}}
    tile.compute [102, 128, 96] sizes [102, 128, 96] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = array<i64: 3, 1, 0, 0>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<102x96xf32, global> -> f32
      %v = tile.load %b at #panels : !tile.slice<2x96x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#panels = affine_map<(m, n, k)[s0, s1, s2] -> (n floordiv 64, k, n mod 64)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>
tile.program @unroll outputs 1 {
^bb0(%a: !tile.slice<102x96xf32, global>, %b: !tile.slice<2x96x64xf32, global>, %y: !tile.slice<102x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    // expected-error @+1 {{the contraction cannot be computed as 'tile.blocking' states: unroll: 5 does not divide 96, the K of the contraction}}
    tile.compute [102, 128, 96] sizes [102, 128, 96] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = array<i64: 4, 5, 0, 0>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<102x96xf32, global> -> f32
      %v = tile.load %b at #panels : !tile.slice<2x96x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#plain = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>
tile.program @panel_k outputs 1 {
^bb0(%a: !tile.slice<102x96xf32, global>, %b: !tile.slice<96x64xf32, global>, %y: !tile.slice<102x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    // expected-error @+1 {{the contraction cannot be computed as 'tile.blocking' states: panelK: the micro kernel takes blocks of 20 along K, so panels cannot have 32}}
    tile.compute [102, 64, 96] sizes [102, 64, 96] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4x20", tile.blocking = array<i64: 4, 1, 32, 0>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<102x96xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<96x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#plain = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>
tile.program @prefetch outputs 1 {
^bb0(%a: !tile.slice<102x96xf32, global>, %b: !tile.slice<96x128xf32, global>, %y: !tile.slice<102x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    // expected-error @+1 {{the contraction cannot be computed as 'tile.blocking' states: prefetch: no panel can be prefetched: the panels of rhs do not follow each other in memory}}
    tile.compute [102, 128, 96] sizes [102, 128, 96] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = array<i64: 4, 1, 0, 64>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<102x96xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<96x128xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
