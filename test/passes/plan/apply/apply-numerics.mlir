// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-apply-numerics))' --split-input-file | FileCheck %s

#id = affine_map<(i) -> (i)>

// With strict rounding, each operation extends its operands and rounds its result; divisions stay divisions.
// CHECK-LABEL: func @rounds_after_each_operation
// CHECK: ^bb0(%[[A:.*]]: bf16, %[[B:.*]]: bf16):
// CHECK-DAG: %[[AW:.*]] = arith.extf %[[A]] : bf16 to f32
// CHECK-DAG: %[[BW:.*]] = arith.extf %[[B]] : bf16 to f32
// CHECK: %[[M:.*]] = arith.mulf %[[AW]], %[[BW]] : f32
// CHECK: %[[MR:.*]] = arith.truncf %[[M]] : f32 to bf16
// CHECK: %[[MW:.*]] = arith.extf %[[MR]] : bf16 to f32
// CHECK: %[[D:.*]] = arith.divf %[[MW]], %[[BW]] : f32
// CHECK: %[[DR:.*]] = arith.truncf %[[D]] : f32 to bf16
// CHECK: tile.yield %[[DR]] : bf16
func.func @rounds_after_each_operation(%x: tensor<7xbf16>, %y: tensor<7xbf16>) -> tensor<7xbf16> {
  %r = tile.subprogram "k" (%x, %y) extents [7] tiles [7] grid [0] vector 0 workgroups 1 numerics <kept, accurate>
      : (tensor<7xbf16>, tensor<7xbf16>) -> tensor<7xbf16> {
  ^bb0(%s: tensor<7xbf16>, %t: tensor<7xbf16>):
    %e = tile.expr domain [7] reduce [] (%s, %t) maps [#id, #id] guards [unit, unit] into [#id] inits [] dims [0]
        : (tensor<7xbf16>, tensor<7xbf16>) -> tensor<7xbf16> {
    ^bb0(%a: bf16, %b: bf16):
      %m = arith.mulf %a, %b : bf16
      %d = arith.divf %m, %b : bf16
      tile.yield %d : bf16
    }
    tile.yield %e : tensor<7xbf16>
  }
  return %r : tensor<7xbf16>
}

// -----

#id = affine_map<(i) -> (i)>

// A conversion to another narrow type rounds a value that was not rounded before.
// CHECK-LABEL: func @converts
// CHECK: %[[M:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: %[[R:.*]] = arith.truncf %[[M]] : f32 to f16
// CHECK-NEXT: tile.yield %[[R]] : f16
func.func @converts(%x: tensor<7xbf16>) -> tensor<7xf16> {
  %r = tile.subprogram "k" (%x) extents [7] tiles [7] grid [0] vector 0 workgroups 1 numerics <relaxed, fast>
      : (tensor<7xbf16>) -> tensor<7xf16> {
  ^bb0(%s: tensor<7xbf16>):
    %e = tile.expr domain [7] reduce [] (%s) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<7xbf16>) -> tensor<7xf16> {
    ^bb0(%a: bf16):
      %m = arith.mulf %a, %a : bf16
      %w = arith.extf %m : bf16 to f32
      %h = arith.truncf %w : f32 to f16
      tile.yield %h : f16
    }
    tile.yield %e : tensor<7xf16>
  }
  return %r : tensor<7xf16>
}

// -----

#id = affine_map<(i) -> (i)>

