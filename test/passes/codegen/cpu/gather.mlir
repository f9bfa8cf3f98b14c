// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --split-input-file | FileCheck %s

// All lanes read one row, whose number is brought into the table: vectors of neighbouring elements.
// CHECK-LABEL: func.func @rows
// CHECK: %[[PLACE:.*]] = memref.load
// CHECK: %[[INDEX:.*]] = arith.index_cast %[[PLACE]] : i64 to index
// CHECK: %[[ROW:.*]] = arith.minsi
// CHECK: vector.load %{{.*}}[%[[ROW]], %{{.*}}] : memref<9x64xf32{{.*}}>, vector<64xf32>
tile.program @rows outputs 1 {
^bb0(%x: !tile.slice<9x64xf32, global>, %at: !tile.slice<4xi64, global>, %y: !tile.slice<4x64xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%o: index):
    tile.compute [4, 64] sizes [1, 64] offsets [0] (%o) vector 1 reduce [] {
      %k = tile.load %at at affine_map<(d0, d1)[s0, s1] -> (d0)> : !tile.slice<4xi64, global> -> i64
      %i = arith.index_cast %k : i64 to index
      %j = tile.index affine_map<(d0, d1)[s0, s1] -> (d1)>
      %v = tile.gather %x[%i, %j] : !tile.slice<9x64xf32, global> -> f32
      tile.store %v, %y at affine_map<(d0, d1)[s0, s1] -> (d0, d1)> : f32, !tile.slice<4x64xf32, global>
      tile.yield
    }
  }
  }
}

// -----

// Each lane has a place of its own.
// CHECK-LABEL: func.func @lanes
// CHECK: arith.maxsi {{.*}} : vector<64xindex>
// CHECK: arith.minsi {{.*}} : vector<64xindex>
// CHECK: vector.gather
tile.program @lanes outputs 1 {
^bb0(%x: !tile.slice<9x7xf32, global>, %at: !tile.slice<4x64xi64, global>, %y: !tile.slice<4x64xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%o: index):
    tile.compute [4, 64] sizes [1, 64] offsets [0] (%o) vector 1 reduce [] {
      %k = tile.load %at at affine_map<(d0, d1)[s0, s1] -> (d0, d1)> : !tile.slice<4x64xi64, global> -> i64
      %i = arith.index_cast %k : i64 to index
      %j = tile.index affine_map<(d0, d1)[s0, s1] -> (d0)>
      %v = tile.gather %x[%i, %j] : !tile.slice<9x7xf32, global> -> f32
      tile.store %v, %y at affine_map<(d0, d1)[s0, s1] -> (d0, d1)> : f32, !tile.slice<4x64xf32, global>
      tile.yield
    }
  }
  }
}
