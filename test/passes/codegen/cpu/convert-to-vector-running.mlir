// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize | FileCheck %s

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>
#local = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)>
#localAcc = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>
#block = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1 floordiv 32)>

// Each block of two vectors is loaded once; its maximum is found, the reference is moved if the maximum is out of its
// reach, then exponentials are taken. A block stores one reference. The last block has a whole vector and a masked one.
// CHECK-LABEL: func.func @running
// CHECK: %[[ROW:.*]]:{{.*}} = scf.for {{.*}} step %c32 iter_args(
// CHECK:   vector.load {{.*}} vector<16xf32>
// CHECK:   vector.load {{.*}} vector<16xf32>
// CHECK:   arith.cmpf uno
// CHECK-NOT: arith.cmpf uno
// CHECK:   %[[ANY:.*]] = vector.reduction <or>
// CHECK:   %[[MOVED:.*]]:2 = scf.if %[[ANY]]
// CHECK:     vector.reduction <maxnumf>
// CHECK:     math.exp
// CHECK:   memref.store {{.*}} : memref<1x3xf32
// CHECK:   arith.subf {{.*}}, %[[MOVED]]#1 : vector<16xf32>
// CHECK:   math.exp {{.*}} {tile.small_argument}
// CHECK:   math.exp {{.*}} {tile.small_argument}
// CHECK:   %[[BOTH:.*]] = arith.addf
// CHECK:   arith.addf %[[MOVED]]#0, %[[BOTH]]
// CHECK:   scf.yield
// CHECK: vector.load
// CHECK: vector.maskedload
// CHECK: memref.store {{.*}} : memref<1x3xf32
// CHECK: vector.maskedstore
// CHECK: %[[SUM:.*]] = vector.reduction <add>
// CHECK: arith.mulf %[[SUM]]
tile.program @running outputs 2 {
^bb0(%x: !tile.slice<6x88xf32, global>, %m: !tile.slice<6xf32, global>, %s: !tile.slice<6xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    %exp = tile.alloc at 0 : !tile.slice<1x88xf32, block>
    %references = tile.alloc at 384 : !tile.slice<1x3xf32, block>
    tile.compute [6, 88] sizes [1, 88] offsets [0] (%i) vector 1 reduce [1]
        into (%m, %s : !tile.slice<6xf32, global>, !tile.slice<6xf32, global>)
        at [#acc, #acc] inits [0xFF800000 : f32, 0.0 : f32] kinds ["maximumf", "add"] running <0 every 32> {
    ^bb0(%max: f32, %sum: f32):
      %v = tile.load %x at #id : !tile.slice<6x88xf32, global> -> f32
      %n = arith.maximumf %v, %max : f32
      tile.store %n, %references at #block : f32, !tile.slice<1x3xf32, block>
      %d = arith.subf %v, %n : f32
      %e = math.exp %d : f32
      tile.store %e, %exp at #local : f32, !tile.slice<1x88xf32, block>
      %t = arith.addf %e, %sum : f32
      tile.yield %n, %t : f32, f32
    }
  }
  }
}

// A number that a block shares is loaded as a scalar.
// CHECK-LABEL: func.func @factors
// CHECK: vector.load {{.*}} vector<64xf32>
// CHECK: memref.load {{.*}} : memref<6x3xf32>
// CHECK-NOT: vector.gather
tile.program @factors outputs 1 {
^bb0(%x: !tile.slice<6x384xf32, global>, %f: !tile.slice<6x3xf32, global>, %y: !tile.slice<6x384xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 384] sizes [1, 384] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<6x384xf32, global> -> f32
      %w = tile.load %f at affine_map<(d0, d1)[s0, s1] -> (d0, d1 floordiv 128)> : !tile.slice<6x3xf32, global> -> f32
      %p = arith.mulf %v, %w : f32
      tile.store %p, %y at #id : f32, !tile.slice<6x384xf32, global>
      tile.yield
    }
  }
  }
}
