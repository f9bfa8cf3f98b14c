// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --cse \
// RUN:   --remarks-filter-missed=tile-convert-to-vector --remark-format=emitRemark --verify-diagnostics | FileCheck %s

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#local = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>

// A row is streamed out while the next one is read: reads alone come before the loop over tiles, stores alone behind
// it. Odd tiles have buffers of their own. Memory is never idle, so nothing is prefetched.
// CHECK-LABEL: func.func @streams_while_it_reads
// CHECK:   %[[BUFFERS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1152xi8>
// CHECK:   scf.for %{{.*}} = %c0 to %c128 step
// CHECK:     memref.prefetch
// CHECK-NOT: nontemporal
// CHECK:   scf.for %[[TILE:.*]] = %c1 to %c6 step
// CHECK:     %[[BEFORE:.*]] = arith.subi %[[TILE]], %c1
// CHECK:     %[[ODD:.*]] = arith.andi %[[BEFORE]], %c1
// CHECK:     %[[PLACE:.*]] = arith.muli %[[ODD]], %c576
// CHECK:     memref.view %[[BUFFERS]][%[[PLACE]]]
// CHECK:     scf.for
// CHECK-NOT:   memref.prefetch
// CHECK:       vector.load %arg0[%[[TILE]], %[[AT:[a-z0-9]+]]]
// CHECK:       vector.store {{.*}}, %arg1[%[[BEFORE]], %[[AT]]] {{.*}}nontemporal
// CHECK:       scf.yield
// CHECK:     vector.reduction <add>
// CHECK:   scf.for
// CHECK:     vector.store {{.*}}, %arg1[%c5, %{{.*}}] {{.*}}nontemporal
tile.program @streams_while_it_reads outputs 1 {
^bb0(%x: !tile.slice<6x128xf32, global>, %y: !tile.slice<6x128xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    %sum = tile.alloc at 0 : !tile.slice<1xf32, block>
    %kept = tile.alloc at 64 : !tile.slice<1x128xf32, block>
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [1] into (%sum : !tile.slice<1xf32, block>)
        at [#row] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<6x128xf32, global> -> f32
      tile.store %v, %kept at #local : f32, !tile.slice<1x128xf32, block>
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %kept at #local : !tile.slice<1x128xf32, block> -> f32
      %s = tile.load %sum at #row : !tile.slice<1xf32, block> -> f32
      %n = arith.subf %v, %s : f32
      tile.store %n, %y at #id streamed : f32, !tile.slice<6x128xf32, global>
      tile.yield
    }
  }
  }
}

// The first nest of the next tile reads what the last nest of this tile stores, so their order is kept.
// CHECK-LABEL: func.func @keeps_order_of_what_it_reads_back
// CHECK:   memref.alloca() {alignment = 64 : i64} : memref<4xi8>
// CHECK:   scf.for {{.*}} = %c0 to %c6 step
// CHECK:     scf.for
// CHECK:     vector.reduction <add>
// CHECK:     scf.for
// CHECK:       nontemporal
tile.program @keeps_order_of_what_it_reads_back outputs 1 {
^bb0(%x: !tile.slice<6x128xf32, global>, %y: !tile.slice<6x128xf32, global>):
  // expected-remark @+1 {{the first nest of a tile may access memory that the last one stores}}
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    %sum = tile.alloc at 0 : !tile.slice<1xf32, block>
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [1] into (%sum : !tile.slice<1xf32, block>)
        at [#row] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %y at #id : !tile.slice<6x128xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<6x128xf32, global> -> f32
      %s = tile.load %sum at #row : !tile.slice<1xf32, block> -> f32
      %n = arith.subf %v, %s : f32
      tile.store %n, %y at #id streamed : f32, !tile.slice<6x128xf32, global>
      tile.yield
    }
  }
  }
}

// The last tile is shorter than the one before, so their nests cannot share loops.
// CHECK-LABEL: func.func @keeps_order_of_partial_tiles
// CHECK:   scf.for {{.*}} = %c0 to %c4 step
// CHECK:     vector.reduction <add>
// CHECK:     nontemporal
tile.program @keeps_order_of_partial_tiles outputs 1 {
^bb0(%x: !tile.slice<7x128xf32, global>, %y: !tile.slice<7x128xf32, global>):
  // expected-remark @+1 {{do not visit the same points in the same order}}
  tile.parallel [7] tiles [2] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    %sum = tile.alloc at 0 : !tile.slice<2xf32, block>
    tile.compute [7, 128] sizes [2, 128] offsets [0] (%i) vector 1 reduce [1] into (%sum : !tile.slice<2xf32, block>)
        at [#row] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<7x128xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [7, 128] sizes [2, 128] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<7x128xf32, global> -> f32
      %s = tile.load %sum at #row : !tile.slice<2xf32, block> -> f32
      %n = arith.subf %v, %s : f32
      tile.store %n, %y at #id streamed : f32, !tile.slice<7x128xf32, global>
      tile.yield
    }
  }
  }
}

