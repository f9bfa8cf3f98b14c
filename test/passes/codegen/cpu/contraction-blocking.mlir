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
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = array<i64: 2, 1, 0, 0>} {
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
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = array<i64: 4, 4, 0, 0>} {
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
        into (%y : !tile.slice<102x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = array<i64: 4, 1, 32, 0>} {
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
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = array<i64: 4, 1, 0, 8192>} {
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
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4", tile.blocking = array<i64: 4, 1, 0, 0>} {
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
