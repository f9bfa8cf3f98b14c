// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --split-input-file | FileCheck %s

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// A reduction along the lanes has whole vectors, a masked tail in as few registers as possible, whose inactive lanes
// keep their value, and one horizontal step.
// CHECK-LABEL: func.func @sum_rows
// CHECK: scf.for
// CHECK:   %[[MAIN:.*]] = scf.for {{.*}} step %c64 iter_args
// CHECK:     vector.load {{.*}} vector<64xf32>
// CHECK:     arith.addf
// CHECK:   %[[FIRST:.*]] = vector.extract_strided_slice %[[MAIN]] {offsets = [0], sizes = [16]
// CHECK:   vector.maskedload {{.*}} vector<16xf32>
// CHECK:   %[[TAIL:.*]] = arith.select {{.*}} %[[FIRST]] : vector<16xi1>
// CHECK:   %[[ALL:.*]] = vector.insert_strided_slice %[[TAIL]], %[[MAIN]]
// CHECK:   vector.reduction <add>, %[[ALL]], %{{.*}} fastmath<reassoc>
// CHECK:   memref.store
tile.program @sum_rows outputs 1 {
^bb0(%x: !tile.slice<6x203xf32, global>, %y: !tile.slice<6xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 203] sizes [1, 203] offsets [0] (%i) vector 1 reduce [1] into (%y : !tile.slice<6xf32, global>)
        at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<6x203xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#in = affine_map<(d0, d1)[s0, s1] -> (d1, d0)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0)>
#out = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>

// A transposed access is a gather; a value that is constant along the lanes is loaded once, outside their loop.
// CHECK-LABEL: func.func @hoists_and_gathers
// CHECK: scf.for
// CHECK:   %[[R:.*]] = memref.load
// CHECK:   math.absf %[[R]] : f32
// CHECK:   scf.for
// CHECK:     vector.gather
// CHECK:     vector.store
tile.program @hoists_and_gathers outputs 1 {
^bb0(%x: !tile.slice<128x6xf32, global>, %r: !tile.slice<6xf32, global>, %y: !tile.slice<6x128xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #in : !tile.slice<128x6xf32, global> -> f32
      %s = tile.load %r at #row : !tile.slice<6xf32, global> -> f32
      %a = math.absf %s : f32
      %n = arith.mulf %v, %a : f32
      tile.store %n, %y at #out : f32, !tile.slice<6x128xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#in = affine_map<(d0)[s0] -> (d0 - 3)>
#out = affine_map<(d0)[s0] -> (d0)>

// A guarded access reads under the mask of its guard, and an integer division never sees the zeros of masked lanes.
// CHECK-LABEL: func.func @guards_accesses
// CHECK: %[[V:.*]] = vector.maskedload
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %[[V]]
// CHECK: %[[D:.*]] = arith.select %[[ZERO]]
// CHECK: arith.divsi %{{.*}}, %[[D]]
tile.program @guards_accesses outputs 1 {
^bb0(%x: !tile.slice<61xi32, global>, %y: !tile.slice<64xi32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64] sizes [64] offsets [] () vector 0 reduce [] {
      %v = tile.load %x at #in guard affine_set<(d0)[s0] : (d0 - 3 >= 0)> : !tile.slice<61xi32, global> -> i32
      %c = arith.constant 100 : i32
      %n = arith.divsi %c, %v : i32
      tile.store %n, %y at #out : i32, !tile.slice<64xi32, global>
      tile.yield
    }
  }
  }
}

// -----

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

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#each = affine_map<(d0, d1)[s0, s1] -> (d0, d1 floordiv 48)>
#wide = affine_map<(d0, d1)[s0, s1] -> (d0, d1 floordiv 64)>

// All lanes read one element if each is repeated for whole vectors. A tail of 48 starts inside 48 repetitions.
// CHECK-LABEL: func.func @repeats
// CHECK:   vector.gather {{.*}} memref<6x3xf32>, vector<64xi32>
// CHECK:   memref.load {{.*}} memref<6x2xf32>
// CHECK:   vector.gather {{.*}} memref<6x3xf32>, vector<48xi32>
// CHECK:   memref.load {{.*}} memref<6x2xf32>
tile.program @repeats outputs 1 {
^bb0(%x: !tile.slice<6x3xf32, global>, %z: !tile.slice<6x2xf32, global>, %y: !tile.slice<6x104xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 104] sizes [1, 104] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #each : !tile.slice<6x3xf32, global> -> f32
      %w = tile.load %z at #wide : !tile.slice<6x2xf32, global> -> f32
      %n = arith.addf %v, %w : f32
      tile.store %n, %y at #id : f32, !tile.slice<6x104xf32, global>
      tile.yield
    }
  }
  }
}

// -----

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

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0)>
#buffer = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>

