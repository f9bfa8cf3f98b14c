// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-element-dependence))' --verify-diagnostics

// Souffle's example, TE0 of its figure 2: an output element relies on a row and a column.
func.func @one_relies_on_many(%a: tensor<64x48xf32>, %b: tensor<48x32xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  // expected-remark @below {{one-relies-on-many: output 0 to input 0: (d0, d1)[s0] -> (d0, s0), 0 <= d0 < 64, 0 <= d1 < 32, 0 <= s0 < 48}}
  // expected-remark @below {{one-relies-on-many: output 0 to input 1: (d0, d1)[s0] -> (s0, d1), 0 <= d0 < 64, 0 <= d1 < 32, 0 <= s0 < 48}}
  %c = linalg.matmul ins(%a, %b : tensor<64x48xf32>, tensor<48x32xf32>) outs(%zero : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %c : tensor<64x32xf32>
}

// A strided slice is affine: its matrix carries the stride, its vector the offset.
func.func @slice_has_a_matrix_and_an_offset(%a: tensor<9x7xf32>) -> tensor<4x3xf32> {
  // expected-remark @below {{one-relies-on-one: output 0 to input 0: (d0, d1) -> (d0 * 2 + 1, d1 + 3), [[2, 0], [0, 1]] v + [1, 3], 0 <= d0 < 4, 0 <= d1 < 3}}
  %s = tensor.extract_slice %a[1, 3] [4, 3] [2, 1] : tensor<9x7xf32> to tensor<4x3xf32>
  return %s : tensor<4x3xf32>
}

// Splitting a dim is only quasi-affine.
func.func @collapse_is_quasi_affine(%a: tensor<4x6xf32>) -> tensor<24xf32> {
  // expected-remark @below {{one-relies-on-one: output 0 to input 0: (d0) -> (d0 floordiv 6, d0 mod 6), quasi-affine, 0 <= d0 < 24}}
  %c = tensor.collapse_shape %a [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  return %c : tensor<24xf32>
}

// The map goes from the output's index, not from the loops: here the result is written transposed.
func.func @follows_the_result_map(%a: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %e = tensor.empty() : tensor<6x4xf32>
  // expected-remark @below {{one-relies-on-one: output 0 to input 0: (d0, d1) -> (d1, d0), [[0, 1], [1, 0]] v + [0, 0], 0 <= d0 < 6, 0 <= d1 < 4}}
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x6xf32>) outs(%e : tensor<6x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<6x4xf32>
  return %t : tensor<6x4xf32>
}

// Each piece of a concat is relied on only where it lies.
func.func @concat_is_guarded(%a: tensor<3xf32>, %b: tensor<5xf32>) -> tensor<8xf32> {
  // expected-remark @below {{output 0 to input 0: (d0) -> (d0), [[1]] v + [0], 0 <= d0 < 8, where (d0) : (-d0 + 2 >= 0)}}
  // expected-remark @below {{output 0 to input 1: (d0) -> (d0 - 3), [[1]] v + [-3], 0 <= d0 < 8, where (d0) : (d0 - 3 >= 0)}}
  %c = tensor.concat dim(0) %a, %b : (tensor<3xf32>, tensor<5xf32>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}
