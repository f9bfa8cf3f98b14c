// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-schemes{target=cuda:h200}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=HOPPER
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-schemes{target=cuda:a100}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=AMPERE

// Every block reads the gain: with one block per SM, it is a quarter of the bytes, and fewer blocks take longer. The
// blocks of a cluster read it once together.
// HOPPER: remark: chosen: {{.*}}, 8 a cluster,
// AMPERE: remark: chosen:
// AMPERE-NOT: a cluster
func.func @rows_share_a_gain(%x: tensor<512x768xf32>, %gain: tensor<768xf32>) -> tensor<512x768xf32> {
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %empty = tensor.empty() : tensor<512x768xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<512x768xf32>) outs(%zero : tensor<512xf32>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                        affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %gain, %s : tensor<512x768xf32>, tensor<768xf32>, tensor<512xf32>) outs(%empty : tensor<512x768xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.mulf %p, %c : f32
    linalg.yield %q : f32
  } -> tensor<512x768xf32>
  return %y : tensor<512x768xf32>
}

// Rows that share nothing need no cluster.
// HOPPER: remark: chosen:
// HOPPER-NOT: a cluster
func.func @rows_share_nothing(%x: tensor<512x768xf32>) -> tensor<512xf32> {
  %zero = arith.constant dense<0.0> : tensor<512xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<512x768xf32>) outs(%zero : tensor<512xf32>) dimensions = [1]
  return %s : tensor<512xf32>
}