// Two rows of this length would evict each other from the L1 cache.
// CHECK-LABEL: func.func @keeps_order_of_long_rows
// CHECK:   scf.for {{.*}} = %c0 to %c3 step
// CHECK:     vector.reduction <add>
// CHECK:     nontemporal
tile.program @keeps_order_of_long_rows outputs 1 {
^bb0(%x: !tile.slice<3x4096xf32, global>, %y: !tile.slice<3x4096xf32, global>):
  // expected-remark @+1 {{the buffers of two tiles do not fit into half of the innermost cache}}
  tile.parallel [3] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    %sum = tile.alloc at 0 : !tile.slice<1xf32, block>
    %kept = tile.alloc at 64 : !tile.slice<1x4096xf32, block>
    tile.compute [3, 4096] sizes [1, 4096] offsets [0] (%i) vector 1 reduce [1] into (%sum : !tile.slice<1xf32, block>)
        at [#row] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<3x4096xf32, global> -> f32
      tile.store %v, %kept at #local : f32, !tile.slice<1x4096xf32, block>
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [3, 4096] sizes [1, 4096] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %kept at #local : !tile.slice<1x4096xf32, block> -> f32
      %s = tile.load %sum at #row : !tile.slice<1xf32, block> -> f32
      %n = arith.subf %v, %s : f32
      tile.store %n, %y at #id streamed : f32, !tile.slice<3x4096xf32, global>
      tile.yield
    }
  }
  }
}

// A buffer that all tiles read exists once, so the other buffers of two tiles fit beside it.
// CHECK-LABEL: func.func @counts_shared_buffers_once
// CHECK:   scf.for %{{.*}} = %c1 to %c3 step
// CHECK:     nontemporal
// CHECK:   nontemporal
tile.program @counts_shared_buffers_once outputs 1 {
^bb0(%x: !tile.slice<3x1024xf32, global>, %w: !tile.slice<3584xf32, global>, %y: !tile.slice<3x1024xf32, global>):
  tile.parallel [3] tiles [1] workgroups 1 {
  %shared = tile.alloc at 0 : !tile.slice<3584xf32, block>
  tile.move %w, %shared : !tile.slice<3584xf32, global>, !tile.slice<3584xf32, block>
  tile.walk {
  ^bb0(%i: index):
    %sum = tile.alloc at 14336 : !tile.slice<1xf32, block>
    %kept = tile.alloc at 14400 : !tile.slice<1x1024xf32, block>
    tile.compute [3, 1024] sizes [1, 1024] offsets [0] (%i) vector 1 reduce [1] into (%sum : !tile.slice<1xf32, block>)
        at [#row] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<3x1024xf32, global> -> f32
      tile.store %v, %kept at #local : f32, !tile.slice<1x1024xf32, block>
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [3, 1024] sizes [1, 1024] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %kept at #local : !tile.slice<1x1024xf32, block> -> f32
      %s = tile.load %sum at #row : !tile.slice<1xf32, block> -> f32
      %f = tile.load %shared at affine_map<(d0, d1)[s0, s1] -> (d1)> : !tile.slice<3584xf32, block> -> f32
      %d = arith.subf %v, %s : f32
      %n = arith.mulf %d, %f : f32
      tile.store %n, %y at #id streamed : f32, !tile.slice<3x1024xf32, global>
      tile.yield
    }
  }
  }
}

#acc = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>
#block = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1 floordiv 32)>

// In an online softmax, the previous row's block of vectors is streamed out before each block of this row is stored.
// CHECK-LABEL: func.func @streams_while_a_maximum_runs
// CHECK:   scf.for %[[TILE:.*]] = %c1 to %c6 step
// CHECK:     scf.for {{.*}} step %c32 iter_args(
// CHECK:       vector.load %arg0[%[[TILE]]
// CHECK:       vector.reduction <or>
// CHECK:       vector.store {{.*}}, %arg1[{{.*}}nontemporal
// CHECK:       vector.store {{.*}}, %arg1[{{.*}}nontemporal
// CHECK:       math.exp {{.*}} {tile.small_argument}
tile.program @streams_while_a_maximum_runs outputs 1 {
^bb0(%x: !tile.slice<6x64xf32, global>, %y: !tile.slice<6x64xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    %exp = tile.alloc at 0 : !tile.slice<1x64xf32, block>
    %references = tile.alloc at 256 : !tile.slice<1x2xf32, block>
    %m = tile.alloc at 320 : !tile.slice<1xf32, block>
    %s = tile.alloc at 384 : !tile.slice<1xf32, block>
    tile.compute [6, 64] sizes [1, 64] offsets [0] (%i) vector 1 reduce [1]
        into (%m, %s : !tile.slice<1xf32, block>, !tile.slice<1xf32, block>)
        at [#acc, #acc] inits [0xFF800000 : f32, 0.0 : f32] kinds ["maximumf", "add"] running <0 every 32> {
    ^bb0(%max: f32, %sum: f32):
      %v = tile.load %x at #id : !tile.slice<6x64xf32, global> -> f32
      %n = arith.maximumf %v, %max : f32
      tile.store %n, %references at #block : f32, !tile.slice<1x2xf32, block>
      %d = arith.subf %v, %n : f32
      %e = math.exp %d : f32
      tile.store %e, %exp at #local : f32, !tile.slice<1x64xf32, block>
      %t = arith.addf %e, %sum : f32
      tile.yield %n, %t : f32, f32
    }
    tile.sync <block>
    tile.compute [6, 64] sizes [1, 64] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %exp at #local : !tile.slice<1x64xf32, block> -> f32
      %r = tile.load %references at #block : !tile.slice<1x2xf32, block> -> f32
      %p = arith.mulf %v, %r : f32
      tile.store %p, %y at #id streamed : f32, !tile.slice<6x64xf32, global>
      tile.yield
    }
  }
  }
}
