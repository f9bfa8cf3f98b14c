// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --cse | FileCheck %s

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#panels = affine_map<(m, n, k)[s0, s1, s2] -> (n floordiv 64, k, n mod 64)>
#plain = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// All rows use a K block of 20 before the next block starts; the last block has 7. A packed operand is read in place.
// Accumulators start from the init, and are stored in their slice between blocks.
// CHECK-LABEL: func.func @blocks
// CHECK-NOT: memref.alloca
// CHECK: scf.for %{{.*}} = %c0 to %c102
// CHECK: vector.store
// CHECK: scf.for %{{.*}} = %c0 to %c60 step %c20
// CHECK: scf.for %{{.*}} = %c0 to %c102 step %c6
// CHECK: vector.load {{.*}} : memref<102x64xf32
// CHECK: scf.for %{{.*}} = %c0 to %c20 step %c1
// CHECK: scf.for %{{.*}} = %c0 to %c102 step %c6
// CHECK: scf.for %{{.*}} = %c0 to %c7 step %c1
tile.program @blocks outputs 1 {
^bb0(%a: !tile.slice<102x67xf32, global>, %b: !tile.slice<1x67x64xf32, global>, %y: !tile.slice<102x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [102, 64, 67] sizes [102, 64, 67] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4x20"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<102x67xf32, global> -> f32
      %v = tile.load %b at #panels : !tile.slice<1x67x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// The steps along K are not contiguous in memory, so each is copied once for all rows.
// CHECK-LABEL: func.func @copied_blocks
// CHECK: memref.alloca() {{.*}} memref<21x64xf32>
tile.program @copied_blocks outputs 1 {
^bb0(%a: !tile.slice<102x67xf32, global>, %b: !tile.slice<67x192xf32, global>, %y: !tile.slice<102x192xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [102, 192, 67] sizes [102, 192, 67] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x192xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4x20"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<102x67xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<67x192xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// A copy does not pay off for so few rows.
// CHECK-LABEL: func.func @blocks_as_they_lie
// CHECK-NOT: memref.alloca
tile.program @blocks_as_they_lie outputs 1 {
^bb0(%a: !tile.slice<18x67xf32, global>, %b: !tile.slice<67x192xf32, global>, %y: !tile.slice<18x192xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [18, 192, 67] sizes [18, 192, 67] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<18x192xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4x20"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<18x67xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<67x192xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// One register block holds all rows, so nothing is read twice, and the 20 rows of the matrix are read sequentially.
// CHECK-LABEL: func.func @streams
// CHECK: scf.for %{{.*}} = %c0 to %c192 step %c64
// CHECK: vector.store
// CHECK: scf.for %{{.*}} = %c0 to %c60 step %c20
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c192 step %c64
// CHECK: vector.load {{.*}} : memref<4x192xf32
// CHECK: scf.for %{{.*}} = %c0 to %c20 step %c1
// CHECK: scf.for %{{.*}} = %c0 to %c192 step %c64
// CHECK: scf.for %{{.*}} = %c0 to %c7 step %c1
tile.program @streams outputs 1 {
^bb0(%a: !tile.slice<4x67xf32, global>, %b: !tile.slice<67x192xf32, global>, %y: !tile.slice<4x192xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [4, 192, 67] sizes [4, 192, 67] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<4x192xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4x20"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<4x67xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<67x192xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
