// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-stage-transposes{target=x86-64-avx512bf16}))' --split-input-file | FileCheck %s

// Lanes are along i, but x is contiguous along j: a copy transposes the tile of x, and the nest reads the copy.
// CHECK-DAG: #[[$TURNED:.*]] = affine_map<(d0, d1)[s0, s1] -> (d1, d0)>
// CHECK-DAG: #[[$BUFFER:.*]] = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1 - s1)>
// CHECK-LABEL: tile.program @reads_across
// CHECK: %[[B:.*]] = tile.alloc : <16x256xf32, block>
// CHECK: tile.compute [100, 1000] sizes [16, 256] offsets [0, 1](%[[I:.*]], %[[J:.*]]) vector 1 reduce []
// CHECK-NEXT: %[[V:.*]] = tile.load %arg0 at #[[$TURNED]]
// CHECK-NEXT: tile.store %[[V]], %[[B]] at #[[$BUFFER]]
// CHECK: tile.sync <block>
// CHECK: tile.compute [100, 1000] sizes [16, 256] offsets [0, 1](%[[I]], %[[J]]) vector 1
// CHECK-NEXT: tile.load %[[B]] at #[[$BUFFER]]
// CHECK-NEXT: arith.negf
// CHECK-NEXT: tile.store {{.*}}, %arg1
tile.program @reads_across outputs 1 {
^bb0(%x: !tile.slice<1000x100xf32, global>, %y: !tile.slice<100x1000xf32, global>):
  tile.parallel [100, 1000] tiles [16, 256] workgroups 1 {
    tile.walk {
    ^bb0(%a: index, %b: index):
      tile.compute [100, 1000] sizes [16, 256] offsets [0, 1](%a, %b) vector 1 reduce [] {
        %v = tile.load %x at affine_map<(i, j)[s0, s1] -> (j, i)> : !tile.slice<1000x100xf32, global> -> f32
        %n = arith.negf %v : f32
        tile.store %n, %y at affine_map<(i, j)[s0, s1] -> (i, j)> : f32, !tile.slice<100x1000xf32, global>
        tile.yield
      }
    }
  }
}

// -----

// The reverse case: the result is transposed after the nest, and a slice with one more dim is transposed at each index.
// CHECK-LABEL: tile.program @writes_across
// CHECK: %[[B:.*]] = tile.alloc : <3x19x24xf16, block>
// CHECK: tile.compute [3, 19, 24]
// CHECK: tile.store %{{.*}}, %[[B]] at
// CHECK: tile.sync <block>
// CHECK-NEXT: tile.compute [3, 19, 24]
// CHECK-NEXT: %[[V:.*]] = tile.load %[[B]]
// CHECK-NEXT: tile.store %[[V]], %arg1
// CHECK-NOT: tile.compute
tile.program @writes_across outputs 1 {
^bb0(%x: !tile.slice<3x19x24xf16, global>, %y: !tile.slice<3x24x19xf16, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      tile.compute [3, 19, 24] sizes [3, 19, 24] offsets []() vector 2 reduce [] {
        %v = tile.load %x at affine_map<(b, i, j)[s0, s1, s2] -> (b, i, j)> : !tile.slice<3x19x24xf16, global> -> f16
        %n = arith.negf %v : f16
        tile.store %n, %y at affine_map<(b, i, j)[s0, s1, s2] -> (b, j, i)> : f16, !tile.slice<3x24x19xf16, global>
        tile.yield
      }
    }
  }
}

// -----