// The input of the next tile is prefetched while later nests of a tile compute; a single nest relies on the hardware.
// CHECK-LABEL: func.func @asks_for_the_next_row
// CHECK:   scf.for %[[ROW:.*]] =
// CHECK:     %[[NEXT:.*]] = arith.addi %[[ROW]], %c1
// CHECK:     memref.prefetch %{{.*}}[%[[NEXT]], %{{.*}}], read, locality<3>, data
// CHECK-NOT: memref.prefetch {{.*}} write
tile.program @asks_for_the_next_row outputs 1 {
^bb0(%x: !tile.slice<6x128xf32, global>, %y: !tile.slice<6xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    %sum = tile.alloc at 0 : !tile.slice<1xf32, block>
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [1] into (%sum : !tile.slice<1xf32, block>)
        at [#buffer] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<6x128xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [6] sizes [1] offsets [0] (%i) vector -1 reduce [] {
      %v = tile.load %sum at affine_map<(d0)[s0] -> (d0 - s0)> : !tile.slice<1xf32, block> -> f32
      tile.store %v, %y at affine_map<(d0)[s0] -> (d0)> : f32, !tile.slice<6xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>

// Streaming stores bypass the caches if every vector fills registers; they store one register at a time, and the kernel
// waits for all of them at its end.
// CHECK-LABEL: func.func @streams_rows
// CHECK:   vector.store {{.*}} {alignment = 64 : i64, nontemporal = true} : {{.*}}, vector<16xf32>
// CHECK:   llvm.call_intrinsic "llvm.x86.sse.sfence"()
// CHECK-LABEL: func.func @streams_narrow_rows
// CHECK:   vector.store {{.*}} {alignment = 64 : i64, nontemporal = true} : {{.*}}, vector<32xbf16>
// CHECK-LABEL: func.func @cannot_stream_odd_rows
// CHECK:   vector.store
// CHECK-NOT: nontemporal
tile.program @streams_rows outputs 1 {
^bb0(%x: !tile.slice<6x128xf32, global>, %y: !tile.slice<6x128xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<6x128xf32, global> -> f32
      tile.store %v, %y at #id streamed : f32, !tile.slice<6x128xf32, global>
      tile.yield
    }
  }
  }
}
tile.program @streams_narrow_rows outputs 1 {
^bb0(%x: !tile.slice<6x128xbf16, global>, %y: !tile.slice<6x128xbf16, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<6x128xbf16, global> -> bf16
      tile.store %v, %y at #id streamed : bf16, !tile.slice<6x128xbf16, global>
      tile.yield
    }
  }
  }
}
tile.program @cannot_stream_odd_rows outputs 1 {
^bb0(%x: !tile.slice<6x129xf32, global>, %y: !tile.slice<6x129xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 129] sizes [1, 129] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<6x129xf32, global> -> f32
      tile.store %v, %y at #id streamed : f32, !tile.slice<6x129xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>

// The lines that the last nest writes are prefetched while the nest before it computes; small buffers are on the stack.
// CHECK-LABEL: func.func @asks_for_what_it_will_write
// CHECK:   memref.alloca() {alignment = 64 : i64} : memref<{{[0-9]+}}xi8>
// CHECK:   memref.prefetch %{{.*}}, write, locality<3>, data
// CHECK:   vector.reduction <add>
// CHECK-NOT: memref.prefetch {{.*}} write
tile.program @asks_for_what_it_will_write outputs 1 {
^bb0(%x: !tile.slice<6x128xf32, global>, %y: !tile.slice<6x128xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    %sum = tile.alloc at 0 : !tile.slice<1xf32, block>
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [1] into (%sum : !tile.slice<1xf32, block>)
        at [#row] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<6x128xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<6x128xf32, global> -> f32
      %s = tile.load %sum at #row : !tile.slice<1xf32, block> -> f32
      %n = arith.subf %v, %s : f32
      tile.store %n, %y at #id : f32, !tile.slice<6x128xf32, global>
      tile.yield
    }
  }
  }
}

// -----

// A stride of two: each vector of lanes takes two vectors of memory, and the elements between use the same two. The
// last elements of a slice are gathered if a vector would pass its end. Where only some lanes read, only their elements
// are loaded.
// CHECK-LABEL: func.func @strided
// CHECK: vector.load %arg0{{.*}} : memref<128xf32>, vector<16xf32>
// CHECK: vector.load %arg0{{.*}} : memref<128xf32>, vector<16xf32>
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
// CHECK: vector.shuffle {{.*}} [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31]
// CHECK-NOT: vector.gather
// CHECK-LABEL: func.func @strided_to_the_end
// CHECK: vector.gather
// CHECK-LABEL: func.func @strided_where
// CHECK: vector.maskedload
// CHECK: vector.maskedload
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

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>

// Dependent additions run in four chains. A power of two is one multiplication, not a polynomial.
// CHECK-LABEL: func.func @sums_squares
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<64xf32>)
tile.program @sums_squares outputs 1 {
^bb0(%x: !tile.slice<6x512xf32, global>, %y: !tile.slice<6xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 512] sizes [1, 512] offsets [0] (%i) vector 1 reduce [1] into (%y : !tile.slice<6xf32, global>)
        at [affine_map<(d0, d1)[s0, s1] -> (d0)>] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%sum: f32):
      %two = arith.constant 2 : i32
      %v = tile.load %x at #id : !tile.slice<6x512xf32, global> -> f32
      %square = math.fpowi %v, %two : f32, i32
      %next = arith.addf %sum, %square : f32
      tile.yield %next : f32
    }
  }
  }
}
