// RUN: tilewright-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-print-propagation{output-tile=3,20}))'

// A tile that holds whole rows aligns their sums: one tile gives both outputs.
func.func @row_sums_are_aligned(%a: tensor<12x20xf32>) -> (tensor<12x20xf32>, tensor<12xf32>) {
  %zero = arith.constant dense<0.0> : tensor<12xf32>
  %e = tensor.empty() : tensor<12x20xf32>
  // expected-remark @below {{tile [3, 20]}}
  %x = linalg.exp ins(%a : tensor<12x20xf32>) outs(%e : tensor<12x20xf32>) -> tensor<12x20xf32>
  // expected-remark @below {{tile [3, 20]}}
  // expected-remark @below {{4 tiles, footprint 480 B, traffic 1968 B; in [3, 20] 240 B; reuse [3, 20] 240 B; out [3, 20] 240 B; out [3] 12 B}}
  %y = linalg.sqrt ins(%x : tensor<12x20xf32>) outs(%e : tensor<12x20xf32>) -> tensor<12x20xf32>
  // expected-remark @below {{tile [3, 20]}}
  %s = linalg.reduce { arith.addf } ins(%x : tensor<12x20xf32>) outs(%zero : tensor<12xf32>) dimensions = [1]
  return %y, %s : tensor<12x20xf32>, tensor<12xf32>
}

// -----

// Column sums need every tile, so they stay outside, and the tensor that they read is written.
func.func @column_sums_are_not(%a: tensor<12x20xf32>) -> (tensor<12x20xf32>, tensor<20xf32>) {
  %zero = arith.constant dense<0.0> : tensor<20xf32>
  %e = tensor.empty() : tensor<12x20xf32>
  // expected-remark @below {{tile [3, 20]}}
  %x = linalg.exp ins(%a : tensor<12x20xf32>) outs(%e : tensor<12x20xf32>) -> tensor<12x20xf32>
  // expected-remark @below {{tile [3, 20]}}
  // expected-remark @below {{4 tiles, footprint 480 B, traffic 2880 B; in [3, 20] 240 B; out [3, 20] 240 B; out [3, 20] 240 B}}
  %y = linalg.sqrt ins(%x : tensor<12x20xf32>) outs(%e : tensor<12x20xf32>) -> tensor<12x20xf32>
  // expected-remark @below {{not connected: its aligned tile would be computed 4 times, but there are 1}}
  %s = linalg.reduce { arith.addf } ins(%x : tensor<12x20xf32>) outs(%zero : tensor<20xf32>) dimensions = [0]
  return %y, %s : tensor<12x20xf32>, tensor<20xf32>
}

// -----

// The tile does not hold the elements of a neighbour, so the shifted sum cannot share it.
func.func @halo_is_not_shared(%a: tensor<12x20xf32>) -> (tensor<12x20xf32>, tensor<12x20xf32>) {
  %e = tensor.empty() : tensor<13x20xf32>
  %f = tensor.empty() : tensor<12x20xf32>
  %zero = arith.constant 0.0 : f32
  // expected-remark @below {{tile [3, 20]}}
  %x = linalg.exp ins(%a : tensor<12x20xf32>) outs(%f : tensor<12x20xf32>) -> tensor<12x20xf32>
  // expected-remark @below {{tile [3, 20]}}
  // expected-remark @below {{4 tiles}}
  %y = linalg.sqrt ins(%x : tensor<12x20xf32>) outs(%f : tensor<12x20xf32>) -> tensor<12x20xf32>
  %p = tensor.pad %x low[0, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<12x20xf32> to tensor<13x20xf32>
  // expected-remark @below {{not connected: it needs a larger tile of a shared producer}}
  %z = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i + 1, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %p : tensor<12x20xf32>, tensor<13x20xf32>) outs(%f : tensor<12x20xf32>) {
  ^bb0(%u: f32, %v: f32, %out: f32):
    %s = arith.addf %u, %v : f32
    linalg.yield %s : f32
  } -> tensor<12x20xf32>
  return %y, %z : tensor<12x20xf32>, tensor<12x20xf32>
}
