// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx2 --canonicalize --cse | FileCheck %s

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#plain = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// The last block along N has the one column behind it, too: 4 rows of 3 vectors in place of 12 rows of one.
// CHECK-LABEL: func.func @one_column_more
// CHECK: scf.for %{{.*}} = %c0 to %c24 step %c6
// CHECK-COUNT-12: math.fma
// CHECK-NOT: math.fma
// CHECK: scf.for %{{.*}} = %c0 to %c24 step %c4
// CHECK-COUNT-12: math.fma
// CHECK-NOT: math.fma
// CHECK: return
tile.program @one_column_more outputs 1 {
^bb0(%a: !tile.slice<24x13xf32, global>, %b: !tile.slice<13x33xf32, global>, %y: !tile.slice<24x33xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [24, 33, 13] sizes [24, 33, 13] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<24x33xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x2"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<24x13xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<13x33xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// Columns that fill more than one vector are a block of their own.
// CHECK-LABEL: func.func @nine_columns_more
// CHECK: scf.for %{{.*}} = %c0 to %c24 step %c6
// CHECK: scf.for %{{.*}} = %c0 to %c24 step %c6
// CHECK: return
tile.program @nine_columns_more outputs 1 {
^bb0(%a: !tile.slice<24x13xf32, global>, %b: !tile.slice<13x25xf32, global>, %y: !tile.slice<24x25xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [24, 25, 13] sizes [24, 25, 13] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<24x25xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x2"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<24x13xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<13x25xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
