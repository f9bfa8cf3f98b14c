// RUN: tilewright-opt %s | tilewright-opt | FileCheck %s
// RUN: tilewright-opt %s --mlir-print-op-generic | tilewright-opt | FileCheck %s

// The parser and the printer take every op, attribute and type of the dialect, in its own form and in the generic one.

// CHECK-DAG: #[[$ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$SUM:.*]] = affine_map<(d0, d1) -> (d0 + d1)>
// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[$INNER:.*]] = affine_set<(d0, d1) : (d1 - 1 >= 0)>
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#inner = affine_set<(i, j) : (j - 1 >= 0)>
#shift = affine_map<(i, j) -> (i, j - 1)>

// CHECK-LABEL: func @planned_graph
func.func @planned_graph(%x: tensor<6x35xf32>) -> tensor<6x35xf32> {
  // CHECK: tile.subprogram "k"(%{{.*}}) extents [6, 35] tiles [1, 35] grid [0] vector 1 workgroups 2 target <"x86-64-avx2", {cores = 3 : i64}>
  %r = tile.subprogram "k" (%x) extents [6, 35] tiles [1, 35] grid [0] vector 1 workgroups 2
      target <"x86-64-avx2", {cores = 3}> : (tensor<6x35xf32>) -> tensor<6x35xf32> {
  ^bb0(%a: tensor<6x35xf32>):
    // CHECK: tile.expr domain [6, 35] reduce [1](%{{.*}}) maps [#[[$ID]]] guards [#[[$INNER]]] into [#[[$ROW]]] inits [0.000000e+00 : f32] dims [0, 1] tilings [#tile.tiling<block, sizes = [1, 35], order = [0, 1]>]
    %s = tile.expr domain [6, 35] reduce [1] (%a) maps [#id] guards [#inner] into [#row] inits [0.0 : f32] dims [0, 1]
        tilings [#tile.tiling<block, sizes = [1, 35], order = [0, 1]>] : (tensor<6x35xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %acc: f32):
      // CHECK: tile.index #[[$SUM]]
      %i = tile.index affine_map<(i, j) -> (i + j)>
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    // CHECK: tile.connect %{{.*}} <block> : tensor<6xf32>
    %sc = tile.connect %s <block> : tensor<6xf32>
    // CHECK: tile.connect %{{.*}} <thread> recompute : tensor<6xf32>
    %tc = tile.connect %s <thread> recompute : tensor<6xf32>
    // CHECK: tile.expr domain [6, 35] reduce [](%{{.*}}, %{{.*}}) maps {{.*}} guards [unit, #[[$INNER]]]
    %y = tile.expr domain [6, 35] reduce [] (%sc, %a) maps [#row, #shift] guards [unit, #inner] into [#id] inits []
        dims [0, 1] : (tensor<6xf32>, tensor<6x35xf32>) -> tensor<6x35xf32> {
    ^bb0(%v: f32, %w: f32):
      // CHECK: tile.within #[[$INNER]]
      %in = tile.within #inner
      %n = arith.select %in, %v, %w : f32
      // CHECK: tile.yield %{{.*}} : f32
      tile.yield %n : f32
    }
    tile.yield %y : tensor<6x35xf32>
  }
  return %r : tensor<6x35xf32>
}

// CHECK-LABEL: func @table
func.func @table(%x: tensor<9x5xf32>, %at: tensor<4xi64>) -> tensor<4x5xf32> {
  %r = tile.expr domain [4, 5] reduce [] (%x, %at) maps [affine_map<(i, j) -> (0, j)>, #row] guards [unit, unit] into [#id] inits []
      : (tensor<9x5xf32>, tensor<4xi64>) -> tensor<4x5xf32> {
  ^bb0(%t: tensor<9x5xf32>, %k: i64):
    %i = arith.index_cast %k : i64 to index
    %j = tile.index affine_map<(i, j) -> (j)>
    // CHECK: tile.gather %{{.*}}[%{{.*}}, %{{.*}}] : tensor<9x5xf32> -> f32
    %v = tile.gather %t[%i, %j] : tensor<9x5xf32> -> f32
    tile.yield %v : f32
  }
  return %r : tensor<4x5xf32>
}

// CHECK-LABEL: func @numerics
func.func @numerics(%x: tensor<6x35xbf16>) -> tensor<6xbf16> {
  // CHECK: workgroups 1 numerics <relaxed, fast, forms = ["two-moment variance"]>
  %r = tile.subprogram "n" (%x) extents [6, 35] tiles [1, 35] grid [0] vector 1 workgroups 1
      numerics <relaxed, fast, forms = ["two-moment variance"]> : (tensor<6x35xbf16>) -> tensor<6xbf16> {
  ^bb0(%a: tensor<6x35xbf16>):
    // CHECK: tile.connect %{{.*}} <thread> unrounded : tensor<6x35xbf16>
    %c = tile.connect %a <thread> unrounded : tensor<6x35xbf16>
    // CHECK: inits [0.000000e+00 : f32] in_order dims [0, 1] : (tensor<6x35xbf16>) -> tensor<6xbf16>
    %s = tile.expr domain [6, 35] reduce [1] (%c) maps [#id] guards [unit] into [#row] inits [0.0 : f32] in_order
        dims [0, 1] : (tensor<6x35xbf16>) -> tensor<6xbf16> {
    // CHECK: ^bb0(%{{.*}}: bf16, %{{.*}}: f32):
    ^bb0(%v: bf16, %acc: f32):
      %w = arith.extf %v : bf16 to f32
      %n = arith.addf %w, %acc : f32
      tile.yield %n : f32
    }
    tile.yield %s : tensor<6xbf16>
  }
  return %r : tensor<6xbf16>
}

// CHECK-LABEL: module @kernels
module @kernels {
  // CHECK: tile.program @k outputs 1 target <"cpu">
  tile.program @k outputs 1 target <"cpu"> {
  // CHECK: ^bb0(%{{.*}}: !tile.slice<6x35xf32, global>, %{{.*}}: !tile.slice<6x35xf32, global>)
  ^bb0(%x: !tile.slice<6x35xf32, global>, %y: !tile.slice<6x35xf32, global>):
    // CHECK: tile.parallel [6] tiles [1] workgroups 2
    tile.parallel [6] tiles [1] workgroups 2 {
      // CHECK: tile.alloc : <6x35xf32, block>
      %whole = tile.alloc : !tile.slice<6x35xf32, block>
      // CHECK: tile.move %{{.*}}, %{{.*}} : <6x35xf32, global>, <6x35xf32, block>
      tile.move %x, %whole : !tile.slice<6x35xf32, global>, !tile.slice<6x35xf32, block>
      // CHECK: tile.walk
      tile.walk {
      ^bb0(%i: index):
        // CHECK: tile.alloc at 896 : <1xf32, block>
        %s = tile.alloc at 896 : !tile.slice<1xf32, block>
        // CHECK: tile.compute [6, 35] sizes [1, 35] offsets [0](%{{.*}}) vector 1 reduce [1] into(%{{.*}} : !tile.slice<1xf32, block>) at {{.*}} inits [0.000000e+00 : f32] kinds ["add"]
        tile.compute [6, 35] sizes [1, 35] offsets [0] (%i) vector 1 reduce [1]
            into (%s : !tile.slice<1xf32, block>) at [affine_map<(i, j)[oi, oj] -> (i - oi)>] inits [0.0 : f32]
            kinds ["add"] {
        ^bb0(%acc: f32):
          // CHECK: tile.load %{{.*}} at {{.*}} guard {{.*}} : <6x35xf32, block> -> f32
          %v = tile.load %whole at affine_map<(i, j)[oi, oj] -> (i, j)>
              guard affine_set<(i, j)[oi, oj] : (j - 1 >= 0)> : !tile.slice<6x35xf32, block> -> f32
          %n = arith.addf %v, %acc : f32
          tile.yield %n : f32
        }
        // CHECK: tile.sync <block>
        tile.sync <block>
        // CHECK: tile.compute [6, 35] sizes [1, 35] offsets [0](%{{.*}}) vector 1 reduce []
        // CHECK-NOT: into
        tile.compute [6, 35] sizes [1, 35] offsets [0] (%i) vector 1 reduce [] {
          %v = tile.load %s at affine_map<(i, j)[oi, oj] -> (i - oi)> : !tile.slice<1xf32, block> -> f32
          // CHECK: tile.store %{{.*}}, %{{.*}} at {{.*}} : f32, <6x35xf32, global>
          tile.store %v, %y at affine_map<(i, j)[oi, oj] -> (i, j)> : f32, !tile.slice<6x35xf32, global>
          tile.yield
        }
      }
    }
  }
}

// CHECK-LABEL: func @launches
func.func @launches(%x: tensor<6x35xf32>) -> tensor<6x35xf32> {
  // CHECK: tile.launch @kernels::@k(%{{.*}}) : (tensor<6x35xf32>) -> tensor<6x35xf32>
  %y = tile.launch @kernels::@k(%x) : (tensor<6x35xf32>) -> tensor<6x35xf32>
  return %y : tensor<6x35xf32>
}

// The op has every scope and memory space, and a slice with strides.
// CHECK-LABEL: func private @attributes
// CHECK-SAME: scopes = [#tile.scope<thread>, #tile.scope<warp>, #tile.scope<block>, #tile.scope<cluster>, #tile.scope<grid>, #tile.scope<launch>, #tile.scope<host>]
// CHECK-SAME: spaces = [#tile.space<register>, #tile.space<block>, #tile.space<cluster>, #tile.space<global>, #tile.space<host>]
func.func private @attributes(!tile.slice<4x16xf32, global, strides [512, 1]>) attributes {
  scopes = [#tile.scope<thread>, #tile.scope<warp>, #tile.scope<block>, #tile.scope<cluster>, #tile.scope<grid>,
            #tile.scope<launch>, #tile.scope<host>],
  spaces = [#tile.space<register>, #tile.space<block>, #tile.space<cluster>, #tile.space<global>, #tile.space<host>]}
