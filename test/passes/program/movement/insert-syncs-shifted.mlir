// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-insert-syncs))' --split-input-file | FileCheck %s

// A buffer that is aligned as a tile starts up to 14 bytes after its offset: another buffer at that offset has other
// elements in the same bytes, which other warps write.
// CHECK-LABEL: tile.program @shifted
// CHECK: tile.compute
// CHECK: tile.sync <block>
// CHECK: tile.compute
// CHECK: tile.sync <block>
// CHECK: tile.compute
tile.program @shifted outputs 1 target <"cuda:h200"> {
^bb0(%x: !tile.slice<4000x77xf16, global>, %y: !tile.slice<4000xf16, global>):
  tile.parallel [4000] tiles [4] workgroups 1000 attributes {tile.group = 32 : i64, tile.threads = 128 : i64} {
    tile.walk {
    ^bb0(%i: index):
      %a = tile.alloc at 0 {tile.aligned_as = affine_map<(d0) -> (d0 * 77)>} : <4x77xf16, block>
      tile.compute [4000, 77] sizes [4, 77] offsets [0](%i) vector 1 reduce [] {
        %v = tile.load %x at affine_map<(d0, d1)[s0, s1] -> (d0, d1)> : <4000x77xf16, global> -> f16
        tile.store %v, %a at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)> : f16, <4x77xf16, block>
        tile.yield
      }
      %b = tile.alloc at 640 : <4x77xf16, block>
      %c = tile.alloc at 0 : <4x77xf16, block>
      tile.sync <block>
      tile.compute [4000, 77] sizes [4, 77] offsets [0](%i) vector 1 reduce [] {
        %v = tile.load %a at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)> : <4x77xf16, block> -> f16
        tile.store %v, %b at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)> : f16, <4x77xf16, block>
        tile.yield
      }
      tile.sync <block>
      tile.compute [4000, 77] sizes [4, 77] offsets [0](%i) vector 1 reduce [] {
        %v = tile.load %b at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)> : <4x77xf16, block> -> f16
        tile.store %v, %c at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)> : f16, <4x77xf16, block>
        tile.yield
      }
      tile.sync <block>
      tile.compute [4000, 77] sizes [4, 77] offsets [0](%i) vector 1 reduce [1] into(%y : !tile.slice<4000xf16, global>) at [affine_map<(d0, d1)[s0, s1] -> (d0)>] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%s: f32):
        %v = tile.load %c at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)> : <4x77xf16, block> -> f16
        %w = arith.extf %v : f16 to f32
        %t = arith.addf %w, %s : f32
        tile.yield %t : f32
      }
    }
  }
}

// -----

// The shifted buffer reaches up to 14 bytes into the next one.
// CHECK-LABEL: tile.program @reaches_into_the_next
// CHECK: tile.compute
// CHECK: tile.sync
// CHECK: tile.compute
// CHECK: tile.sync <block>
// CHECK: tile.compute
tile.program @reaches_into_the_next outputs 1 target <"cuda:h200"> {
^bb0(%x: !tile.slice<4000x61xf16, global>, %y: !tile.slice<4000xf16, global>):
  tile.parallel [4000] tiles [1] workgroups 4000 attributes {tile.group = 128 : i64, tile.threads = 128 : i64} {
    tile.walk {
    ^bb0(%i: index):
      %a = tile.alloc at 0 {tile.aligned_as = affine_map<(d0) -> (d0 * 61)>} : <1x61xf16, block>
      tile.compute [4000, 61] sizes [1, 61] offsets [0](%i) vector 1 reduce [] {
        %v = tile.load %x at affine_map<(d0, d1)[s0, s1] -> (d0, d1)> : <4000x61xf16, global> -> f16
        tile.store %v, %a at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)> : f16, <1x61xf16, block>
        tile.yield
      }
      %b = tile.alloc at 256 : <1x61xf16, block>
      %c = tile.alloc at 128 : <1x61xf16, block>
      tile.sync <block>
      tile.compute [4000, 61] sizes [1, 61] offsets [0](%i) vector 1 reduce [] {
        %v = tile.load %a at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)> : <1x61xf16, block> -> f16
        tile.store %v, %b at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)> : f16, <1x61xf16, block>
        tile.yield
      }
      tile.sync <block>
      tile.compute [4000, 61] sizes [1, 61] offsets [0](%i) vector 1 reduce [] {
        %v = tile.load %b at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)> : <1x61xf16, block> -> f16
        tile.store %v, %c at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)> : f16, <1x61xf16, block>
        tile.yield
      }
      tile.sync <block>
      tile.compute [4000, 61] sizes [1, 61] offsets [0](%i) vector 1 reduce [1] into(%y : !tile.slice<4000xf16, global>) at [affine_map<(d0, d1)[s0, s1] -> (d0)>] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%s: f32):
        %v = tile.load %c at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)> : <1x61xf16, block> -> f16
        %w = arith.extf %v : f16 to f32
        %t = arith.addf %w, %s : f32
        tile.yield %t : f32
      }
    }
  }
}
