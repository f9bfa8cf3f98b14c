// RUN: tilewright-opt %s --split-input-file --remark-format=emitRemark --remarks-filter=tile-merge-contractions \
// RUN:   --pass-pipeline='builtin.module(func.func(tile-merge-contractions{target=x86-64-avx512}))' 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// REMARK: stay apart: the tensor that one of them multiplies it with is computed in each call
// CHECK-LABEL: func @computed
// CHECK-COUNT-2: = linalg.matmul
func.func @computed(%x: tensor<9x64xf32>, %v: tensor<64x64xf32>) -> (tensor<9x64xf32>, tensor<9x64xf32>) {
  %w = arith.constant dense_resource<w> : tensor<64x64xf32>
  %z = arith.constant dense<0.0> : tensor<9x64xf32>
  %0 = linalg.matmul ins(%x, %v : tensor<9x64xf32>, tensor<64x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<9x64xf32>, tensor<64x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  return %0, %1 : tensor<9x64xf32>, tensor<9x64xf32>
}

// -----

// REMARK: stay apart: the layouts of their weights differ
// REMARK: stay apart: their element types differ
// REMARK: stay apart: their bodies or inits differ
// CHECK-LABEL: func @differ
// CHECK-COUNT-4: = linalg.matmul
#x = affine_map<(i, j, k) -> (i, k)>
#w = affine_map<(i, j, k) -> (j, k)>
#y = affine_map<(i, j, k) -> (i, j)>
func.func @differ(%x: tensor<9x64xbf16>) -> (tensor<9x64xf32>, tensor<9x64xf32>, tensor<9x64xf32>, tensor<9x64xf32>) {
  %u = arith.constant dense_resource<u> : tensor<64x64xbf16>
  %v = arith.constant dense_resource<v> : tensor<64x64xbf16>
  %w = arith.constant dense_resource<w> : tensor<64x64xf32>
  %z = arith.constant dense<0.0> : tensor<9x64xf32>
  %one = arith.constant dense<1.0> : tensor<9x64xf32>
  %0 = linalg.matmul ins(%x, %u : tensor<9x64xbf16>, tensor<64x64xbf16>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %1 = linalg.matmul indexing_maps = [#x, #w, #y] ins(%x, %v : tensor<9x64xbf16>, tensor<64x64xbf16>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %2 = linalg.matmul ins(%x, %w : tensor<9x64xbf16>, tensor<64x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %3 = linalg.matmul ins(%x, %v : tensor<9x64xbf16>, tensor<64x64xbf16>) outs(%one : tensor<9x64xf32>) -> tensor<9x64xf32>
  return %0, %1, %2, %3 : tensor<9x64xf32>, tensor<9x64xf32>, tensor<9x64xf32>, tensor<9x64xf32>
}

// -----

// gcd(70, 4100) = 10: a block of 64 lanes for every ten columns would cost much more than a launch.
// REMARK: form 'merged contractions' 0 of linalg.matmul, linalg.matmul is declined, heads 1, width 10: padding columns 1 x (7 + 410) x 10 to whole register blocks costs {{.*}} us more than fewer launches save; would change: columns that fill register blocks
// CHECK-LABEL: func @ragged
// CHECK-COUNT-2: = linalg.matmul
func.func @ragged(%x: tensor<99x640xf32>) -> (tensor<99x70xf32>, tensor<99x4100xf32>) {
  %v = arith.constant dense_resource<v> : tensor<640x70xf32>
  %w = arith.constant dense_resource<w> : tensor<640x4100xf32>
  %z = arith.constant dense<0.0> : tensor<99x70xf32>
  %y = arith.constant dense<0.0> : tensor<99x4100xf32>
  %0 = linalg.matmul ins(%x, %v : tensor<99x640xf32>, tensor<640x70xf32>) outs(%z : tensor<99x70xf32>) -> tensor<99x70xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<99x640xf32>, tensor<640x4100xf32>) outs(%y : tensor<99x4100xf32>) -> tensor<99x4100xf32>
  return %0, %1 : tensor<99x70xf32>, tensor<99x4100xf32>
}

// -----

// Biases computed in each call cannot be concatenated, so the contractions are merged, but not the ops behind them.
// REMARK: Passed] form {{.*}}is taken, heads 1, width 64:
// CHECK-LABEL: func @computed_bias
// CHECK: tensor<9x2x64xf32>
// CHECK-COUNT-2: arith.addf %{{.*}}, %{{.*}} : f32
#rows = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>
func.func @computed_bias(%x: tensor<9x5xf32>, %b: tensor<64xf32>, %c: tensor<64xf32>) -> (tensor<9x64xf32>, tensor<9x64xf32>) {
  %v = arith.constant dense_resource<v> : tensor<5x64xf32>
  %w = arith.constant dense_resource<w> : tensor<5x64xf32>
  %e = tensor.empty() : tensor<9x64xf32>
  %z = arith.constant dense<0.0> : tensor<9x64xf32>
  %0 = linalg.matmul ins(%x, %v : tensor<9x5xf32>, tensor<5x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<9x5xf32>, tensor<5x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %2 = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%0, %b : tensor<9x64xf32>, tensor<64xf32>) outs(%e : tensor<9x64xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<9x64xf32>
  %3 = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%1, %c : tensor<9x64xf32>, tensor<64xf32>) outs(%e : tensor<9x64xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<9x64xf32>
  return %2, %3 : tensor<9x64xf32>, tensor<9x64xf32>
}

// -----

// One contraction reads the other's result, or another tensor: nothing is shared, and no remark is due.
// REMARK-NOT: remark:
// CHECK-LABEL: func @depends
// CHECK-COUNT-3: = linalg.matmul
func.func @depends(%x: tensor<9x64xf32>, %y: tensor<9x64xf32>) -> (tensor<9x64xf32>, tensor<9x64xf32>) {
  %v = arith.constant dense_resource<v> : tensor<64x64xf32>
  %w = arith.constant dense_resource<w> : tensor<64x64xf32>
  %z = arith.constant dense<0.0> : tensor<9x64xf32>
  %0 = linalg.matmul ins(%x, %v : tensor<9x64xf32>, tensor<64x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %1 = linalg.matmul ins(%0, %w : tensor<9x64xf32>, tensor<64x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %2 = linalg.matmul ins(%y, %w : tensor<9x64xf32>, tensor<64x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  return %1, %2 : tensor<9x64xf32>, tensor<9x64xf32>
}
