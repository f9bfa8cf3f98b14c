// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-convolution-to-matmul{target=cuda:h200}))' | FileCheck %s
// Elements that a body extracts, each one several times in a row, are repeated by movement.

// CHECK-DAG: #[[$ONCE:.+]] = affine_map<(d0, d1, d2) -> (d0, d1)>

// Nearest resizing, as IREE's importer spells it.
// CHECK-LABEL: func.func @nearest
// CHECK-SAME: %[[X:.+]]: tensor<3x5xf32>
// CHECK: %[[R:.+]] = linalg.generic {indexing_maps = [#[[$ONCE]], {{.*}}} ins(%[[X]] : tensor<3x5xf32>) outs({{.*}} : tensor<3x5x2xf32>)
// CHECK: %[[Y:.+]] = tensor.collapse_shape %[[R]] {{\[\[}}0], [1, 2]] : tensor<3x5x2xf32> into tensor<3x10xf32>
// CHECK: linalg.generic {{.*}} ins(%[[Y]] : tensor<3x10xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: linalg.yield
func.func @nearest(%x: tensor<3x5xf32>) -> tensor<3x10xf32> {
  %two = arith.constant 2.0 : f32
  %empty = tensor.empty() : tensor<3x10xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%empty : tensor<3x10xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %integer = arith.index_cast %j : index to i64
    %position = arith.sitofp %integer : i64 to f32
    %scaled = arith.divf %position, %two : f32
    %floor = math.floor %scaled : f32
    %source = arith.fptosi %floor : f32 to i64
    %index = arith.index_cast %source : i64 to index
    %element = tensor.extract %x[%i, %index] : tensor<3x5xf32>
    linalg.yield %element : f32
  } -> tensor<3x10xf32>
  return %y : tensor<3x10xf32>
}

// Reversed points are not repeated.
// CHECK-LABEL: func.func @leaves_what_is_reversed
// CHECK: tensor.extract
func.func @leaves_what_is_reversed(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %last = arith.constant 4 : index
  %empty = tensor.empty() : tensor<3x5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%empty : tensor<3x5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %index = arith.subi %last, %j : index
    %element = tensor.extract %x[%i, %index] : tensor<3x5xf32>
    linalg.yield %element : f32
  } -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// Squares are no such index.
// CHECK-LABEL: func.func @leaves_squares
// CHECK: tensor.extract
func.func @leaves_squares(%x: tensor<3x20xf32>) -> tensor<3x4xf32> {
  %empty = tensor.empty() : tensor<3x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%empty : tensor<3x4xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %index = arith.muli %j, %j : index
    %element = tensor.extract %x[%i, %index] : tensor<3x20xf32>
    linalg.yield %element : f32
  } -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// An index outside of the tensor is left alone.
// CHECK-LABEL: func.func @leaves_what_is_outside
// CHECK: tensor.extract
func.func @leaves_what_is_outside(%x: tensor<3x5xf32>) -> tensor<3x6xf32> {
  %empty = tensor.empty() : tensor<3x6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%empty : tensor<3x6xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %element = tensor.extract %x[%i, %j] : tensor<3x5xf32>
    linalg.yield %element : f32
  } -> tensor<3x6xf32>
  return %y : tensor<3x6xf32>
}
