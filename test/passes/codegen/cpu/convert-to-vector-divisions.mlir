// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --split-input-file | FileCheck %s

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0)>

// All lanes divide by one number, so they may multiply by its reciprocal; both are scaled to stay in range. Other
// divisions stay divisions.
// CHECK-LABEL: func.func @divides_rows
// CHECK:   %[[D:.*]] = memref.load
// CHECK:   math.absf %[[D]]
// CHECK:   %[[SCALED:.*]] = arith.mulf %[[D]], %[[SCALE:.*]] : f32
// CHECK:   arith.divf %{{.*}}, %[[SCALED]] : f32
// CHECK-NOT: arith.divf {{.*}} vector
// CHECK:   vector.store
// CHECK-LABEL: func.func @divides_rows_exactly
// CHECK:   arith.divf {{.*}} : vector<64xf32>
tile.program @divides_rows outputs 1 {
^bb0(%x: !tile.slice<6x128xf32, global>, %r: !tile.slice<6xf32, global>, %y: !tile.slice<6x128xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<6x128xf32, global> -> f32
      %s = tile.load %r at #row : !tile.slice<6xf32, global> -> f32
      %n = arith.divf %v, %s fastmath<arcp> : f32
      tile.store %n, %y at #id : f32, !tile.slice<6x128xf32, global>
      tile.yield
    }
  }
  }
}

tile.program @divides_rows_exactly outputs 1 {
^bb0(%x: !tile.slice<6x128xf32, global>, %r: !tile.slice<6xf32, global>, %y: !tile.slice<6x128xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<6x128xf32, global> -> f32
      %s = tile.load %r at #row : !tile.slice<6xf32, global> -> f32
      %n = arith.divf %v, %s : f32
      tile.store %n, %y at #id : f32, !tile.slice<6x128xf32, global>
      tile.yield
    }
  }
  }
}
