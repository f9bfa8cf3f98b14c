// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --split-input-file | FileCheck %s

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
#column = affine_map<(d0, d1)[s0, s1] -> (d1 - s1)>

// A tile of 1 MB would be evicted before it is read, because a core's cache is no larger.
// CHECK-LABEL: func.func @asks_for_no_tile_that_fills_a_cache
// CHECK-NOT: memref.prefetch {{.*}} read
// CHECK:     return
tile.program @asks_for_no_tile_that_fills_a_cache outputs 1 {
^bb0(%x: !tile.slice<1024x1024xf32, global>, %y: !tile.slice<1024xf32, global>):
  tile.parallel [1024] tiles [256] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    %sum = tile.alloc at 0 : !tile.slice<256xf32, block>
    tile.compute [1024, 1024] sizes [1024, 256] offsets [1] (%i) vector 1 reduce [0]
        into (%sum : !tile.slice<256xf32, block>) at [#column] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<1024x1024xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [1024] sizes [256] offsets [0] (%i) vector 0 reduce [] {
      %v = tile.load %sum at affine_map<(d0)[s0] -> (d0 - s0)> : !tile.slice<256xf32, block> -> f32
      tile.store %v, %y at affine_map<(d0)[s0] -> (d0)> : f32, !tile.slice<1024xf32, global>
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
