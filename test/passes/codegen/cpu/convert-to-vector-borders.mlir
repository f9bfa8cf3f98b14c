// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx2 --canonicalize --cse --split-input-file | FileCheck %s

#window = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0 + d1 - 1, d2)>
#image = affine_set<(d0, d1, d2)[s0, s1, s2] : (d0 + d1 - 1 >= 0, -d0 - d1 + 16 >= 0)>
#out = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d2)>

// One test says whether all windows that are reduced at once lie in the image. If so, nothing has a mask; otherwise, only
// the first point of the first window and the last one of the last window do, since no other one may be outside.
// CHECK-LABEL: func.func @masks_borders_alone
// CHECK: scf.if
// CHECK-COUNT-6: vector.load
// CHECK: } else {
// CHECK: vector.maskedload
// CHECK-COUNT-4: vector.load
// CHECK: vector.maskedload
// CHECK-NOT: vector.maskedload
tile.program @masks_borders_alone outputs 1 {
^bb0(%x: !tile.slice<16x32xf32, global>, %y: !tile.slice<16x32xf32, global>):
  tile.parallel [16, 32] tiles [4, 32] workgroups 1 {
  tile.walk {
  ^bb0(%i: index, %c: index):
    tile.compute [16, 3, 32] sizes [4, 3, 32] offsets [0, 2] (%i, %c) vector 2 reduce [1]
        into (%y : !tile.slice<16x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #window guard #image : !tile.slice<16x32xf32, global> -> f32
      %n = arith.addf %acc, %v : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#window = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0 + d1 - 1, d2 * 2 - 1)>
#image = affine_set<(d0, d1, d2)[s0, s1, s2] : (d0 + d1 - 1 >= 0, -d0 - d1 + 16 >= 0, d2 * 2 - 1 >= 0)>
#out = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d2)>

// Lanes that are apart are taken from whole vectors. The test includes that the last one, which ends one element behind
// the last lane, lies in the line of 63 elements. Masks of lanes are computed in as many bits as elements have.
// CHECK-LABEL: func.func @loads_strided_lanes_whole
// CHECK: arith.subi %c62, {{.*}} : index
// CHECK: scf.if
// CHECK-COUNT-12: vector.load
// CHECK: } else {
// CHECK: arith.cmpi sge, {{.*}} : vector<8xi32>
// CHECK: vector.maskedload
tile.program @loads_strided_lanes_whole outputs 1 {
^bb0(%x: !tile.slice<16x63xf32, global>, %y: !tile.slice<16x32xf32, global>):
  tile.parallel [16, 32] tiles [4, 32] workgroups 1 {
  tile.walk {
  ^bb0(%i: index, %c: index):
    tile.compute [16, 3, 32] sizes [4, 3, 32] offsets [0, 2] (%i, %c) vector 2 reduce [1]
        into (%y : !tile.slice<16x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #window guard #image : !tile.slice<16x63xf32, global> -> f32
      %n = arith.addf %acc, %v : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#window = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0 + d1, d2)>
#even = affine_set<(d0, d1, d2)[s0, s1, s2] : ((d0 + d1) mod 2 == 0)>
#out = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d2)>

// A guard that no corner of the windows decides is tested for each load.
// CHECK-LABEL: func.func @tests_holes_one_by_one
// CHECK-NOT: scf.if
// CHECK: vector.maskedload
tile.program @tests_holes_one_by_one outputs 1 {
^bb0(%x: !tile.slice<18x32xf32, global>, %y: !tile.slice<16x32xf32, global>):
  tile.parallel [16, 32] tiles [4, 32] workgroups 1 {
  tile.walk {
  ^bb0(%i: index, %c: index):
    tile.compute [16, 3, 32] sizes [4, 3, 32] offsets [0, 2] (%i, %c) vector 2 reduce [1]
        into (%y : !tile.slice<16x32xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #window guard #even : !tile.slice<18x32xf32, global> -> f32
      %n = arith.addf %acc, %v : f32
      tile.yield %n : f32
    }
  }
  }
}
