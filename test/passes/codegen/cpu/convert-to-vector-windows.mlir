// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --cse --split-input-file | FileCheck %s

#window = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0 + d1, d2)>
#weight = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d1, d2)>
#out = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d2)>

// Four windows of three points are reduced at once, lane by lane: they read six points and three weights, and each sum
// has its own order.
// CHECK-LABEL: func.func @joins_windows
// CHECK: scf.for {{.*}} step %c16
// CHECK-COUNT-9: vector.load {{.*}} vector<16xf32>
// CHECK-NOT: vector.load
// CHECK-COUNT-4: vector.store {{.*}} vector<16xf32>
tile.program @joins_windows outputs 1 {
^bb0(%x: !tile.slice<18x32xf32, global>, %w: !tile.slice<3x32xf32, global>, %y: !tile.slice<16x32xf32, global>):
  tile.parallel [16, 32] tiles [4, 32] workgroups 1 {
  tile.walk {
  ^bb0(%i: index, %c: index):
    tile.compute [16, 3, 32] sizes [4, 3, 32] offsets [0, 2] (%i, %c) vector 2 reduce [1]
        into (%y : !tile.slice<16x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #window : !tile.slice<18x32xf32, global> -> f32
      %f = tile.load %w at #weight : !tile.slice<3x32xf32, global> -> f32
      %p = arith.mulf %v, %f : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#window = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0 + d1, d2)>
#out = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d2)>

// Windows of many points are reduced one after another, in loops.
// CHECK-LABEL: func.func @leaves_long_windows
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<32xf32>)
tile.program @leaves_long_windows outputs 1 {
^bb0(%x: !tile.slice<31x32xf32, global>, %y: !tile.slice<16x32xf32, global>):
  tile.parallel [16, 32] tiles [4, 32] workgroups 1 {
  tile.walk {
  ^bb0(%i: index, %c: index):
    tile.compute [16, 16, 32] sizes [4, 16, 32] offsets [0, 2] (%i, %c) vector 2 reduce [1]
        into (%y : !tile.slice<16x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #window : !tile.slice<31x32xf32, global> -> f32
      %n = arith.addf %acc, %v : f32
      tile.yield %n : f32
    }
  }
  }
}
