// RUN: tilewright-opt %s --tile-reduce-across-blocks --mlir-print-local-scope --split-input-file | FileCheck %s

#at = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#own = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1 - s1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, 0)>

// Four blocks share a row. Each leaves its sum in an output that nothing else reads, and adds up those of its rows
// behind the barrier. The tile itself stays in the block's buffer.
// CHECK-LABEL: tile.program @shares_a_sum outputs 2
// CHECK: ^bb0(%[[X:[a-z0-9]+]]: !tile.slice<6x20xf32, global>, %{{.*}}: !tile.slice<6x20xf32, global>, %[[PARTS:[a-z0-9]+]]: !tile.slice<1x4x6xf32, global>):
// CHECK: ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
// CHECK: %[[T:.*]] = tile.alloc : <3x5xf32, block>
// CHECK: %[[S:.*]] = tile.alloc : <3x1xf32, block>
// CHECK: into(%[[S]]
// CHECK: tile.sync <block>
// CHECK: tile.compute [6, 20] sizes [3, 1] offsets [0, 1](%[[I]], %[[J]]) vector 0 reduce [] {
// CHECK-NEXT: %[[OWN:.*]] = tile.load %[[S]] at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, 0)>
// CHECK-NEXT: tile.store %[[OWN]], %[[PARTS]] at affine_map<(d0, d1)[s0, s1] -> (0, d1 floordiv 5, d0)>
// CHECK: tile.sync <grid>
// CHECK: tile.compute [6, 4] sizes [3, 4] offsets [0](%[[I]]) vector 0 reduce [1] into(%[[S]] : {{.*}}) at [affine_map<(d0, d1)[s0, s1] -> (d0 - s0, 0)>] inits [0.000000e+00 : f32] kinds ["add"] {
// CHECK: tile.load %[[PARTS]] at affine_map<(d0, d1)[s0, s1] -> (0, d1, d0)>
// CHECK: arith.addf
// CHECK: tile.sync <block>
// CHECK: tile.compute [6, 20] sizes [3, 5]
// CHECK-NEXT: tile.load %[[T]]
// CHECK-NEXT: tile.load %[[S]]
// CHECK: tile.launch @shares_a_sum({{.*}}) : (tensor<6x20xf32>) -> (tensor<6x20xf32>, tensor<1x4x6xf32>)
module {
tile.program @shares_a_sum outputs 1 {
^bb0(%x: !tile.slice<6x20xf32, global>, %y: !tile.slice<6x20xf32, global>):
  tile.parallel [6, 20] tiles [3, 5] workgroups 8 attributes {tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index, %j: index):
      %t = tile.alloc : !tile.slice<3x5xf32, block>
      %s = tile.alloc : !tile.slice<3x1xf32, block>
      tile.compute [6, 20] sizes [3, 5] offsets [0, 1] (%i, %j) vector 1 reduce [1]
          into (%s : !tile.slice<3x1xf32, block>) at [#row] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%acc: f32):
        %v = tile.load %x at #at : !tile.slice<6x20xf32, global> -> f32
        tile.store %v, %t at #own : f32, !tile.slice<3x5xf32, block>
        %n = arith.addf %v, %acc : f32
        tile.yield %n : f32
      }
      tile.sync <block>
      tile.compute [6, 20] sizes [3, 5] offsets [0, 1] (%i, %j) vector 1 reduce [] {
        %v = tile.load %t at #own : !tile.slice<3x5xf32, block> -> f32
        %m = tile.load %s at #row : !tile.slice<3x1xf32, block> -> f32
        %d = arith.divf %v, %m : f32
        tile.store %d, %y at #at : f32, !tile.slice<6x20xf32, global>
        tile.yield
      }
    }
  }
}
func.func @f(%x: tensor<6x20xf32>) -> tensor<6x20xf32> {
  %y = tile.launch @shares_a_sum(%x) : (tensor<6x20xf32>) -> tensor<6x20xf32>
  return %y : tensor<6x20xf32>
}
}

// -----

#at = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#own = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1 - s1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, 0)>

