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
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 3>} {
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
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 4, unroll = 5>} {
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
        into (%y : !tile.slice<102x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4x20", tile.blocking = #tile.blocking<vectors = 4, panel_k = 32>} {
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
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 4, prefetch = 64>} {
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

// -----

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#plain = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>
tile.program @k_outermost outputs 1 {
^bb0(%a: !tile.slice<12x60xf32, global>, %b: !tile.slice<60x128xf32, global>, %y: !tile.slice<12x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    // expected-error @+1 {{the contraction cannot be computed as 'tile.blocking' states: kOutermost: no loop takes blocks of K, which the micro kernel's third size names}}
    tile.compute [12, 128, 60] sizes [12, 128, 60] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<12x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 4, k_outermost = true>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<12x60xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<60x128xf32, global> -> f32
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
tile.program @even_rows outputs 1 {
^bb0(%a: !tile.slice<24x67xf32, global>, %b: !tile.slice<67x64xf32, global>, %y: !tile.slice<24x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    // expected-error @+1 {{the contraction cannot be computed as 'tile.blocking' states: evenRows: no rows are shared: no block of rows has fewer than others}}
    tile.compute [24, 64, 67] sizes [24, 64, 67] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<24x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 4, even_rows = 8>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<24x67xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<67x64xf32, global> -> f32
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
tile.program @wider_last outputs 1 {
^bb0(%a: !tile.slice<24x67xf32, global>, %b: !tile.slice<67x64xf32, global>, %y: !tile.slice<24x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    // expected-error @+1 {{the contraction cannot be computed as 'tile.blocking' states: widerLast: no block has another vector: whole blocks fill a tile along N}}
    tile.compute [24, 64, 67] sizes [24, 64, 67] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<24x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 4, wider_last = true>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<24x67xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<67x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
