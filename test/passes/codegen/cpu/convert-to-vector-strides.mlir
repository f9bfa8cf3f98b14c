// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --split-input-file | FileCheck %s

// A stride of two: each vector of lanes takes two vectors of memory, and the elements between use the same two. The
// last elements of a slice are gathered if a vector would pass its end. Where only some lanes read, a vector that leaves
// its line is masked.
// CHECK-LABEL: func.func @strided
// CHECK: vector.load %arg0{{.*}} : memref<128xf32>, vector<16xf32>
// CHECK: vector.load %arg0{{.*}} : memref<128xf32>, vector<16xf32>
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
// CHECK: vector.shuffle {{.*}} [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31]
// CHECK-NOT: vector.gather
// CHECK-LABEL: func.func @strided_to_the_end
// CHECK: vector.gather
// CHECK-LABEL: func.func @strided_where
// CHECK: vector.maskedload %arg0[%c-1]
// CHECK: vector.load %arg0[%c15]
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30] : vector<16xf32>
// CHECK-NOT: vector.gather
tile.program @strided outputs 1 {
^bb0(%x: !tile.slice<128xf32, global>, %y: !tile.slice<64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      tile.compute [64] sizes [64] offsets []() vector 0 reduce [] {
        %a = tile.load %x at affine_map<(i)[s] -> (i * 2)> : !tile.slice<128xf32, global> -> f32
        %b = tile.load %x at affine_map<(i)[s] -> (i * 2 + 1)> : !tile.slice<128xf32, global> -> f32
        %p = arith.mulf %a, %b : f32
        tile.store %p, %y at affine_map<(i)[s] -> (i)> : f32, !tile.slice<64xf32, global>
        tile.yield
      }
    }
  }
}

tile.program @strided_to_the_end outputs 1 {
^bb0(%x: !tile.slice<127xf32, global>, %y: !tile.slice<64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      tile.compute [64] sizes [64] offsets []() vector 0 reduce [] {
        %a = tile.load %x at affine_map<(i)[s] -> (i * 2)> : !tile.slice<127xf32, global> -> f32
        %n = arith.negf %a : f32
        tile.store %n, %y at affine_map<(i)[s] -> (i)> : f32, !tile.slice<64xf32, global>
        tile.yield
      }
    }
  }
}

tile.program @strided_where outputs 1 {
^bb0(%x: !tile.slice<127xf32, global>, %y: !tile.slice<64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      tile.compute [64] sizes [64] offsets []() vector 0 reduce [] {
        %a = tile.load %x at affine_map<(i)[s] -> (i * 2 - 1)> guard affine_set<(i)[s] : (i * 2 - 1 >= 0)> : !tile.slice<127xf32, global> -> f32
        %n = arith.negf %a : f32
        tile.store %n, %y at affine_map<(i)[s] -> (i)> : f32, !tile.slice<64xf32, global>
        tile.yield
      }
    }
  }
}
