// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --split-input-file | FileCheck %s

#id = affine_map<(d0)[s0] -> (d0)>
#acc = affine_map<(d0)[s0] -> (0)>

// A combiner that may not be reassociated keeps the order of the elements, so it does not use lanes.
// CHECK-LABEL: func.func @keeps_opaque_order
// CHECK-NOT: vector<
// CHECK: scf.for
// CHECK: return
tile.program @keeps_opaque_order outputs 1 {
^bb0(%x: !tile.slice<64xf32, global>, %y: !tile.slice<1xf32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64] sizes [64] offsets [] () vector 0 reduce [0] into (%y : !tile.slice<1xf32, global>) at [#acc]
        inits [0.0 : f32] kinds ["none"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<64xf32, global> -> f32
      %d = arith.subf %v, %acc : f32
      tile.yield %d : f32
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// A maximum that propagates NaN takes one instruction for ordered numbers, and a flag for unordered ones, which the
// lanes' two halves share.
// CHECK-LABEL: func.func @largest_of_rows
// CHECK:   %[[LOOP:.*]]:2 = scf.for {{.*}} iter_args(%[[BEST:.*]] = %{{.*}}, %[[SAW:.*]] = %{{.*}}) -> (vector<64xf32>, vector<32xi1>)
// CHECK:     %[[X:.*]] = vector.load
// CHECK:     %[[WINS:.*]] = arith.cmpf ogt, %[[X]], %[[BEST]]
// CHECK:     arith.select %[[WINS]], %[[X]], %[[BEST]]
// CHECK:     %[[LOW:.*]] = vector.extract_strided_slice %[[X]] {offsets = [0], sizes = [32], strides = [1]}
// CHECK:     %[[HIGH:.*]] = vector.extract_strided_slice %[[X]] {offsets = [32], sizes = [32], strides = [1]}
// CHECK:     %[[NAN:.*]] = arith.cmpf uno, %[[LOW]], %[[HIGH]]
// CHECK:     arith.ori %[[SAW]], %[[NAN]]
// CHECK:   %[[MAX:.*]] = vector.reduction <maxnumf>, %[[LOOP]]#0, %{{.*}} fastmath<nnan,nsz>
// CHECK:   %[[ANY:.*]] = vector.reduction <or>, %[[LOOP]]#1
// CHECK:   arith.select %[[ANY]], %{{.*}}, %[[MAX]]
tile.program @largest_of_rows outputs 1 {
^bb0(%x: !tile.slice<6x256xf32, global>, %y: !tile.slice<6xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 256] sizes [1, 256] offsets [0] (%i) vector 1 reduce [1] into (%y : !tile.slice<6xf32, global>)
        at [#acc] inits [0xFF800000 : f32] kinds ["maximumf"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<6x256xf32, global> -> f32
      %n = arith.maximumf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// A maximum that starts from NaN ends in NaN, without a flag for the elements.
// CHECK-LABEL: func.func @from_nan
// CHECK:   arith.maximumf
// CHECK:   vector.reduction <maximumf>, %{{.*}}, %{{.*}} fastmath<reassoc>
tile.program @from_nan outputs 1 {
^bb0(%x: !tile.slice<6x256xf32, global>, %y: !tile.slice<6xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 256] sizes [1, 256] offsets [0] (%i) vector 1 reduce [1] into (%y : !tile.slice<6xf32, global>)
        at [#acc] inits [0x7FC00000 : f32] kinds ["maximumf"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<6x256xf32, global> -> f32
      %n = arith.maximumf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// A tail with more lanes than flags, which two registers share, has its halves share them, too, even if it fills less
// than two registers.
// CHECK-LABEL: func.func @largest_of_narrow_rows
// CHECK:   %[[FLAGS:.*]] = arith.cmpf uno, %{{.*}} : vector<32xf16>
// CHECK:   %[[FIRST:.*]] = vector.extract_strided_slice %[[FLAGS]] {offsets = [0], sizes = [24], strides = [1]}
// CHECK:   vector.maskedload {{.*}} vector<48xf16>
// CHECK:   %[[NAN:.*]] = arith.cmpf uno, %{{.*}} : vector<24xf16>
// CHECK:   %[[TAIL:.*]] = arith.ori %[[FIRST]], %[[NAN]]
// CHECK:   vector.insert_strided_slice %[[TAIL]], %[[FLAGS]]
tile.program @largest_of_narrow_rows outputs 1 {
^bb0(%x: !tile.slice<6x104xf16, global>, %y: !tile.slice<6xf16, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 104] sizes [1, 104] offsets [0] (%i) vector 1 reduce [1] into (%y : !tile.slice<6xf16, global>)
        at [#acc] inits [0xFC00 : f16] kinds ["maximumf"] {
    ^bb0(%acc: f16):
      %v = tile.load %x at #id : !tile.slice<6x104xf16, global> -> f16
      %n = arith.maximumf %v, %acc : f16
      tile.yield %n : f16
    }
  }
  }
}
