// RUN: tilewright-opt %s --tile-lower-to-program --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Softmax is three loop nests: the exponential and its sum share one, because the sum reads the element that the
// exponential has just computed. Two nests read the input, and the plan stages it, so the first one copies its row.
// CHECK-LABEL: tile.program @softmax outputs 1
// CHECK: ^bb0(%[[X:.*]]: !tile.slice<6x35xf32, global>, %[[Y:.*]]: !tile.slice<6x35xf32, global>)
// CHECK: tile.parallel [6] tiles [1] workgroups 2
// CHECK: ^bb0(%[[I:.*]]: index)
// CHECK: tile.compute [6, 35] sizes [1, 35] offsets [0](%[[I]]) vector 1 reduce [1] into(%[[M:.*]] : {{.*}}kinds ["maximumf"]
// CHECK:   %[[A:.*]] = tile.load %[[X]]
// CHECK:   tile.store %[[A]], %[[ROW:.*]] at
// CHECK: tile.sync <block>
// CHECK: tile.compute {{.*}} reduce [1] into(%[[S:.*]] : {{.*}}kinds ["add"]
// CHECK-NOT: tile.load %[[X]]
// CHECK:   tile.load %[[ROW]]
// CHECK:   %[[E:.*]] = math.exp
// CHECK:   tile.store %[[E]], %[[EXP:.*]] at
// CHECK:   arith.addf %[[E]]
// CHECK: tile.sync <block>
// CHECK: tile.compute {{.*}} reduce []
// CHECK:   tile.load %[[EXP]]
// CHECK:   tile.store {{.*}}, %[[Y]]
// CHECK: tile.launch @tilewright_kernels::@softmax
func.func @softmax(%x: tensor<6x35xf32>) -> tensor<6x35xf32> {
  %r = tile.subprogram "softmax" (%x) extents [6, 35] tiles [1, 35] grid [0] vector 1 workgroups 2
      {tile.staged = [#tile.lifetime<tile>]} : (tensor<6x35xf32>) -> tensor<6x35xf32> {
  ^bb0(%a: tensor<6x35xf32>):
    %m = tile.expr domain [6, 35] reduce [1] (%a) maps [#id] guards [unit] into [#row] inits [0xFF800000 : f32]
        dims [0, 1] : (tensor<6x35xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.maximumf %v, %acc : f32
      tile.yield %n : f32
    }
    %mc = tile.connect %m <block> : tensor<6xf32>
    %e = tile.expr domain [6, 35] reduce [] (%a, %mc) maps [#id, #row] guards [unit, unit] into [#id] inits []
        dims [0, 1] : (tensor<6x35xf32>, tensor<6xf32>) -> tensor<6x35xf32> {
    ^bb0(%v: f32, %max: f32):
      %d = arith.subf %v, %max : f32
      %n = math.exp %d : f32
      tile.yield %n : f32
    }
    %ec = tile.connect %e <block> : tensor<6x35xf32>
    %s = tile.expr domain [6, 35] reduce [1] (%ec) maps [#id] guards [unit] into [#row] inits [0.0 : f32]
        dims [0, 1] : (tensor<6x35xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    %sc = tile.connect %s <block> : tensor<6xf32>
    %y = tile.expr domain [6, 35] reduce [] (%ec, %sc) maps [#id, #row] guards [unit, unit] into [#id] inits []
        dims [0, 1] : (tensor<6x35xf32>, tensor<6xf32>) -> tensor<6x35xf32> {
    ^bb0(%v: f32, %sum: f32):
      %d = arith.divf %v, %sum : f32
      tile.yield %d : f32
    }
    tile.yield %y : tensor<6x35xf32>
  }
  return %r : tensor<6x35xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// A vector that the plan stages for a workgroup is copied once per workgroup, not once per row.
// CHECK-LABEL: tile.program @scale
// CHECK: ^bb0(%[[X:.*]]: !tile.slice<9x35xf32, global>, %[[G:.*]]: !tile.slice<35xf32, global>
// CHECK:   %[[LOCAL:.*]] = tile.alloc : <35xf32, block>
// CHECK:   tile.move %[[G]], %[[LOCAL]]
// CHECK: tile.walk
// CHECK-NOT: tile.load %[[G]]
// CHECK: tile.load %[[LOCAL]]
func.func @scale(%x: tensor<9x35xf32>, %g: tensor<35xf32>) -> tensor<9x35xf32> {
  %r = tile.subprogram "scale" (%x, %g) extents [9, 35] tiles [1, 35] grid [0] vector 1 workgroups 1
      {tile.staged = [#tile.lifetime<kernel>, #tile.lifetime<workgroup>]} : (tensor<9x35xf32>, tensor<35xf32>) -> tensor<9x35xf32> {
  ^bb0(%a: tensor<9x35xf32>, %b: tensor<35xf32>):
    %y = tile.expr domain [9, 35] reduce [] (%a, %b) maps [#id, #column] guards [unit, unit] into [#id] inits []
        dims [0, 1] : (tensor<9x35xf32>, tensor<35xf32>) -> tensor<9x35xf32> {
    ^bb0(%v: f32, %w: f32):
      %d = arith.mulf %v, %w : f32
      tile.yield %d : f32
    }
    tile.yield %y : tensor<9x35xf32>
  }
  return %r : tensor<9x35xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A sum of f16 with a wider accumulator is rounded when it is stored.
// CHECK-LABEL: tile.program @narrow_sum
// CHECK: tile.compute {{.*}} inits [0.000000e+00 : f32] kinds ["add"]
// CHECK: ^bb0(%[[ACC:.*]]: f32)
// CHECK: %[[V:.*]] = tile.load {{.*}} -> f16
// CHECK: %[[W:.*]] = arith.extf %[[V]] : f16 to f32
// CHECK: arith.addf %[[W]], %[[ACC]] : f32
func.func @narrow_sum(%x: tensor<6x35xf16>) -> tensor<6xf16> {
  %r = tile.subprogram "narrow_sum" (%x) extents [6, 35] tiles [1, 35] grid [0] vector 1 workgroups 1
      : (tensor<6x35xf16>) -> tensor<6xf16> {
  ^bb0(%a: tensor<6x35xf16>):
    %s = tile.expr domain [6, 35] reduce [1] (%a) maps [#id] guards [unit] into [#row] inits [0.0 : f32]
        dims [0, 1] : (tensor<6x35xf16>) -> tensor<6xf16> {
    ^bb0(%v: f16, %acc: f32):
      %w = arith.extf %v : f16 to f32
      %n = arith.addf %w, %acc : f32
      tile.yield %n : f32
    }
    tile.yield %s : tensor<6xf16>
  }
  return %r : tensor<6xf16>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Lanes cannot share a sum that is computed in order; a maximum does not depend on the order.
// CHECK-LABEL: tile.program @in_order
// CHECK: tile.compute {{.*}} kinds ["none", "maximumf"]
func.func @in_order(%x: tensor<6x35xf16>) -> (tensor<6xf16>, tensor<6xf16>) {
  %r:2 = tile.subprogram "in_order" (%x) extents [6, 35] tiles [1, 35] grid [0] vector 1 workgroups 1
      : (tensor<6x35xf16>) -> (tensor<6xf16>, tensor<6xf16>) {
  ^bb0(%a: tensor<6x35xf16>):
    %s:2 = tile.expr domain [6, 35] reduce [1] (%a) maps [#id] guards [unit] into [#row, #row]
        inits [0.0 : f16, 0xFC00 : f16] in_order dims [0, 1] : (tensor<6x35xf16>) -> (tensor<6xf16>, tensor<6xf16>) {
    ^bb0(%v: f16, %acc: f16, %max: f16):
      %n = arith.addf %v, %acc : f16
      %m = arith.maximumf %v, %max : f16
      tile.yield %n, %m : f16, f16
    }
    tile.yield %s#0, %s#1 : tensor<6xf16>, tensor<6xf16>
  }
  return %r#0, %r#1 : tensor<6xf16>, tensor<6xf16>
}

// -----

// An operand that tiles along the rows share is packed once for them: its buffer outlives a tile, and only the first of
// those tiles fills it.
// CHECK-LABEL: tile.program @turned
// CHECK: tile.parallel [3, 30] tiles [1, 6] workgroups 2
// CHECK: %[[T:.*]] = tile.alloc : <1x19x64xf32, block>
// CHECK: tile.walk
// CHECK: tile.keep along 1 {
// CHECK:   tile.compute
// CHECK:   tile.store %{{.*}}, %[[T]]
// CHECK: }
// CHECK: tile.sync <block>
// CHECK: tile.compute {{.*}}micro_kernel = "fma"
// CHECK:   tile.load %[[T]]
#rows = affine_map<(b, i, j, k) -> (b, i, k)>
#lanes = affine_map<(b, i, j, k) -> (b, k, j)>
#product = affine_map<(b, i, j, k) -> (b, i, j)>
func.func @turned(%q: tensor<3x30x19xf32>, %k: tensor<3x64x19xf32>) -> tensor<3x30x64xf32> {
  %r = tile.subprogram "turned" (%q, %k) extents [3, 30, 19, 64] tiles [1, 6, 19, 64] grid [0, 1] vector 3 workgroups 2
      : (tensor<3x30x19xf32>, tensor<3x64x19xf32>) -> tensor<3x30x64xf32> {
  ^bb0(%a: tensor<3x30x19xf32>, %c: tensor<3x64x19xf32>):
    %t = tile.expr domain [3, 19, 64] reduce [] (%c) maps [affine_map<(b, k, j) -> (b, j, k)>] guards [unit]
        into [affine_map<(b, k, j) -> (b, k, j)>] inits [] dims [0, 2, 3] : (tensor<3x64x19xf32>) -> tensor<3x19x64xf32> {
    ^bb0(%v: f32):
      tile.yield %v : f32
    }
    %tc = tile.connect %t <block> : tensor<3x19x64xf32>
    %m = tile.expr domain [3, 30, 64, 19] reduce [3] (%a, %tc) maps [#rows, #lanes] guards [unit, unit] into [#product]
        inits [0.0 : f32] dims [0, 1, 3, 2] {micro_kernel = "fma"} : (tensor<3x30x19xf32>, tensor<3x19x64xf32>) -> tensor<3x30x64xf32> {
    ^bb0(%u: f32, %v: f32, %acc: f32):
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
    tile.yield %m : tensor<3x30x64xf32>
  }
  return %r : tensor<3x30x64xf32>
}

// -----

// Behind a contraction, too, lanes are adjacent in buffers that no register block writes or reads.
// CHECK-LABEL: tile.program @pooled
// CHECK: tile.alloc : <8x16xf32, block>
// CHECK: %[[P:.*]] = tile.alloc : <4x16xf32, block>
// CHECK: tile.compute {{.*}}micro_kernel = "fma"
// CHECK: tile.compute [16, 4, 2] {{.*}} vector 0 reduce [2] into(%[[P]] : !tile.slice<4x16xf32, block>)
// CHECK: tile.load %[[P]] at #{{.*}} : <4x16xf32, block>
#pairs = affine_map<(h, r, j) -> (h * 2 + r, j)>
#ofPairs = affine_map<(h, r, j) -> (j, h)>
#both = affine_map<(j, h) -> (j, h)>
func.func @pooled(%x: tensor<8x19xf32>, %w: tensor<19x16xf32>) -> tensor<16x4xf32> {
  %r = tile.subprogram "pooled" (%x, %w) extents [8, 19, 16, 4, 2] tiles [8, 19, 16, 4, 2] grid [2] vector 2 workgroups 1
      : (tensor<8x19xf32>, tensor<19x16xf32>) -> tensor<16x4xf32> {
  ^bb0(%a: tensor<8x19xf32>, %b: tensor<19x16xf32>):
    %m = tile.expr domain [8, 16, 19] reduce [2] (%a, %b) maps [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>]
        guards [unit, unit] into [affine_map<(i, j, k) -> (i, j)>] inits [0.0 : f32] dims [0, 2, 1] {micro_kernel = "fma"}
        : (tensor<8x19xf32>, tensor<19x16xf32>) -> tensor<8x16xf32> {
    ^bb0(%u: f32, %v: f32, %acc: f32):
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
    %mc = tile.connect %m <block> : tensor<8x16xf32>
    %p = tile.expr domain [4, 2, 16] reduce [1] (%mc) maps [#pairs] guards [unit] into [#ofPairs] inits [0xFF800000 : f32]
        dims [3, 4, 2] : (tensor<8x16xf32>) -> tensor<16x4xf32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.maximumf %v, %acc : f32
      tile.yield %n : f32
    }
    %pc = tile.connect %p <block> : tensor<16x4xf32>
    %e = tile.expr domain [16, 4] reduce [] (%pc) maps [#both] guards [unit] into [#both] inits [] dims [2, 3]
        : (tensor<16x4xf32>) -> tensor<16x4xf32> {
    ^bb0(%v: f32):
      %n = math.exp %v : f32
      tile.yield %n : f32
    }
    tile.yield %e : tensor<16x4xf32>
  }
  return %r : tensor<16x4xf32>
}

// -----

// A module without subprograms stays as it is.
// CHECK-LABEL: func.func @leaves_alone
// CHECK-NEXT: return
// CHECK-NOT: module @tilewright_kernels
func.func @leaves_alone(%x: tensor<7xf32>) -> tensor<7xf32> {
  return %x : tensor<7xf32>
}