// A copy is transposed directly; bytes, narrow tiles, guarded reads, diagonals and computed indices are gathered.
// CHECK-LABEL: tile.program @leaves
// CHECK-NOT: tile.alloc
tile.program @leaves outputs 1 {
^bb0(%x: !tile.slice<64x64xf32, global>, %n: !tile.slice<64x64xi8, global>, %t: !tile.slice<64x4xf32, global>,
     %d: !tile.slice<64x64x64xf32, global>, %y: !tile.slice<64x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      tile.compute [64, 64] sizes [64, 64] offsets []() vector 1 reduce [] {
        %v = tile.load %x at affine_map<(i, j)[s0, s1] -> (j, i)> : !tile.slice<64x64xf32, global> -> f32
        tile.store %v, %y at affine_map<(i, j)[s0, s1] -> (i, j)> : f32, !tile.slice<64x64xf32, global>
        tile.yield
      }
      tile.sync <block>
      tile.compute [64, 64] sizes [64, 64] offsets []() vector 1 reduce [] {
        %a = tile.load %n at affine_map<(i, j)[s0, s1] -> (j, i)> : !tile.slice<64x64xi8, global> -> i8
        %b = tile.load %x at affine_map<(i, j)[s0, s1] -> (j, i)> guard affine_set<(i, j)[s0, s1] : (j - i >= 0)>
            : !tile.slice<64x64xf32, global> -> f32
        %c = tile.load %x at affine_map<(i, j)[s0, s1] -> (j, 63 - i)> : !tile.slice<64x64xf32, global> -> f32
        %e = tile.load %d at affine_map<(i, j)[s0, s1] -> (i, j, i)> : !tile.slice<64x64x64xf32, global> -> f32
        %f = arith.sitofp %a : i8 to f32
        %s = arith.addf %b, %f : f32
        %p = arith.addf %s, %e : f32
        %r = arith.addf %p, %c : f32
        tile.store %r, %y at affine_map<(i, j)[s0, s1] -> (i, j)> : f32, !tile.slice<64x64xf32, global>
        tile.yield
      }
      tile.sync <block>
      tile.compute [4, 64] sizes [4, 64] offsets []() vector 1 reduce [] {
        %v = tile.load %t at affine_map<(i, j)[s0, s1] -> (j, i)> : !tile.slice<64x4xf32, global> -> f32
        %m = arith.negf %v : f32
        tile.store %m, %y at affine_map<(i, j)[s0, s1] -> (i, j)> : f32, !tile.slice<64x64xf32, global>
        tile.yield
      }
    }
  }
}

// -----

// A result that later nests read across its lanes is transposed as well.
// CHECK-LABEL: tile.program @hands_over_across
// CHECK: %[[KEPT:.*]] = tile.alloc : <24x19xf32, block>
// CHECK: %[[B:.*]] = tile.alloc : <19x24xf32, block>
// CHECK: tile.compute [19, 24]
// CHECK: tile.store %{{.*}}, %[[B]] at
// CHECK: tile.compute [19, 24]
// CHECK-NEXT: %[[V:.*]] = tile.load %[[B]]
// CHECK-NEXT: tile.store %[[V]], %[[KEPT]]
// CHECK: tile.compute [24, 19]
tile.program @hands_over_across outputs 1 {
^bb0(%x: !tile.slice<19x24xf32, global>, %y: !tile.slice<24x19xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      %kept = tile.alloc : !tile.slice<24x19xf32, block>
      tile.compute [19, 24] sizes [19, 24] offsets []() vector 1 reduce [] {
        %v = tile.load %x at affine_map<(i, j)[s0, s1] -> (i, j)> : !tile.slice<19x24xf32, global> -> f32
        %n = arith.negf %v : f32
        tile.store %n, %kept at affine_map<(i, j)[s0, s1] -> (j, i)> : f32, !tile.slice<24x19xf32, block>
        tile.yield
      }
      tile.sync <block>
      tile.compute [24, 19] sizes [24, 19] offsets []() vector 1 reduce [] {
        %v = tile.load %kept at affine_map<(i, j)[s0, s1] -> (i, j)> : !tile.slice<24x19xf32, block> -> f32
        %n = arith.addf %v, %v : f32
        tile.store %n, %y at affine_map<(i, j)[s0, s1] -> (i, j)> : f32, !tile.slice<24x19xf32, global>
        tile.yield
      }
    }
  }
}

