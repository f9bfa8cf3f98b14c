// RUN: tilewright-opt %s --tile-verify-planned --tile-lower-to-program=target=x86-64-avx512 | FileCheck %s

#scores = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#weights = affine_map<(i, j, n) -> (i, j)>
#values = affine_map<(i, j, n) -> (j, n)>
#out = affine_map<(i, j, n) -> (i, n)>

// The kernel walks blocks of 32 of the 77 columns: each gives its maximum, then the maximum so far and the factor for
// the blocks before, then exponentials relative to it, and their sums, which are added to the rescaled ones. The
// division comes after the last block.
// CHECK-LABEL: tile.program @attention outputs 1
// CHECK: ^bb0(%[[X:.*]]: !tile.slice<6x77xf32, global>, %[[V:.*]]: !tile.slice<77x5xf32, global>, %[[Y:.*]]: !tile.slice
// CHECK: tile.compute [6] sizes [3]
// CHECK:   0xFF800000
// CHECK:   tile.store %{{.*}}, %[[M:.*]] at
// CHECK: tile.compute [6] sizes [3]
// CHECK:   tile.store %{{.*}}, %[[S:.*]] at
// CHECK: tile.compute [6, 5] sizes [3, 5]
// CHECK:   tile.store %{{.*}}, %[[O:.*]] at
// CHECK: %[[EXTENT:.*]] = arith.constant 77 : index
// CHECK: %[[TILE:.*]] = arith.constant 32 : index
// CHECK: scf.for %[[AT:.*]] = %{{.*}} to %[[EXTENT]] step %[[TILE]] {
// CHECK:   tile.compute [6, 77] sizes [3, 32] offsets [0, 1](%{{.*}}, %[[AT]]) {{.*}} into(%[[BLOCK:[0-9a-z]*]] : {{.*}} kinds ["maximumf"]
// CHECK:   tile.compute [6] sizes [3]
// CHECK:     %[[OLD:.*]] = tile.load %[[M]]
// CHECK:     %[[OF:.*]] = tile.load %[[BLOCK]]
// CHECK:     %[[NOW:.*]] = arith.maximumf %[[OLD]], %[[OF]]
// CHECK:     %[[GROWN:.*]] = arith.subf %[[OLD]], %[[NOW]]
// CHECK:     math.exp %[[GROWN]]
// CHECK:     tile.store %[[NOW]], %[[M]]
// CHECK:     tile.store %{{.*}}, %[[FACTOR:.*]] at
// CHECK:     tile.store %{{.*}}, %[[REFERENCE:.*]] at
// CHECK:   tile.compute [6, 77] sizes [3, 32]
// CHECK:     tile.load %[[REFERENCE]]
// CHECK:     math.exp
// CHECK:     tile.store %{{.*}} : f32, <3x32xf32, block>
// CHECK:   tile.compute [6] sizes [3]
// CHECK:     %[[SUM:.*]] = tile.load %[[S]]
// CHECK:     %[[F:.*]] = tile.load %[[FACTOR]]
// CHECK:     arith.mulf %[[SUM]], %[[F]]
// CHECK:     arith.addf
// CHECK:     tile.store %{{.*}}, %[[S]]
// CHECK:   tile.compute [6, 77, 5] sizes [3, 32, 5] {{.*}}micro_kernel = "fma-6x4"
// CHECK:   tile.compute [6, 5] sizes [3, 5]
// CHECK:     %[[SUM:.*]] = tile.load %[[O]]
// CHECK:     %[[F:.*]] = tile.load %[[FACTOR]]
// CHECK:     arith.mulf %[[SUM]], %[[F]]
// CHECK:     tile.store %{{.*}}, %[[O]]
// CHECK: }
// A row of masked elements alone is NaN.
// CHECK: 0x7FC00000
// CHECK: arith.divf
func.func @attention(%x: tensor<6x77xf32>, %v: tensor<77x5xf32>) -> tensor<6x5xf32> {
  %r = tile.subprogram "attention" (%x, %v) extents [6, 77, 5] tiles [3, 32, 5] grid [0] vector 2 workgroups 2
      numerics <relaxed, fast, forms = ["online softmax of blocks"]>
      : (tensor<6x77xf32>, tensor<77x5xf32>) -> tensor<6x5xf32> {
  ^bb0(%a: tensor<6x77xf32>, %b: tensor<77x5xf32>):
    %m = tile.expr domain [6, 77] reduce [1] (%a) maps [#scores] guards [unit] into [#row] inits [0xFF800000 : f32]
        dims [0, 1] : (tensor<6x77xf32>) -> tensor<6xf32> {
    ^bb0(%s: f32, %acc: f32):
      %n = arith.maximumf %s, %acc : f32
      tile.yield %n : f32
    }
    %mc = tile.connect %m <block> : tensor<6xf32>
    %e = tile.expr domain [6, 77] reduce [] (%a, %mc) maps [#scores, #row] guards [unit, unit] into [#scores] inits []
        dims [0, 1] : (tensor<6x77xf32>, tensor<6xf32>) -> tensor<6x77xf32> {
    ^bb0(%s: f32, %max: f32):
      %d = arith.subf %s, %max : f32
      %n = math.exp %d : f32
      tile.yield %n : f32
    }
    %ec = tile.connect %e <block> : tensor<6x77xf32>
    %s = tile.expr domain [6, 77] reduce [1] (%ec) maps [#scores] guards [unit] into [#row] inits [0.0 : f32]
        dims [0, 1] : (tensor<6x77xf32>) -> tensor<6xf32> {
    ^bb0(%w: f32, %acc: f32):
      %n = arith.addf %w, %acc : f32
      tile.yield %n : f32
    }
    %sc = tile.connect %s <block> : tensor<6xf32>
    %o = tile.expr domain [6, 77, 5] reduce [1] (%ec, %b) maps [#weights, #values] guards [unit, unit] into [#out]
        inits [0.0 : f32] dims [0, 1, 2] {micro_kernel = "fma-6x4"}
        : (tensor<6x77xf32>, tensor<77x5xf32>) -> tensor<6x5xf32> {
    ^bb0(%w: f32, %u: f32, %acc: f32):
      %p = arith.mulf %w, %u : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
    %oc = tile.connect %o <block> : tensor<6x5xf32>
    %y = tile.expr domain [6, 5] reduce [] (%oc, %sc) maps [#scores, #row] guards [unit, unit] into [#scores] inits []
        dims [0, 2] : (tensor<6x5xf32>, tensor<6xf32>) -> tensor<6x5xf32> {
    ^bb0(%w: f32, %sum: f32):
      %q = arith.divf %w, %sum : f32
      tile.yield %q : f32
    }
    tile.yield %y : tensor<6x5xf32>
  }
  return %r : tensor<6x5xf32>
}

// Rows from AT on read up to column 2 row + 4: blocks behind the bound of the last row are left out.
// CHECK-LABEL: tile.program @counted outputs 1
// CHECK: ^bb0(%[[ROW:.*]]: index):
// CHECK: %[[EXTENT:.*]] = arith.constant 77 : index
// CHECK: %[[FIRST:.*]] = arith.constant 9 : index
// CHECK: %[[TWO:.*]] = arith.constant 2 : index
// CHECK: %[[MORE:.*]] = arith.muli %[[ROW]], %[[TWO]]
// CHECK: %[[END:.*]] = arith.addi %[[FIRST]], %[[MORE]]
// CHECK: %[[LEAST:.*]] = arith.minsi %[[END]], %[[EXTENT]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[LEAST]] step %{{.*}} {
func.func @counted(%x: tensor<6x77xf32>, %v: tensor<77x5xf32>) -> tensor<6x5xf32> {
  %r = tile.subprogram "counted" (%x, %v) extents [6, 77, 5] tiles [3, 32, 5] grid [0] vector 2 workgroups 2
      numerics <relaxed, fast, forms = ["online softmax with a causal bound"]> {tile.counted = affine_map<(i, j, n) -> (i * 2 + 5)>}
      : (tensor<6x77xf32>, tensor<77x5xf32>) -> tensor<6x5xf32> {
  ^bb0(%a: tensor<6x77xf32>, %b: tensor<77x5xf32>):
    %m = tile.expr domain [6, 77] reduce [1] (%a) maps [#scores] guards [unit] into [#row] inits [0xFF800000 : f32]
        dims [0, 1] : (tensor<6x77xf32>) -> tensor<6xf32> {
    ^bb0(%s: f32, %acc: f32):
      %n = arith.maximumf %s, %acc : f32
      tile.yield %n : f32
    }
    %mc = tile.connect %m <block> : tensor<6xf32>
    %e = tile.expr domain [6, 77] reduce [] (%a, %mc) maps [#scores, #row] guards [unit, unit] into [#scores] inits []
        dims [0, 1] : (tensor<6x77xf32>, tensor<6xf32>) -> tensor<6x77xf32> {
    ^bb0(%s: f32, %max: f32):
      %d = arith.subf %s, %max : f32
      %n = math.exp %d : f32
      tile.yield %n : f32
    }
    %ec = tile.connect %e <block> : tensor<6x77xf32>
    %s = tile.expr domain [6, 77] reduce [1] (%ec) maps [#scores] guards [unit] into [#row] inits [0.0 : f32]
        dims [0, 1] : (tensor<6x77xf32>) -> tensor<6xf32> {
    ^bb0(%w: f32, %acc: f32):
      %n = arith.addf %w, %acc : f32
      tile.yield %n : f32
    }
    %sc = tile.connect %s <block> : tensor<6xf32>
    %o = tile.expr domain [6, 77, 5] reduce [1] (%ec, %b) maps [#weights, #values] guards [unit, unit] into [#out]
        inits [0.0 : f32] dims [0, 1, 2] {micro_kernel = "fma-6x4"}
        : (tensor<6x77xf32>, tensor<77x5xf32>) -> tensor<6x5xf32> {
    ^bb0(%w: f32, %u: f32, %acc: f32):
      %p = arith.mulf %w, %u : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
    %oc = tile.connect %o <block> : tensor<6x5xf32>
    %y = tile.expr domain [6, 5] reduce [] (%oc, %sc) maps [#scores, #row] guards [unit, unit] into [#scores] inits []
        dims [0, 2] : (tensor<6x5xf32>, tensor<6xf32>) -> tensor<6x5xf32> {
    ^bb0(%w: f32, %sum: f32):
      %q = arith.divf %w, %sum : f32
      tile.yield %q : f32
    }
    tile.yield %y : tensor<6x5xf32>
  }
  return %r : tensor<6x5xf32>
}
