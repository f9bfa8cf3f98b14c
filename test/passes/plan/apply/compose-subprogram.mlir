// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-compose))' | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#t = affine_map<(d0, d1) -> (d1, d0)>
#line = affine_map<(d0) -> (d0)>

// In a subprogram the plan decides: the thread edge is inlined although exp is then computed twice, the block edge
// stays, and the placement and tilings of the consumer survive.
// CHECK-LABEL: func @thread_edges_only
// CHECK: tile.subprogram
// CHECK: %[[X:.+]] = tile.expr
// CHECK:   math.exp
// CHECK: %[[Y:.+]] = tile.expr domain [3, 5] reduce [](%[[IN:.+]]) maps {{.*}} dims [0, 1] tilings
// CHECK:   math.exp
// CHECK:   math.sqrt
// CHECK: %[[C:.+]] = tile.connect %[[X]] <block>
// CHECK-NOT: tile.connect
// CHECK: %[[Z:.+]] = tile.expr domain [3, 5] reduce [](%[[C]])
// CHECK: tile.yield %[[Y]], %[[Z]]
func.func @thread_edges_only(%a: tensor<5x3xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  %0:2 = tile.subprogram "k"(%a) extents [3, 5] tiles [3, 5] grid [] vector 1 workgroups 1 : (tensor<5x3xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  ^bb0(%in: tensor<5x3xf32>):
    %x = tile.expr domain [3, 5] reduce [](%in) maps [#t] guards [unit] into [#id] inits [] dims [0, 1] : (tensor<5x3xf32>) -> tensor<3x5xf32> {
    ^bb1(%e: f32):
      %v = math.exp %e : f32
      tile.yield %v : f32
    }
    %cy = tile.connect %x <thread> recompute : tensor<3x5xf32>
    %y = tile.expr domain [3, 5] reduce [](%cy) maps [#id] guards [unit] into [#id] inits [] dims [0, 1] tilings [#tile.tiling<thread, sizes = [1, 5], order = [0, 1]>] : (tensor<3x5xf32>) -> tensor<3x5xf32> {
    ^bb1(%e: f32):
      %v = math.sqrt %e : f32
      tile.yield %v : f32
    }
    %cz = tile.connect %x <block> : tensor<3x5xf32>
    %z = tile.expr domain [3, 5] reduce [](%cz) maps [#id] guards [unit] into [#id] inits [] dims [0, 1] : (tensor<3x5xf32>) -> tensor<3x5xf32> {
    ^bb1(%e: f32):
      %v = math.log %e : f32
      tile.yield %v : f32
    }
    tile.yield %y, %z : tensor<3x5xf32>, tensor<3x5xf32>
  }
  return %0#0, %0#1 : tensor<3x5xf32>, tensor<3x5xf32>
}

// A producer that is read along two ways is computed once. Its copies would double with each step of a chain.
// CHECK-LABEL: func @read_along_two_ways
// CHECK: tile.expr
// CHECK-SAME: (%{{.+}}) maps
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: %[[S:.+]] = arith.addf
// CHECK-NOT: arith.addf
// CHECK: arith.mulf %[[S]], %[[S]]
// CHECK-NOT: arith
// CHECK: tile.yield
func.func @read_along_two_ways(%a: tensor<5xf32>) -> tensor<5xf32> {
  %0 = tile.subprogram "k"(%a) extents [5] tiles [5] grid [] vector 0 workgroups 1 : (tensor<5xf32>) -> tensor<5xf32> {
  ^bb0(%in: tensor<5xf32>):
    %x = tile.expr domain [5] reduce [](%in) maps [#line] guards [unit] into [#line] inits [] dims [0] : (tensor<5xf32>) -> tensor<5xf32> {
    ^bb1(%e: f32):
      %v = math.exp %e : f32
      tile.yield %v : f32
    }
    %cs = tile.connect %x <thread> recompute : tensor<5xf32>
    %s = tile.expr domain [5] reduce [](%cs) maps [#line] guards [unit] into [#line] inits [] dims [0] : (tensor<5xf32>) -> tensor<5xf32> {
    ^bb1(%e: f32):
      %v = arith.addf %e, %e : f32
      tile.yield %v : f32
    }
    %ct = tile.connect %x <thread> recompute : tensor<5xf32>
    %t = tile.expr domain [5] reduce [](%ct) maps [#line] guards [unit] into [#line] inits [] dims [0] : (tensor<5xf32>) -> tensor<5xf32> {
    ^bb1(%e: f32):
      %v = arith.addf %e, %e : f32
      tile.yield %v : f32
    }
    %cys = tile.connect %s <thread> : tensor<5xf32>
    %cyt = tile.connect %t <thread> : tensor<5xf32>
    %y = tile.expr domain [5] reduce [](%cys, %cyt) maps [#line, #line] guards [unit, unit] into [#line] inits [] dims [0] : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32> {
    ^bb1(%e: f32, %f: f32):
      %v = arith.mulf %e, %f : f32
      tile.yield %v : f32
    }
    tile.yield %y : tensor<5xf32>
  }
  return %0 : tensor<5xf32>
}
