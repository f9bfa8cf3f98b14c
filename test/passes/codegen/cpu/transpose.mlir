// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx2 | FileCheck %s

// A copy that reads along one dim and writes along the other transposes squares of vectors: it loads eight rows, turns
// them into columns by three rounds of interleaving, and stores them; the edges are masked.
// CHECK-LABEL: func.func @turns
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-8: vector.load %arg0[{{.*}}] : memref<3x19x24xf32>, vector<8xf32>
// CHECK-COUNT-24: vector.shuffle
// CHECK-COUNT-8: vector.store {{.*}} : memref<3x24x19xf32>, vector<8xf32>
// Three rows of nineteen remain.
// CHECK-COUNT-3: vector.load %arg0
// CHECK: vector.maskedstore
// CHECK-NOT: vector.gather
tile.program @turns outputs 1 {
^bb0(%x: !tile.slice<3x19x24xf32, global>, %y: !tile.slice<3x24x19xf32, global>):
  tile.parallel [3] tiles [1] workgroups 1 {
    tile.walk {
    ^bb0(%b: index):
      tile.compute [3, 24, 19] sizes [1, 24, 19] offsets [0](%b) vector 2 reduce [] {
        %v = tile.load %x at affine_map<(b, i, j)[s0, s1, s2] -> (b, j, i)> : !tile.slice<3x19x24xf32, global> -> f32
        tile.store %v, %y at affine_map<(b, i, j)[s0, s1, s2] -> (b, i, j)> : f32, !tile.slice<3x24x19xf32, global>
        tile.yield
      }
    }
  }
}

// For tiles that reach past the end, the size of the last square is computed at run time.
// CHECK-LABEL: func.func @turns_what_is_there
// CHECK: arith.minui
// CHECK: arith.remui
// CHECK: vector.shuffle
// CHECK: scf.if
// CHECK: vector.create_mask
// CHECK: vector.maskedload
// CHECK-NOT: vector.gather
tile.program @turns_what_is_there outputs 1 {
^bb0(%x: !tile.slice<100x70xf32, global>, %y: !tile.slice<70x100xf32, global>):
  tile.parallel [70, 100] tiles [16, 64] workgroups 1 {
    tile.walk {
    ^bb0(%a: index, %b: index):
      tile.compute [70, 100] sizes [16, 64] offsets [0, 1](%a, %b) vector 1 reduce [] {
        %v = tile.load %x at affine_map<(i, j)[s0, s1] -> (j, i)> : !tile.slice<100x70xf32, global> -> f32
        tile.store %v, %y at affine_map<(i, j)[s0, s1] -> (i, j)> : f32, !tile.slice<70x100xf32, global>
        tile.yield
      }
    }
  }
}

// A nest that computes is lowered like any other.
// CHECK-LABEL: func.func @leaves_arithmetic
// CHECK-NOT: vector.shuffle
tile.program @leaves_arithmetic outputs 1 {
^bb0(%x: !tile.slice<19x24xf32, global>, %y: !tile.slice<24x19xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      tile.compute [24, 19] sizes [24, 19] offsets []() vector 1 reduce [] {
        %v = tile.load %x at affine_map<(i, j)[s0, s1] -> (j, i)> : !tile.slice<19x24xf32, global> -> f32
        %n = arith.negf %v : f32
        tile.store %n, %y at affine_map<(i, j)[s0, s1] -> (i, j)> : f32, !tile.slice<24x19xf32, global>
        tile.yield
      }
    }
  }
}

// Elements that stay neighbours are moved as one: pairs of 16 bits are transposed as 32 bits.
// CHECK-LABEL: func.func @turns_pairs
// CHECK-COUNT-8: vector.load %arg0[{{.*}}] : memref<19x16xbf16>, vector<16xbf16>
// CHECK: vector.bitcast {{.*}} : vector<16xbf16> to vector<8xi32>
// CHECK-COUNT-24: vector.shuffle {{.*}} : vector<8xi32>, vector<8xi32>
// CHECK-COUNT-8: vector.store {{.*}} : memref<8x24x2xbf16>, vector<16xbf16>
// CHECK-COUNT-3: vector.load %arg0
// CHECK: vector.constant_mask [6] : vector<16xi1>
// CHECK: vector.maskedstore
tile.program @turns_pairs outputs 1 {
^bb0(%x: !tile.slice<19x16xbf16, global>, %y: !tile.slice<8x24x2xbf16, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      tile.compute [16, 19] sizes [16, 19] offsets []() vector 1 reduce [] {
        %v = tile.load %x at affine_map<(t, j)[s0, s1] -> (j, t)> : !tile.slice<19x16xbf16, global> -> bf16
        tile.store %v, %y at affine_map<(t, j)[s0, s1] -> (t floordiv 2, j, t mod 2)> : bf16, !tile.slice<8x24x2xbf16, global>
        tile.yield
      }
    }
  }
}
