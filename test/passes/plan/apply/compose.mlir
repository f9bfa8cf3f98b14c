// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-raise,tile-compose))' | FileCheck %s

// CHECK-DAG: [[$FIGURE4:#.+]] = affine_map<(d0, d1) -> (d1, d0 * 2)>
// CHECK-DAG: [[$FIRST_DIM:#.+]] = affine_map<(d0, d1) -> (d1 * 2, d0)>
// CHECK-DAG: [[$ID:#.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: [[$ROW:#.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: [[$HEADS:#.+]] = affine_map<(d0, d1, d2) -> (d1, d0 * 8 + d2)>

// Souffle's figure 4: relu, strided slice and permute are one expression, whose map is the product of their matrices,
// (i, j) -> (j, 2 * i).
// CHECK-LABEL: func @figure_4
// CHECK: tile.expr domain [4, 4] reduce [](%arg0) maps [[[$FIGURE4]]] guards [unit] into [[[$ID]]]
// CHECK-NEXT: ^bb0(%[[A:.+]]: f32):
// CHECK-NEXT:   %[[ZERO:.+]] = arith.constant 0.0
// CHECK-NEXT:   %[[POSITIVE:.+]] = arith.cmpf ogt, %[[A]], %[[ZERO]]
// CHECK-NEXT:   %[[RELU:.+]] = arith.select %[[POSITIVE]], %[[A]], %[[ZERO]]
// CHECK-NEXT:   tile.yield %[[RELU]]
// CHECK-NOT: tile.expr
func.func @figure_4(%a: tensor<4x8xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %c = arith.cmpf ogt, %in, %zero : f32
    %r = arith.select %c, %in, %zero : f32
    linalg.yield %r : f32
  } -> tensor<4x8xf32>
  %c = tensor.extract_slice %b[0, 0] [4, 4] [1, 2] : tensor<4x8xf32> to tensor<4x4xf32>
  %f = tensor.empty() : tensor<4x4xf32>
  %d = linalg.transpose ins(%c : tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) permutation = [1, 0]
  return %d : tensor<4x4xf32>
}

// The same expression, with the stride on the first dim, as in the code of that figure.
// CHECK-LABEL: func @figure_4_strided_rows
// CHECK: tile.expr domain [8, 2] reduce [](%arg0) maps [[[$FIRST_DIM]]]
// CHECK-NOT: tile.expr
func.func @figure_4_strided_rows(%a: tensor<4x8xf32>) -> tensor<8x2xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %b = linalg.abs ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = tensor.extract_slice %b[0, 0] [2, 8] [2, 1] : tensor<4x8xf32> to tensor<2x8xf32>
  %f = tensor.empty() : tensor<8x2xf32>
  %d = linalg.transpose ins(%c : tensor<2x8xf32>) outs(%f : tensor<8x2xf32>) permutation = [1, 0]
  return %d : tensor<8x2xf32>
}

// Splitting heads: the expand, the transpose and their reader become a linear access without divisions.
// CHECK-LABEL: func @split_heads
// CHECK: tile.expr domain [3, 5, 8] reduce [](%arg0) maps [[[$HEADS]]]
// CHECK-NOT: tile.expr
func.func @split_heads(%a: tensor<5x24xf32>) -> tensor<3x5x8xf32> {
  %x = tensor.expand_shape %a [[0], [1, 2]] output_shape [5, 3, 8] : tensor<5x24xf32> into tensor<5x3x8xf32>
  %e = tensor.empty() : tensor<3x5x8xf32>
  %t = linalg.transpose ins(%x : tensor<5x3x8xf32>) outs(%e : tensor<3x5x8xf32>) permutation = [1, 0, 2]
  %y = linalg.exp ins(%t : tensor<3x5x8xf32>) outs(%e : tensor<3x5x8xf32>) -> tensor<3x5x8xf32>
  return %y : tensor<3x5x8xf32>
}

// Elementwise work is inlined into its only reader, a reduction; the reduction stays, and its broadcast vanishes.
// CHECK-LABEL: func @around_a_reduction
// CHECK: %[[S:.+]] = tile.expr domain [3, 5] reduce [1](%arg0) maps [[[$ID]]] guards [unit] into [[[$ROW]]]
// CHECK-NEXT: ^bb0(%[[X:.+]]: f32, %[[ACC:.+]]: f32):
// CHECK-NEXT:   %[[SQUARE:.+]] = math.exp %[[X]]
// CHECK-NEXT:   %[[SUM:.+]] = arith.addf
// CHECK: tile.expr domain [3, 5] reduce [](%arg0, %[[S]]) maps [[[$ID]], [[$ROW]]]
// CHECK-NOT: tile.expr
func.func @around_a_reduction(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %e = tensor.empty() : tensor<3x5xf32>
  %x = linalg.exp ins(%a : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<3x5xf32>) outs(%zero : tensor<3xf32>) dimensions = [1]
  %b = linalg.broadcast ins(%s : tensor<3xf32>) outs(%e : tensor<3x5xf32>) dimensions = [1]
  %y = linalg.div ins(%a, %b : tensor<3x5xf32>, tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// Two views of one tensor that compose to the same access are one input.
// CHECK-LABEL: func @equal_accesses_merge
// CHECK: tile.expr domain [3, 5] reduce [](%arg0) maps
// CHECK-NEXT: ^bb0(%[[X:.+]]: f32):
// CHECK-NEXT:   arith.addf %[[X]], %[[X]]
func.func @equal_accesses_merge(%a: tensor<15xf32>) -> tensor<3x5xf32> {
  %x = tensor.expand_shape %a [[0, 1]] output_shape [3, 5] : tensor<15xf32> into tensor<3x5xf32>
  %e = tensor.empty() : tensor<5x3xf32>
  %t = linalg.transpose ins(%x : tensor<3x5xf32>) outs(%e : tensor<5x3xf32>) permutation = [1, 0]
  %f = tensor.empty() : tensor<3x5xf32>
  %u = linalg.transpose ins(%t : tensor<5x3xf32>) outs(%f : tensor<3x5xf32>) permutation = [1, 0]
  %y = linalg.add ins(%x, %u : tensor<3x5xf32>, tensor<3x5xf32>) outs(%f : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}