// -----

// All slices of the nest are contiguous along i, and so are its lanes: nothing is transposed.
// CHECK-LABEL: tile.program @lanes_along_neighbours
// CHECK-NOT: tile.alloc
// CHECK: tile.compute [40, 24] sizes [40, 24] offsets []() vector 0
tile.program @lanes_along_neighbours outputs 1 {
^bb0(%x: !tile.slice<24x40xf32, global>, %y: !tile.slice<24x40xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      tile.compute [40, 24] sizes [40, 24] offsets []() vector 1 reduce [] {
        %v = tile.load %x at affine_map<(i, c)[s0, s1] -> (c, i)> : !tile.slice<24x40xf32, global> -> f32
        %n = arith.negf %v : f32
        tile.store %n, %y at affine_map<(i, c)[s0, s1] -> (c, i)> : f32, !tile.slice<24x40xf32, global>
        tile.yield
      }
    }
  }
}

// -----

// Lanes stay along dim 1 if one of the slices is contiguous along it.
// CHECK-LABEL: tile.program @one_lies_along_lanes
// CHECK: tile.compute {{.*}} vector 1
// CHECK-NOT: vector 0
tile.program @one_lies_along_lanes outputs 1 {
^bb0(%x: !tile.slice<24x40xf32, global>, %s: !tile.slice<24xf32, global>, %y: !tile.slice<24x40xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      tile.compute [40, 24] sizes [40, 24] offsets []() vector 1 reduce [] {
        %v = tile.load %x at affine_map<(i, c)[s0, s1] -> (c, i)> : !tile.slice<24x40xf32, global> -> f32
        %f = tile.load %s at affine_map<(i, c)[s0, s1] -> (c)> : !tile.slice<24xf32, global> -> f32
        %n = arith.mulf %v, %f : f32
        tile.store %n, %y at affine_map<(i, c)[s0, s1] -> (c, i)> : f32, !tile.slice<24x40xf32, global>
        tile.yield
      }
    }
  }
}

// -----

// Accumulators across lanes live in a buffer that is contiguous along lanes, transposed when they are complete.
// CHECK-DAG: #[[$SUMS:.*]] = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0 - s0, d2 - s2)>
// CHECK-LABEL: tile.program @sums_across
// CHECK: %[[B:.*]] = tile.alloc : <40x24xf32, block>
// CHECK: tile.compute [40, 4, 24] {{.*}} vector 2 reduce [1] into(%[[B]] : {{.*}}) at [#[[$SUMS]]]
// CHECK: tile.sync <block>
// CHECK-NEXT: tile.compute [40, 24] {{.*}} vector 1 reduce [] {
// CHECK-NEXT: %[[V:.*]] = tile.load %[[B]]
// CHECK-NEXT: tile.store %[[V]], %arg1
tile.program @sums_across outputs 1 {
^bb0(%x: !tile.slice<40x4x24xf32, global>, %y: !tile.slice<24x40xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      tile.compute [40, 4, 24] sizes [40, 4, 24] offsets []() vector 2 reduce [1]
          into(%y : !tile.slice<24x40xf32, global>) at [affine_map<(i, r, c)[s0, s1, s2] -> (c, i)>] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%s: f32):
        %v = tile.load %x at affine_map<(i, r, c)[s0, s1, s2] -> (i, r, c)> : !tile.slice<40x4x24xf32, global> -> f32
        %n = arith.addf %s, %v : f32
        tile.yield %n : f32
      }
    }
  }
}

// -----