// A sum of squares of differences from a mean shares the mean's barrier: a block squares differences from the mean of
// its own four elements, three times which make a row. What the nest stores is computed behind the barrier.
// CHECK-LABEL: tile.program @shares_a_variance outputs 2
// CHECK: %[[PARTS:[a-z0-9]+]]: !tile.slice<2x3x7xf32, global>):
// CHECK: %[[T:.*]] = tile.alloc : <7x4xf32, block>
// CHECK: %[[D:.*]] = tile.alloc : <7x4xf32, block>
// CHECK: %[[S:.*]] = tile.alloc : <7x1xf32, block>
// CHECK: %[[Q:.*]] = tile.alloc : <7x1xf32, block>
// CHECK: into(%[[S]]
// CHECK: into(%[[Q]]
// CHECK-NOT: tile.store
// CHECK: %[[SUM:.*]] = tile.load %[[S]]
// CHECK: %[[ALL:.*]] = arith.mulf %[[SUM]], %{{.*}} : f32
// CHECK: arith.mulf %[[ALL]], %
// CHECK-NOT: tile.store %{{.*}}, %[[D]]
// CHECK: tile.store %{{.*}}, %[[PARTS]] at affine_map<(d0, d1)[s0, s1] -> (0, d1 floordiv 4, d0)>
// CHECK: tile.store %{{.*}}, %[[PARTS]] at affine_map<(d0, d1)[s0, s1] -> (1, d1 floordiv 4, d0)>
// CHECK: tile.sync <grid>
// CHECK: into(%[[S]]
// CHECK: tile.sync <block>
// CHECK: into(%[[Q]]
// CHECK: arith.maximumf
// CHECK: tile.sync <block>
// CHECK: tile.compute [7, 12] sizes [7, 4] offsets [0, 1]({{.*}}) vector 1 reduce [] {
// CHECK-NOT: arith.mulf %[[V:.*]], %[[V]]
// CHECK: tile.store %{{.*}}, %[[D]]
// CHECK-NOT: tile.sync <grid>
tile.program @shares_a_variance outputs 1 {
^bb0(%x: !tile.slice<7x12xf32, global>, %y: !tile.slice<7x12xf32, global>):
  tile.parallel [7, 12] tiles [7, 4] workgroups 3 attributes {tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index, %j: index):
      %t = tile.alloc : !tile.slice<7x4xf32, block>
      %d = tile.alloc : !tile.slice<7x4xf32, block>
      %s = tile.alloc : !tile.slice<7x1xf32, block>
      %q = tile.alloc : !tile.slice<7x1xf32, block>
      tile.compute [7, 12] sizes [7, 4] offsets [0, 1] (%i, %j) vector 1 reduce [1]
          into (%s : !tile.slice<7x1xf32, block>) at [#row] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%acc: f32):
        %v = tile.load %x at #at : !tile.slice<7x12xf32, global> -> f32
        tile.store %v, %t at #own : f32, !tile.slice<7x4xf32, block>
        %n = arith.addf %v, %acc : f32
        tile.yield %n : f32
      }
      tile.sync <block>
      tile.compute [7, 12] sizes [7, 4] offsets [0, 1] (%i, %j) vector 1 reduce [1]
          into (%q : !tile.slice<7x1xf32, block>) at [#row] inits [0.0 : f32] kinds ["add"]
          attributes {tile.form = "two-moment variance"} {
      ^bb0(%acc: f32):
        %v = tile.load %t at #own : !tile.slice<7x4xf32, block> -> f32
        %m = tile.load %s at #row : !tile.slice<7x1xf32, block> -> f32
        %twelfth = arith.constant 0.0833333358 : f32
        %b = arith.mulf %m, %twelfth : f32
        %e = arith.subf %v, %b : f32
        tile.store %e, %d at #own : f32, !tile.slice<7x4xf32, block>
        %p = arith.mulf %e, %e : f32
        %n = arith.addf %p, %acc : f32
        tile.yield %n : f32
      }
      tile.sync <block>
      tile.compute [7, 12] sizes [7, 4] offsets [0, 1] (%i, %j) vector 1 reduce [] {
        %v = tile.load %d at #own : !tile.slice<7x4xf32, block> -> f32
        %m = tile.load %q at #row : !tile.slice<7x1xf32, block> -> f32
        %r = math.rsqrt %m : f32
        %z = arith.mulf %v, %r : f32
        tile.store %z, %y at #at : f32, !tile.slice<7x12xf32, global>
        tile.yield
      }
    }
  }
}

// -----

#at = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, 0)>

// A maximum and a sum relative to it depend on each other, so each has a barrier. Tiles may differ in size.
// CHECK-LABEL: tile.program @waits_twice outputs 3
// CHECK: !tile.slice<1x4x2xf32, global>, %{{.*}}: !tile.slice<1x4x2xf32, global>):
// CHECK: tile.sync <grid>
// CHECK: kinds ["maximumf"]
// CHECK: tile.sync <grid>
// CHECK: kinds ["add"]
// CHECK-NOT: tile.sync <grid>
tile.program @waits_twice outputs 1 {
^bb0(%x: !tile.slice<2x11xf32, global>, %y: !tile.slice<2x11xf32, global>):
  tile.parallel [2, 11] tiles [1, 3] workgroups 8 attributes {tile.threads = 32 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index, %j: index):
      %m = tile.alloc : !tile.slice<1x1xf32, block>
      %s = tile.alloc : !tile.slice<1x1xf32, block>
      tile.compute [2, 11] sizes [1, 3] offsets [0, 1] (%i, %j) vector 1 reduce [1]
          into (%m : !tile.slice<1x1xf32, block>) at [#row] inits [-3.0e38 : f32] kinds ["maximumf"] {
      ^bb0(%acc: f32):
        %v = tile.load %x at #at : !tile.slice<2x11xf32, global> -> f32
        %n = arith.maximumf %v, %acc : f32
        tile.yield %n : f32
      }
      tile.sync <block>
      tile.compute [2, 11] sizes [1, 3] offsets [0, 1] (%i, %j) vector 1 reduce [1]
          into (%s : !tile.slice<1x1xf32, block>) at [#row] inits [0.0 : f32] kinds ["add"] {
      ^bb0(%acc: f32):
        %v = tile.load %x at #at : !tile.slice<2x11xf32, global> -> f32
        %u = tile.load %m at #row : !tile.slice<1x1xf32, block> -> f32
        %d = arith.subf %v, %u : f32
        %e = math.exp %d : f32
        %n = arith.addf %e, %acc : f32
        tile.yield %n : f32
      }
      tile.sync <block>
      tile.compute [2, 11] sizes [1, 3] offsets [0, 1] (%i, %j) vector 1 reduce [] {
        %u = tile.load %s at #row : !tile.slice<1x1xf32, block> -> f32
        tile.store %u, %y at #at : f32, !tile.slice<2x11xf32, global>
        tile.yield
      }
    }
  }
}
