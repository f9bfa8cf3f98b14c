// The blocks of a contraction are emitted as `tile.blocking` states, whatever would be chosen without it.
// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --cse | FileCheck %s

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#panels = affine_map<(m, n, k)[s0, s1, s2] -> (n floordiv 64, k, n mod 64)>
#plain = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// A step loads two vectors of rhs, where the micro kernel has four.
// CHECK-LABEL: func.func @vectors
// CHECK: scf.for %{{.*}} = %c0 to %c96 step %c1
// CHECK-COUNT-2: vector.load %arg1
// CHECK-NOT: vector.load %arg1
// CHECK: scf.yield
tile.program @vectors outputs 1 {
^bb0(%a: !tile.slice<102x96xf32, global>, %b: !tile.slice<2x96x64xf32, global>, %y: !tile.slice<102x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [102, 128, 96] sizes [102, 128, 96] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 2>} {
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

// An iteration takes four steps of K.
// CHECK-LABEL: func.func @unroll
// CHECK: scf.for %{{.*}} = %c0 to %c24 step %c1
// CHECK-COUNT-16: vector.load %arg1
// CHECK-NOT: vector.load %arg1
// CHECK: scf.yield
tile.program @unroll outputs 1 {
^bb0(%a: !tile.slice<102x96xf32, global>, %b: !tile.slice<2x96x64xf32, global>, %y: !tile.slice<102x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [102, 128, 96] sizes [102, 128, 96] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 4, unroll = 4>} {
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

// Panels of 32 steps are copied, with room for one more.
// CHECK-LABEL: func.func @panel_k
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<33x64xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c96 step %c32
tile.program @panel_k outputs 1 {
^bb0(%a: !tile.slice<102x96xf32, global>, %b: !tile.slice<96x64xf32, global>, %y: !tile.slice<102x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [102, 64, 96] sizes [102, 64, 96] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 4, panel_k = 32>} {
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

// These panels have 8 KB, which would not be prefetched otherwise.
// CHECK-LABEL: func.func @prefetch
// CHECK: memref.prefetch
tile.program @prefetch outputs 1 {
^bb0(%a: !tile.slice<102x32xf32, global>, %b: !tile.slice<2x32x64xf32, global>, %y: !tile.slice<102x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [102, 128, 32] sizes [102, 128, 32] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 4, prefetch = 8192>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<102x32xf32, global> -> f32
      %v = tile.load %b at #panels : !tile.slice<2x32x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// These have 24 KB, which would be prefetched otherwise.
// CHECK-LABEL: func.func @no_prefetch
// CHECK-NOT: memref.prefetch
tile.program @no_prefetch outputs 1 {
^bb0(%a: !tile.slice<102x96xf32, global>, %b: !tile.slice<2x96x64xf32, global>, %y: !tile.slice<102x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [102, 128, 96] sizes [102, 128, 96] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 4>} {
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

// Two blocks of rows read each block of K, which would be inside the loop along N otherwise.
// CHECK-LABEL: func.func @k_outermost
// CHECK: scf.for %{{.*}} = %c0 to %c60 step %c20
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c128 step %c64
// CHECK: scf.for %{{.*}} = %c0 to %c12 step %c6
tile.program @k_outermost outputs 1 {
^bb0(%a: !tile.slice<12x60xf32, global>, %b: !tile.slice<60x128xf32, global>, %y: !tile.slice<12x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [12, 128, 60] sizes [12, 128, 60] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<12x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4x20", tile.blocking = #tile.blocking<vectors = 4, k_outermost = true>} {
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

// One block has all rows, so K would be outermost otherwise.
// CHECK-LABEL: func.func @k_inside
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c64
// CHECK-NOT: step %c64
// CHECK: scf.for %{{.*}} = %c0 to %c60 step %c20
// CHECK-NOT: step %c64
// CHECK: return
tile.program @k_inside outputs 1 {
^bb0(%a: !tile.slice<4x60xf32, global>, %b: !tile.slice<60x128xf32, global>, %y: !tile.slice<4x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [4, 128, 60] sizes [4, 128, 60] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<4x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4x20", tile.blocking = #tile.blocking<vectors = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<4x60xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<60x128xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// The 2 rows that are left have 8 accumulators, which would be enough otherwise.
// CHECK-LABEL: func.func @even_rows
// CHECK: scf.for %{{.*}} = %c0 to %c30 step %c6
// CHECK: scf.for %{{.*}} = %c30 to %c38 step %c4
tile.program @even_rows outputs 1 {
^bb0(%a: !tile.slice<38x67xf32, global>, %b: !tile.slice<67x64xf32, global>, %y: !tile.slice<38x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [38, 64, 67] sizes [38, 64, 67] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<38x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 4, even_rows = 9>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<38x67xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<67x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// The row that is left would share those of the block before it otherwise.
// CHECK-LABEL: func.func @uneven_rows
// CHECK: scf.for %{{.*}} = %c0 to %c36 step %c6
// CHECK-COUNT-28: math.fma
// CHECK-NOT: math.fma
// CHECK: return
tile.program @uneven_rows outputs 1 {
^bb0(%a: !tile.slice<37x67xf32, global>, %b: !tile.slice<67x64xf32, global>, %y: !tile.slice<37x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [37, 64, 67] sizes [37, 64, 67] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<37x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<37x67xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<67x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// The 8 columns that are left would be part of the block before them otherwise.
// CHECK-LABEL: func.func @no_wider_last
// CHECK: scf.for %{{.*}} = %c0 to %c24 step %c6
// CHECK-NOT: step %c4
// CHECK: return
tile.program @no_wider_last outputs 1 {
^bb0(%a: !tile.slice<24x67xf32, global>, %b: !tile.slice<67x72xf32, global>, %y: !tile.slice<24x72xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [24, 72, 67] sizes [24, 72, 67] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<24x72xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = #tile.blocking<vectors = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<24x67xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<67x72xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