// A micro kernel with K steps of two reads a buffer that a copy transposes: the two are adjacent, rows of lanes are
// padded to whole vectors, and the copy and its reader agree on this layout.
// CHECK-DAG: #[[$PAIRS:.*]] = affine_map<(d0, d1)[s0, s1] -> (d0 floordiv 2, d1, d0 mod 2)>
// CHECK-DAG: #[[$READ:.*]] = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d2 floordiv 2, d1, d2 mod 2)>
// CHECK-LABEL: tile.program @puts_terms_side_by_side
// CHECK: %[[B:.*]] = tile.alloc : <10x48x2xbf16, block>
// CHECK: tile.store %{{.*}}, %[[B]] at #[[$PAIRS]]
// CHECK: tile.load %[[B]] at #[[$READ]]
tile.program @puts_terms_side_by_side outputs 1 target <"x86-64-avx512bf16"> {
^bb0(%q: !tile.slice<64x20xbf16, global>, %k: !tile.slice<43x20xbf16, global>, %y: !tile.slice<64x43xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      %turned = tile.alloc : !tile.slice<20x43xbf16, block>
      tile.compute [20, 43] sizes [20, 43] offsets []() vector 1 reduce [] {
        %v = tile.load %k at affine_map<(t, j)[s0, s1] -> (j, t)> : !tile.slice<43x20xbf16, global> -> bf16
        tile.store %v, %turned at affine_map<(t, j)[s0, s1] -> (t, j)> : bf16, !tile.slice<20x43xbf16, block>
        tile.yield
      }
      tile.sync <block>
      tile.compute [64, 43, 20] sizes [64, 43, 20] offsets []() vector 1 reduce [2] into(%y : !tile.slice<64x43xf32, global>) at [affine_map<(i, j, t)[s0, s1, s2] -> (i, j)>] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "dpbf16-6x4"} {
      ^bb0(%sum: f32):
        %a = tile.load %q at affine_map<(i, j, t)[s0, s1, s2] -> (i, t)> : !tile.slice<64x20xbf16, global> -> bf16
        %b = tile.load %turned at affine_map<(i, j, t)[s0, s1, s2] -> (t, j)> : !tile.slice<20x43xbf16, block> -> bf16
        %wa = arith.extf %a : bf16 to f32
        %wb = arith.extf %b : bf16 to f32
        %p = arith.mulf %wa, %wb : f32
        %s = arith.addf %sum, %p : f32
        tile.yield %s : f32
      }
    }
  }
}

// -----

// An odd K has no whole groups, so the buffer stays as it was.
// CHECK-LABEL: tile.program @leaves_odd_terms
// CHECK: tile.alloc : <21x43xbf16, block>
tile.program @leaves_odd_terms outputs 1 target <"x86-64-avx512bf16"> {
^bb0(%q: !tile.slice<64x21xbf16, global>, %k: !tile.slice<43x21xbf16, global>, %y: !tile.slice<64x43xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      %turned = tile.alloc : !tile.slice<21x43xbf16, block>
      tile.compute [21, 43] sizes [21, 43] offsets []() vector 1 reduce [] {
        %v = tile.load %k at affine_map<(t, j)[s0, s1] -> (j, t)> : !tile.slice<43x21xbf16, global> -> bf16
        tile.store %v, %turned at affine_map<(t, j)[s0, s1] -> (t, j)> : bf16, !tile.slice<21x43xbf16, block>
        tile.yield
      }
      tile.sync <block>
      tile.compute [64, 43, 21] sizes [64, 43, 21] offsets []() vector 1 reduce [2] into(%y : !tile.slice<64x43xf32, global>) at [affine_map<(i, j, t)[s0, s1, s2] -> (i, j)>] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "dpbf16-6x4"} {
      ^bb0(%sum: f32):
        %a = tile.load %q at affine_map<(i, j, t)[s0, s1, s2] -> (i, t)> : !tile.slice<64x21xbf16, global> -> bf16
        %b = tile.load %turned at affine_map<(i, j, t)[s0, s1, s2] -> (t, j)> : !tile.slice<21x43xbf16, block> -> bf16
        %wa = arith.extf %a : bf16 to f32
        %wb = arith.extf %b : bf16 to f32
        %p = arith.mulf %wa, %wb : f32
        %s = arith.addf %sum, %p : f32
        tile.yield %s : f32
      }
    }
  }
}