// With relaxed rounding, only stored values are rounded. Fast math may multiply by a reciprocal.
// CHECK-LABEL: func @rounds_once
// CHECK: %[[M:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NOT: arith.truncf
// CHECK: %[[D:.*]] = arith.divf %[[M]], %{{.*}} fastmath<arcp> : f32
// CHECK: %[[DR:.*]] = arith.truncf %[[D]] : f32 to bf16
// CHECK: tile.yield %[[DR]] : bf16
func.func @rounds_once(%x: tensor<7xbf16>, %y: tensor<7xbf16>) -> tensor<7xbf16> {
  %r = tile.subprogram "k" (%x, %y) extents [7] tiles [7] grid [0] vector 0 workgroups 1 numerics <relaxed, fast>
      : (tensor<7xbf16>, tensor<7xbf16>) -> tensor<7xbf16> {
  ^bb0(%s: tensor<7xbf16>, %t: tensor<7xbf16>):
    %e = tile.expr domain [7] reduce [] (%s, %t) maps [#id, #id] guards [unit, unit] into [#id] inits [] dims [0]
        : (tensor<7xbf16>, tensor<7xbf16>) -> tensor<7xbf16> {
    ^bb0(%a: bf16, %b: bf16):
      %m = arith.mulf %a, %b : bf16
      %d = arith.divf %m, %b : bf16
      tile.yield %d : bf16
    }
    tile.yield %e : tensor<7xbf16>
  }
  return %r : tensor<7xbf16>
}

// -----

#id = affine_map<(i) -> (i)>

// A division by a constant becomes a multiplication by its reciprocal, unless that would be subnormal.
// CHECK-LABEL: func @divides_by_constants
// CHECK: %[[R:.*]] = arith.constant 0.707106769 : f32
// CHECK: arith.mulf %{{.*}}, %[[R]] : f32
// CHECK: arith.divf
func.func @divides_by_constants(%x: tensor<7xf32>) -> tensor<7xf32> {
  %r = tile.subprogram "k" (%x) extents [7] tiles [7] grid [0] vector 0 workgroups 1 numerics <relaxed, fast>
      : (tensor<7xf32>) -> tensor<7xf32> {
  ^bb0(%s: tensor<7xf32>):
    %e = tile.expr domain [7] reduce [] (%s) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<7xf32>) -> tensor<7xf32> {
    ^bb0(%a: f32):
      %root = arith.constant 1.41421354 : f32
      %most = arith.constant 3.0e+38 : f32
      %d = arith.divf %a, %root : f32
      %q = arith.divf %d, %most : f32
      tile.yield %q : f32
    }
    tile.yield %e : tensor<7xf32>
  }
  return %r : tensor<7xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// Rounding to integers and comparing two values need the values as the graph rounds them.
// CHECK-LABEL: func @keeps_roundings_that_decide
// CHECK: %[[M:.*]] = arith.mulf
// CHECK: %[[MR:.*]] = arith.truncf %[[M]] : f32 to f16
// CHECK: %[[MW:.*]] = arith.extf %[[MR]] : f16 to f32
// CHECK: arith.cmpf oeq, %[[MW]]
// CHECK: math.floor %[[MW]]
func.func @keeps_roundings_that_decide(%x: tensor<7xf16>, %y: tensor<7xf16>) -> (tensor<7xi1>, tensor<7xf16>) {
  %r:2 = tile.subprogram "k" (%x, %y) extents [7] tiles [7] grid [0] vector 0 workgroups 1 numerics <relaxed, fast>
      : (tensor<7xf16>, tensor<7xf16>) -> (tensor<7xi1>, tensor<7xf16>) {
  ^bb0(%s: tensor<7xf16>, %t: tensor<7xf16>):
    %e:2 = tile.expr domain [7] reduce [] (%s, %t) maps [#id, #id] guards [unit, unit] into [#id, #id] inits [] dims [0]
        : (tensor<7xf16>, tensor<7xf16>) -> (tensor<7xi1>, tensor<7xf16>) {
    ^bb0(%a: f16, %b: f16):
      %m = arith.mulf %a, %b : f16
      %c = arith.cmpf oeq, %m, %b : f16
      %f = math.floor %m : f16
      tile.yield %c, %f : i1, f16
    }
    tile.yield %e#0, %e#1 : tensor<7xi1>, tensor<7xf16>
  }
  return %r#0, %r#1 : tensor<7xi1>, tensor<7xf16>
}

// -----

#in = affine_map<(i, j) -> (i, j)>
#out = affine_map<(i, j) -> (i)>

// A sum may add products unrounded in the default mode.
// CHECK-LABEL: func @sums_products
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<contract> : f32
func.func @sums_products(%x: tensor<7x5xf32>) -> tensor<7xf32> {
  %r = tile.subprogram "k" (%x) extents [7, 5] tiles [7, 5] grid [0] vector 0 workgroups 1 numerics <relaxed, fast>
      : (tensor<7x5xf32>) -> tensor<7xf32> {
  ^bb0(%s: tensor<7x5xf32>):
    %e = tile.expr domain [7, 5] reduce [1] (%s) maps [#in] guards [unit] into [#out] inits [0.0 : f32] dims [0, 1]
        : (tensor<7x5xf32>) -> tensor<7xf32> {
    ^bb0(%a: f32, %sum: f32):
      %m = arith.mulf %a, %a : f32
      %n = arith.addf %sum, %m : f32
      tile.yield %n : f32
    }
    tile.yield %e : tensor<7xf32>
  }
  return %r : tensor<7xf32>
}

// -----

#in = affine_map<(i, j) -> (i, j)>
#out = affine_map<(i, j) -> (i)>

// In strict mode, it rounds them.
// CHECK-LABEL: func @sums_rounded_products
// CHECK: arith.addf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : f32
func.func @sums_rounded_products(%x: tensor<7x5xf32>) -> tensor<7xf32> {
  %r = tile.subprogram "k" (%x) extents [7, 5] tiles [7, 5] grid [0] vector 0 workgroups 1 numerics <kept, accurate>
      : (tensor<7x5xf32>) -> tensor<7xf32> {
  ^bb0(%s: tensor<7x5xf32>):
    %e = tile.expr domain [7, 5] reduce [1] (%s) maps [#in] guards [unit] into [#out] inits [0.0 : f32] dims [0, 1]
        : (tensor<7x5xf32>) -> tensor<7xf32> {
    ^bb0(%a: f32, %sum: f32):
      %m = arith.mulf %a, %a : f32
      %n = arith.addf %sum, %m : f32
      tile.yield %n : f32
    }
    tile.yield %e : tensor<7xf32>
  }
  return %r : tensor<7xf32>
}
