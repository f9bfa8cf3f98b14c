// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --cse | FileCheck %s

// Windows of 3x3 of an image of 5x9x11; rows of the contraction are the 7x9 points, K the channels and window points.
#windows = affine_map<(m, n, k)[s0, s1, s2] -> (k floordiv 9, m floordiv 9 + (k mod 9) floordiv 3, m mod 9 + k mod 3)>
#panels = affine_map<(m, n, k)[s0, s1, s2] -> (n floordiv 64, k, n mod 64)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// Windows are read from the image itself. An iteration of the loop over K takes the nine points of a window, whose
// places in the image are constants, and no quotient of K is left.
// CHECK-LABEL: func.func @windows
// CHECK-NOT: memref.alloca
// CHECK: scf.for %{{.*}} = %c0 to %c60 step %c6
// CHECK: scf.for %[[CHANNEL:.+]] = %c0 to %c5 step %c1
// CHECK-NOT: arith.div{{.*}} %[[CHANNEL]]
// CHECK: memref.load %arg0[%[[CHANNEL]], %{{.*}}, %{{.*}}] : memref<5x9x11xf32>
// CHECK-COUNT-32: vector.load %arg1
// CHECK: scf.yield
tile.program @windows outputs 1 {
^bb0(%a: !tile.slice<5x9x11xf32, global>, %b: !tile.slice<1x45x64xf32, global>, %y: !tile.slice<63x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [63, 64, 45] sizes [63, 64, 45] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<63x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #windows : !tile.slice<5x9x11xf32, global> -> f32
      %v = tile.load %b at #panels : !tile.slice<1x45x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// With channels innermost, an iteration takes the channels of a point.
#last = affine_map<(m, n, k)[s0, s1, s2] -> (m floordiv 9 + k floordiv 48, m mod 9 + (k mod 48) floordiv 16, k mod 16)>
// CHECK-LABEL: func.func @channels_last
// CHECK: scf.for %{{.*}} = %c0 to %c9 step %c1
// CHECK-COUNT-64: vector.load %arg1
// CHECK: scf.yield
tile.program @channels_last outputs 1 {
^bb0(%a: !tile.slice<9x11x16xf32, global>, %b: !tile.slice<1x144x64xf32, global>, %y: !tile.slice<63x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [63, 64, 144] sizes [63, 64, 144] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<63x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #last : !tile.slice<9x11x16xf32, global> -> f32
      %v = tile.load %b at #panels : !tile.slice<1x144x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// A pad is a guard. The address of a point is chosen once for all channels of an iteration: its place in the image, or a
// line of zeros.
#padded = affine_map<(m, n, k)[s0, s1, s2] -> (m floordiv 9 + k floordiv 48 - 1, m mod 9 + (k mod 48) floordiv 16 - 1, k mod 16)>
#inside = affine_set<(m, n, k)[s0, s1, s2] : (m floordiv 9 + k floordiv 48 - 1 >= 0, m mod 9 + (k mod 48) floordiv 16 - 1 >= 0,
                                  -(m floordiv 9) - k floordiv 48 + 7 >= 0, -(m mod 9) - (k mod 48) floordiv 16 + 9 >= 0)>
// CHECK-LABEL: func.func @guarded
// CHECK: %[[LINE:.+]] = memref.alloca() {alignment = 64 : i64} : memref<16xf32>
// CHECK: vector.store %{{.*}}, %[[LINE]]
// CHECK: %[[ZEROS:.+]] = memref.reinterpret_cast %[[LINE]] to offset: [0], sizes: [7, 9, 16]
// CHECK: scf.for %{{.*}} = %c0 to %c9 step %c1
// CHECK: arith.select %{{.*}}, %arg0, %[[ZEROS]] : memref<7x9x16xf32>
// CHECK-NOT: arith.select %{{.*}}, %arg0, %[[ZEROS]]
// CHECK: scf.yield
tile.program @guarded outputs 1 {
^bb0(%a: !tile.slice<7x9x16xf32, global>, %b: !tile.slice<1x144x64xf32, global>, %y: !tile.slice<1x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [1, 64, 144] sizes [1, 64, 144] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<1x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #padded guard #inside : !tile.slice<7x9x16xf32, global> -> f32
      %v = tile.load %b at #panels : !tile.slice<1x144x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
