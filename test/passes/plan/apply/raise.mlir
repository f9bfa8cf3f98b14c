// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-raise))' | FileCheck %s

// CHECK-DAG: [[$ID:#.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: [[$ROW:#.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: [[$COLUMN:#.+]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: [[$TABLE:#.+]] = affine_map<(d0, d1) -> (0, d1)>

// A splat constant of any rank is a scalar of the body; a constant that the body captured moves into it.
// CHECK-LABEL: func @constants_become_scalars
// CHECK: tile.expr domain [3, 5] reduce [](%arg0) maps [[[$ID]]] guards [unit] into [[[$ID]]] inits []
// CHECK-NEXT: ^bb0(%[[IN:.+]]: f32):
// CHECK-NEXT:   %[[FOUR:.+]] = arith.constant 4.000000e+00
// CHECK-NEXT:   %[[D:.+]] = arith.divf %[[IN]], %[[FOUR]]
// CHECK-NEXT:   %[[TWO:.+]] = arith.constant 2.000000e+00
// CHECK-NEXT:   %[[A:.+]] = arith.addf %[[D]], %[[TWO]]
// CHECK:        tile.yield %[[A]]
func.func @constants_become_scalars(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %four = arith.constant dense<4.0> : tensor<f32>
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%a, %four : tensor<3x5xf32>, tensor<f32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%in: f32, %f: f32, %out: f32):
    %d = arith.divf %in, %f : f32
    %s = arith.addf %d, %two : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  return %x : tensor<3x5xf32>
}

// Accumulators come after the inputs and start at constants; the fills that gave those constants are gone.
// CHECK-LABEL: func @reduction_starts_at_its_fill
// CHECK-NOT: linalg.fill
// CHECK: tile.expr domain [3, 5] reduce [1](%arg0) maps [[[$ID]]] guards [unit] into [[[$ROW]]] inits [0xFF800000 : f32]
// CHECK-NEXT: ^bb0(%[[IN:.+]]: f32, %[[ACC:.+]]: f32):
// CHECK:        %[[M:.+]] = arith.maximumf
// CHECK:        tile.yield %[[M]]
// CHECK-NOT: linalg.fill
func.func @reduction_starts_at_its_fill(%a: tensor<3x5xf32>) -> tensor<3xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %m = linalg.reduce { arith.maximumf } ins(%a : tensor<3x5xf32>) outs(%f : tensor<3xf32>) dimensions = [1]
  return %m : tensor<3xf32>
}

// An out operand that the body reads elementwise is an input like any other; equal inputs are one.
// CHECK-LABEL: func @read_outs_are_inputs
// CHECK: tile.expr domain [3, 5] reduce [](%arg0, %arg1) maps [[[$ID]], [[$COLUMN]]] guards [unit, unit]
// CHECK-NEXT: ^bb0(%[[X:.+]]: f32, %[[B:.+]]: f32):
// CHECK:        %[[S:.+]] = arith.mulf %[[X]], %[[B]]
// CHECK:        %[[T:.+]] = arith.addf %[[S]], %[[X]]
func.func @read_outs_are_inputs(%a: tensor<3x5xf32>, %b: tensor<5xf32>) -> tensor<3x5xf32> {
  %x = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<3x5xf32>, tensor<5xf32>) outs(%a : tensor<3x5xf32>) {
  ^bb0(%in: f32, %w: f32, %out: f32):
    %s = arith.mulf %in, %w : f32
    %t = arith.addf %s, %out : f32
    linalg.yield %t : f32
  } -> tensor<3x5xf32>
  return %x : tensor<3x5xf32>
}

// linalg.index becomes a function of the point.
// CHECK-LABEL: func @index_is_a_map
// CHECK: tile.index [[$COLUMN]]
func.func @index_is_a_map() -> tensor<3x5xi32> {
  %e = tensor.empty() : tensor<3x5xi32>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<3x5xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 1 : index
    %c = arith.index_cast %i : index to i32
    linalg.yield %c : i32
  } -> tensor<3x5xi32>
  return %x : tensor<3x5xi32>
}

// A tensor that the body reads at an index that it computes becomes a table, of which the map knows the other index.
// CHECK-LABEL: func.func @rows_of_a_table
// CHECK: tile.expr domain [4, 5] reduce [](%arg1, %arg0) maps [[[$ROW]], [[$TABLE]]]
// CHECK: ^bb0(%[[AT:.*]]: i64, %[[TABLE:.*]]: tensor<9x5xf32>):
// CHECK:   %[[ROW:.*]] = arith.index_cast %[[AT]] : i64 to index
// CHECK:   %[[COLUMN:.*]] = tile.index [[$COLUMN]]
// CHECK:   tile.gather %[[TABLE]][%[[ROW]], %[[COLUMN]]] : tensor<9x5xf32> -> f32
func.func @rows_of_a_table(%x: tensor<9x5xf32>, %at: tensor<4xi64>) -> tensor<4x5xf32> {
  %e = tensor.empty() : tensor<4x5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<4xi64>) outs(%e : tensor<4x5xf32>) {
  ^bb0(%k: i64, %o: f32):
    %i = arith.index_cast %k : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%i, %j] : tensor<9x5xf32>
    linalg.yield %v : f32
  } -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}
