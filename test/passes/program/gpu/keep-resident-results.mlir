// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-keep-resident-tiles{target=cuda:h200}))' --mlir-print-local-scope | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-keep-resident-tiles{target=cuda:h200},tile-allocate-buffers,tile-verify-programs))' | FileCheck %s --check-prefix=PLACE

#id = affine_map<(d0)[s0] -> (d0)>
#turned = affine_map<(d0)[s0] -> (95 - d0)>

// The first phase keeps what it computes, which two later phases read: the second by other blocks, from memory, and
// the third by the same ones, from shared memory. A tile that only the last two phases need has the same place,
// because the first is not live any more.
// CHECK-LABEL: tile.program @keeps_what_it_computes
// CHECK: ^bb0(%{{[^:]*}}: !tile.slice<96xf32, global>, %[[T:[^:]*]]: !tile.slice<96xf32, global>,
// CHECK: %[[LEFT:.*]] = tile.alloc {{.*}}tile.resident_tile = 0 : i64} : <16xf32, block>
// CHECK: tile.store %[[E:.*]], %[[T]] at
// CHECK-NEXT: tile.store %[[E]], %[[LEFT]] at affine_map<(d0)[s0] -> (d0 - s0)>
// CHECK: tile.sync <grid>
// CHECK: tile.load %[[T]] at
// CHECK: tile.sync <grid>
// CHECK: %[[FOUND:.*]] = tile.alloc {{.*}}tile.resident_tile = 0 : i64} : <16xf32, block>
// CHECK: tile.load %[[FOUND]] at affine_map<(d0)[s0] -> (d0 - s0)>
// CHECK: tile.sync <grid>
// CHECK: tile.sync <grid>
// CHECK: %[[LATER:.*]] = tile.alloc {{.*}}tile.resident_tile = 1 : i64} : <16xf32, block>
// CHECK: tile.load %[[LATER]] at

// PLACE-COUNT-2: tile.alloc at 0 {{.*}}tile.resident_tile = 0 : i64}
// PLACE-COUNT-2: tile.alloc at 0 {{.*}}tile.resident_tile = 1 : i64}
tile.program @keeps_what_it_computes outputs 5 {
^bb0(%x: !tile.slice<96xf32, global>, %t: !tile.slice<96xf32, global>, %u: !tile.slice<96xf32, global>,
     %v: !tile.slice<96xf32, global>, %w: !tile.slice<96xf32, global>, %y: !tile.slice<96xf32, global>):
  tile.parallel [96] tiles [16] workgroups 6 attributes {tile.resident = array<i64: 0, 1>, tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [96] sizes [16] offsets [0] (%i) vector 0 reduce [] {
        %a = tile.load %x at #id : !tile.slice<96xf32, global> -> f32
        %e = math.exp %a : f32
        tile.store %e, %t at #id : f32, !tile.slice<96xf32, global>
        tile.yield
      }
    }
  }
  tile.sync <grid>
  tile.parallel [96] tiles [16] workgroups 6 attributes {tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [96] sizes [16] offsets [0] (%i) vector 0 reduce [] {
        %a = tile.load %t at #turned : !tile.slice<96xf32, global> -> f32
        tile.store %a, %u at #id : f32, !tile.slice<96xf32, global>
        tile.yield
      }
    }
  }
  tile.sync <grid>
  tile.parallel [96] tiles [16] workgroups 6 attributes {tile.resident = array<i64: 0, 1>, tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [96] sizes [16] offsets [0] (%i) vector 0 reduce [] {
        %a = tile.load %t at #id : !tile.slice<96xf32, global> -> f32
        %b = tile.load %u at #turned : !tile.slice<96xf32, global> -> f32
        %c = arith.addf %a, %b : f32
        tile.store %c, %v at #id : f32, !tile.slice<96xf32, global>
        tile.yield
      }
    }
  }
  tile.sync <grid>
  tile.parallel [96] tiles [16] workgroups 6 attributes {tile.resident = array<i64: 1, 4>, tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [96] sizes [16] offsets [0] (%i) vector 0 reduce [] {
        %a = tile.load %v at #turned : !tile.slice<96xf32, global> -> f32
        %e = math.exp %a : f32
        tile.store %e, %w at #id : f32, !tile.slice<96xf32, global>
        tile.yield
      }
    }
  }
  tile.sync <grid>
  tile.parallel [96] tiles [16] workgroups 6 attributes {tile.resident = array<i64: 1, 4>, tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [96] sizes [16] offsets [0] (%i) vector 0 reduce [] {
        %a = tile.load %w at #id : !tile.slice<96xf32, global> -> f32
        %b = tile.load %w at #id : !tile.slice<96xf32, global> -> f32
        %c = arith.addf %a, %b : f32
        tile.store %c, %y at #id : f32, !tile.slice<96xf32, global>
        tile.yield
      }
    }
  }
}
