// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-normalize))' | FileCheck %s

// x[:, 2] of a front end, whose index is a constant tensor, becomes a slice.
// CHECK: #[[$PLACE:.*]] = affine_map<(d0, d1) -> (d0, 0, d1)>
// CHECK-LABEL: func @slice
// CHECK: %[[PART:.*]] = tensor.extract_slice %arg0[0, 2, 0] [6, 1, 5] [1, 1, 1]
// CHECK: linalg.generic {indexing_maps = [#[[$PLACE]], {{.*}}ins(%[[PART]] : tensor<6x1x5xf32>)
// CHECK-NOT: tensor.extract
func.func @slice(%x: tensor<6x4x5xf32>) -> tensor<6x5xf32> {
  %at = arith.constant dense<2> : tensor<1xi64>
  %e = tensor.empty() : tensor<6x5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (0)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<1xi64>) outs(%e : tensor<6x5xf32>) {
  ^bb0(%a: i64, %o: f32):
    %k = arith.index_cast %a : i64 to index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%i, %k, %j] : tensor<6x4x5xf32>
    linalg.yield %v : f32
  } -> tensor<6x5xf32>
  return %y : tensor<6x5xf32>
}

// The loops span fewer elements than the tensor. What only copies the slice is the slice.
// CHECK-LABEL: func @shorter
// CHECK: %[[PART:.*]] = tensor.extract_slice %arg0[0] [5] [1]
// CHECK: return %[[PART]]
func.func @shorter(%x: tensor<9xf32>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<5xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %x[%i] : tensor<9xf32>
    linalg.yield %v : f32
  } -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// An index outside of the tensor is left alone.
// CHECK-LABEL: func @outside
// CHECK: tensor.extract %
func.func @outside(%x: tensor<9xf32>) -> tensor<5xf32> {
  %nine = arith.constant 9 : index
  %e = tensor.empty() : tensor<5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<5xf32>) {
  ^bb0(%o: f32):
    %v = tensor.extract %x[%nine] : tensor<9xf32>
    linalg.yield %v : f32
  } -> tensor<5xf32>
  return %y : tensor<5xf32>
}
