// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx2 --canonicalize --cse | FileCheck %s

// The matrix lhs is known: it is not loaded, nothing is multiplied with its zeros, and ones add or subtract.
// CHECK-LABEL: func.func @factors
// CHECK-COUNT-2: vector.load
// CHECK: arith.addf
// CHECK: arith.subf
// CHECK: math.fma
// CHECK-NOT: vector.load
// CHECK: return
#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>
#columns = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
tile.program @factors outputs 1 {
^bb0(%a: !tile.slice<3x3xf32, global>, %b: !tile.slice<3x8xf32, global>, %y: !tile.slice<3x8xf32, global>):
  tile.parallel [8] tiles [8] workgroups 1 {
    tile.walk {
    ^bb0(%j: index):
      tile.compute [3, 8, 3] sizes [3, 8, 3] offsets [1] (%j) vector 1 reduce [2]
          into (%y : !tile.slice<3x8xf32, global>) at [#sums] inits [0.0 : f32] kinds ["none"]
          attributes {micro_kernel = "fma-6x2", tile.factors = dense<[[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [0.5, 0.0, 0.0]]> : tensor<3x3xf32>} {
      ^bb0(%s: f32):
        %u = tile.load %a at #rows : !tile.slice<3x3xf32, global> -> f32
        %v = tile.load %b at #columns : !tile.slice<3x8xf32, global> -> f32
        %p = arith.mulf %u, %v : f32
        %q = arith.addf %s, %p : f32
        tile.yield %q : f32
      }
    }
  }
}
