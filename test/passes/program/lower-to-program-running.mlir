// RUN: tilewright-opt %s --tile-lower-to-program=target=x86-64-avx512 --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// With the online softmax, the maximum, the exponential and the sum share a nest, so nothing is staged. The references
// are stored block by block, turned into factors, and multiplied where the exponential is read.
// CHECK-LABEL: tile.program @softmax outputs 1
// CHECK: ^bb0(%[[X:.*]]: !tile.slice<6x600xf32, global>, %[[Y:.*]]: !tile.slice<6x600xf32, global>)
// CHECK: tile.compute [6, 600] {{.*}} reduce [1] into(%[[M:.*]], %[[S:.*]] : {{.*}} kinds ["maximumf", "add"] running <0 every 128>
// CHECK:   %[[V:.*]] = tile.load %[[X]]
// CHECK:   %[[N:.*]] = arith.maximumf %[[V]]
// CHECK:   tile.store %[[N]], %[[REFERENCES:.*]] at #[[BLOCK:.*]] : f32, <1x5xf32, block>
// CHECK:   %[[D:.*]] = arith.subf %[[V]], %[[N]]
// CHECK:   %[[E:.*]] = math.exp %[[D]]
// CHECK:   tile.store %[[E]], %[[EXP:.*]] at
// CHECK:   arith.addf %[[E]]
// CHECK: tile.sync <block>
// CHECK: tile.compute [6, 5] sizes [1, 5] {{.*}} vector 1 reduce []
// CHECK:   tile.load %[[REFERENCES]]
// CHECK:   tile.load %[[M]]
// CHECK:   math.exp
// CHECK:   tile.store {{.*}}, %[[REFERENCES]]
// CHECK: tile.sync <block>
// CHECK: tile.compute [6, 600] {{.*}} reduce []
// CHECK:   %[[R:.*]] = tile.load %[[EXP]]
// CHECK:   %[[F:.*]] = tile.load %[[REFERENCES]] at #[[BLOCK]]
// CHECK:   %[[C:.*]] = arith.mulf %[[R]], %[[F]]
// CHECK:   arith.divf %[[C]]
func.func @softmax(%x: tensor<6x600xf32>) -> tensor<6x600xf32> {
  %r = tile.subprogram "softmax" (%x) extents [6, 600] tiles [1, 600] grid [0] vector 1 workgroups 2
      numerics <relaxed, fast, forms = ["online softmax"]> : (tensor<6x600xf32>) -> tensor<6x600xf32> {
  ^bb0(%a: tensor<6x600xf32>):
    %m = tile.expr domain [6, 600] reduce [1] (%a) maps [#id] guards [unit] into [#row] inits [0xFF800000 : f32]
        dims [0, 1] : (tensor<6x600xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.maximumf %v, %acc : f32
      tile.yield %n : f32
    }
    %mc = tile.connect %m <block> : tensor<6xf32>
    %e = tile.expr domain [6, 600] reduce [] (%a, %mc) maps [#id, #row] guards [unit, unit] into [#id] inits []
        dims [0, 1] : (tensor<6x600xf32>, tensor<6xf32>) -> tensor<6x600xf32> {
    ^bb0(%v: f32, %max: f32):
      %d = arith.subf %v, %max : f32
      %n = math.exp %d : f32
      tile.yield %n : f32
    }
    %ec = tile.connect %e <block> : tensor<6x600xf32>
    %s = tile.expr domain [6, 600] reduce [1] (%ec) maps [#id] guards [unit] into [#row] inits [0.0 : f32]
        dims [0, 1] : (tensor<6x600xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    %sc = tile.connect %s <block> : tensor<6xf32>
    %y = tile.expr domain [6, 600] reduce [] (%ec, %sc) maps [#id, #row] guards [unit, unit] into [#id] inits []
        dims [0, 1] : (tensor<6x600xf32>, tensor<6xf32>) -> tensor<6x600xf32> {
    ^bb0(%v: f32, %sum: f32):
      %d = arith.divf %v, %sum : f32
      tile.yield %d : f32
    }
    tile.yield %y : tensor<6x600xf32>
  }
  return %r : tensor<6x600xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A value that leaves the kernel must be relative to the final maximum when it is stored, with any form.
// CHECK-LABEL: tile.program @leaving_exponentials_wait
// CHECK: tile.compute {{.*}} kinds ["maximumf"]
// CHECK-NOT: running
// CHECK: tile.sync <block>
// CHECK: tile.compute {{.*}} reduce []
// CHECK:   math.exp
func.func @leaving_exponentials_wait(%x: tensor<6x600xf32>) -> tensor<6x600xf32> {
  %r = tile.subprogram "leaving_exponentials_wait" (%x) extents [6, 600] tiles [1, 600] grid [0] vector 1 workgroups 2
      numerics <relaxed, fast, forms = ["online softmax"]> : (tensor<6x600xf32>) -> tensor<6x600xf32> {
  ^bb0(%a: tensor<6x600xf32>):
    %m = tile.expr domain [6, 600] reduce [1] (%a) maps [#id] guards [unit] into [#row] inits [0xFF800000 : f32]
        dims [0, 1] : (tensor<6x600xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.maximumf %v, %acc : f32
      tile.yield %n : f32
    }
    %mc = tile.connect %m <block> : tensor<6xf32>
    %e = tile.expr domain [6, 600] reduce [] (%a, %mc) maps [#id, #row] guards [unit, unit] into [#id] inits []
        dims [0, 1] : (tensor<6x600xf32>, tensor<6xf32>) -> tensor<6x600xf32> {
    ^bb0(%v: f32, %max: f32):
      %d = arith.subf %v, %max : f32
      %n = math.exp %d : f32
      tile.yield %n : f32
    }
    tile.yield %e : tensor<6x600xf32>
  }
  return %r : tensor<6x600xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Without the form in its numerics, a kernel reads the row again when the maximum is known.
// CHECK-LABEL: tile.program @only_where_declared
// CHECK: tile.compute {{.*}} kinds ["maximumf"]
// CHECK-NOT: running
// CHECK: tile.compute {{.*}} kinds ["add"]
func.func @only_where_declared(%x: tensor<6x600xf32>) -> tensor<6xf32> {
  %r = tile.subprogram "only_where_declared" (%x) extents [6, 600] tiles [1, 600] grid [0] vector 1 workgroups 2
      numerics <kept, accurate> : (tensor<6x600xf32>) -> tensor<6xf32> {
  ^bb0(%a: tensor<6x600xf32>):
    %m = tile.expr domain [6, 600] reduce [1] (%a) maps [#id] guards [unit] into [#row] inits [0xFF800000 : f32]
        dims [0, 1] : (tensor<6x600xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %acc: f32):
      %n = arith.maximumf %v, %acc : f32
      tile.yield %n : f32
    }
    %mc = tile.connect %m <block> : tensor<6xf32>
    %s = tile.expr domain [6, 600] reduce [1] (%a, %mc) maps [#id, #row] guards [unit, unit] into [#row]
        inits [0.0 : f32] dims [0, 1] : (tensor<6x600xf32>, tensor<6xf32>) -> tensor<6xf32> {
    ^bb0(%v: f32, %max: f32, %acc: f32):
      %d = arith.subf %v, %max : f32
      %n = math.exp %d : f32
      %t = arith.addf %n, %acc : f32
      tile.yield %t : f32
    }
    tile.yield %s : tensor<6xf32>
  }
  return %r : tensor<6xf32>
}
