// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-widen-buffers))' --split-input-file | FileCheck %s

// Widened: a buffer written once and read by another nest, and a row that is read again for each tile; roundings stay.
// CHECK-LABEL: tile.program @rows
// CHECK: %[[ROW:.*]] = tile.alloc : <64xf32, block>
// CHECK-NEXT: tile.compute [64] sizes [64] offsets []() vector 0 reduce []
// CHECK-NEXT: %[[R:.*]] = tile.load %arg1 {{.*}} -> bf16
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[R]] : bf16 to f32
// CHECK-NEXT: tile.store %[[WIDE]], %[[ROW]]
// CHECK: %[[B:.*]] = tile.alloc : <1x64xf32, block>
// CHECK: tile.compute
// CHECK: %[[ROUNDED:.*]] = arith.truncf {{.*}} : f32 to bf16
// CHECK-NEXT: %[[KEPT:.*]] = arith.extf %[[ROUNDED]] : bf16 to f32
// CHECK-NEXT: tile.store %[[KEPT]], %[[B]]
// CHECK: tile.compute
// CHECK-NEXT: %[[V:.*]] = tile.load %[[B]] {{.*}} -> f32
// CHECK-NEXT: %[[S:.*]] = tile.load %[[ROW]] {{.*}} -> f32
// CHECK-NEXT: arith.mulf %[[V]], %[[S]] : f32
tile.program @rows outputs 1 {
^bb0(%x: !tile.slice<8x64xbf16, global>, %row: !tile.slice<64xbf16, global>, %y: !tile.slice<8x64xbf16, global>):
  tile.parallel [8] tiles [1] workgroups 1 {
    %r = tile.alloc : !tile.slice<64xbf16, block>
    tile.move %row, %r : !tile.slice<64xbf16, global>, !tile.slice<64xbf16, block>
    tile.walk {
    ^bb0(%i: index):
      %b = tile.alloc : !tile.slice<1x64xbf16, block>
      tile.compute [8, 64] sizes [1, 64] offsets [0](%i) vector 1 reduce [] {
        %v = tile.load %x at affine_map<(i, j)[s, t] -> (i, j)> : !tile.slice<8x64xbf16, global> -> bf16
        %w = arith.extf %v : bf16 to f32
        %e = math.exp %w : f32
        %n = arith.truncf %e : f32 to bf16
        tile.store %n, %b at affine_map<(i, j)[s, t] -> (i - s, j)> : bf16, !tile.slice<1x64xbf16, block>
        tile.yield
      }
      tile.sync <block>
      tile.compute [8, 64] sizes [1, 64] offsets [0](%i) vector 1 reduce [] {
        %v = tile.load %b at affine_map<(i, j)[s, t] -> (i - s, j)> : !tile.slice<1x64xbf16, block> -> bf16
        %s0 = tile.load %r at affine_map<(i, j)[s, t] -> (j)> : !tile.slice<64xbf16, block> -> bf16
        %w = arith.extf %v : bf16 to f32
        %ws = arith.extf %s0 : bf16 to f32
        %p = arith.mulf %w, %ws : f32
        %n = arith.truncf %p : f32 to bf16
        tile.store %n, %y at affine_map<(i, j)[s, t] -> (i, j)> : bf16, !tile.slice<8x64xbf16, global>
        tile.yield
      }
    }
  }
}

// -----

// Left alone: a value that is also passed on, a buffer of accumulators, and one that would not fit into L1.
// CHECK-LABEL: tile.program @leaves
// CHECK-COUNT-3: tile.alloc : <{{.*}}bf16, block>
// CHECK-NOT: tile.alloc
tile.program @leaves outputs 2 {
^bb0(%x: !tile.slice<8x16384xbf16, global>, %y: !tile.slice<8x16384xbf16, global>, %z: !tile.slice<8xbf16, global>):
  tile.parallel [8] tiles [1] workgroups 1 {
    %large = tile.alloc : !tile.slice<16384xbf16, block>
    tile.walk {
    ^bb0(%i: index):
      %sum = tile.alloc : !tile.slice<1xbf16, block>
      %passed = tile.alloc : !tile.slice<1x64xbf16, block>
      tile.compute [8, 16384] sizes [1, 16384] offsets [0](%i) vector 1 reduce [1] into(%sum : !tile.slice<1xbf16, block>) at [affine_map<(i, j)[s, t] -> (i - s)>] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%a: f32):
        %v = tile.load %x at affine_map<(i, j)[s, t] -> (i, j)> : !tile.slice<8x16384xbf16, global> -> bf16
        tile.store %v, %large at affine_map<(i, j)[s, t] -> (j)> : bf16, !tile.slice<16384xbf16, block>
        %w = arith.extf %v : bf16 to f32
        %n = arith.addf %w, %a : f32
        tile.yield %n : f32
      }
      tile.sync <block>
      tile.compute [8, 64] sizes [1, 64] offsets [0](%i) vector 1 reduce [] {
        %v = tile.load %large at affine_map<(i, j)[s, t] -> (j)> : !tile.slice<16384xbf16, block> -> bf16
        %s0 = tile.load %sum at affine_map<(i, j)[s, t] -> (i - s)> : !tile.slice<1xbf16, block> -> bf16
        %w = arith.extf %v : bf16 to f32
        %ws = arith.extf %s0 : bf16 to f32
        %p = arith.mulf %w, %ws : f32
        %n = arith.truncf %p : f32 to bf16
        tile.store %n, %passed at affine_map<(i, j)[s, t] -> (i - s, j)> : bf16, !tile.slice<1x64xbf16, block>
        tile.yield
      }
      tile.sync <block>
      tile.compute [8, 64] sizes [1, 64] offsets [0](%i) vector 1 reduce [] {
        %v = tile.load %passed at affine_map<(i, j)[s, t] -> (i - s, j)> : !tile.slice<1x64xbf16, block> -> bf16
        tile.store %v, %y at affine_map<(i, j)[s, t] -> (i, j)> : bf16, !tile.slice<8x16384xbf16, global>
        tile.yield
      }
    }
  }
}
