// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-split-reductions{target=cuda:h200}))' | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-split-reductions{target=cuda:h200}))' \
// RUN:   --remarks-filter-missed=tile-split-reductions --remark-format=emitRemark 2>&1 >/dev/null | FileCheck %s --check-prefix=WHY
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-split-reductions{target=x86-64-avx512}))' | FileCheck %s --check-prefix=CPU

#row = affine_map<(i, j) -> (i, j)>
#sum = affine_map<(i, j) -> (i)>
#nhwc = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channel = affine_map<(n, h, w, c) -> (c)>

// One long row: a view cuts its elements into parts, and the sums of the parts are added. Nothing is split on CPUs.
// CHECK-LABEL: func @one_long_row
// CHECK: %[[PARTS:.*]] = tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2]] output_shape [1, [[P:[0-9]+]], {{[0-9]+}}]
// CHECK: %[[PARTIAL:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[PARTS]]
// CHECK-SAME: outs(%{{.*}} : tensor<[[P]]x1xf32>) attrs = {tile.form = "two-phase reduction"}
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%[[PARTIAL]]
// CHECK-SAME: outs(%{{.*}} : tensor<1xf32>)
// CHECK: return %[[SUM]]
// CPU-LABEL: func @one_long_row
// CPU-NOT: expand_shape
func.func @one_long_row(%x: tensor<1x50000000xf32>) -> tensor<1xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %s = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1x50000000xf32>) outs(%z : tensor<1xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.addf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<1xf32>
  return %s : tensor<1xf32>
}

// Two statistics over images at once: whole outer dims become parts, without a view, and one second phase combines both
// results, each with its own combiner and initial value.
// CHECK-LABEL: func @channels_of_images
// CHECK: %[[PARTIAL:.*]]:2 = linalg.generic
// CHECK:   arith.addf
// CHECK:   arith.maximumf
// CHECK: %[[ALL:.*]]:2 = linalg.generic {{.*}} ins(%[[PARTIAL]]#0, %[[PARTIAL]]#1
// CHECK-SAME: outs({{.*}} : tensor<64xf32>, tensor<64xf32>)
// CHECK:   arith.addf
// CHECK:   arith.maximumf
// CHECK: return %[[ALL]]#0, %[[ALL]]#1
func.func @channels_of_images(%x: tensor<32x56x56x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %s:2 = linalg.generic {indexing_maps = [#nhwc, #channel, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%x : tensor<32x56x56x64xf32>) outs(%z, %i : tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%a: f32, %acc: f32, %most: f32):
    %n = arith.addf %a, %acc : f32
    %m = arith.maximumf %a, %most : f32
    linalg.yield %n, %m : f32, f32
  } -> (tensor<64xf32>, tensor<64xf32>)
  return %s#0, %s#1 : tensor<64xf32>, tensor<64xf32>
}

// Sums of narrow floats keep partial results in f32, and are rounded once at the end.
// CHECK-LABEL: func @narrow_sums_stay_wide_between
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<{{[0-9]+}}x1xf32>)
// CHECK:   ^bb0(%[[A:.*]]: bf16, %[[ACC:.*]]: f32)
// CHECK:   %[[W:.*]] = arith.extf %[[A]]
// CHECK:   arith.addf %[[W]], %[[ACC]] : f32
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<1xf32>)
// CHECK: arith.truncf
func.func @narrow_sums_stay_wide_between(%x: tensor<1x8388608xbf16>) -> tensor<1xbf16> {
  %c0 = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<1xbf16>
  %z = linalg.fill ins(%c0 : bf16) outs(%e : tensor<1xbf16>) -> tensor<1xbf16>
  %s = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1x8388608xbf16>) outs(%z : tensor<1xbf16>) {
  ^bb0(%a: bf16, %acc: bf16):
    %n = arith.addf %a, %acc : bf16
    linalg.yield %n : bf16
  } -> tensor<1xbf16>
  return %s : tensor<1xbf16>
}

// The index of an element is that of its part and its offset there (an argmax keeps the least index of the extremum).
// CHECK-LABEL: func @index_of_the_first_extremum
// CHECK: linalg.generic
// CHECK:   %[[INNER:.*]] = linalg.index 2
// CHECK:   %[[PART:.*]] = linalg.index 1
// CHECK:   %[[START:.*]] = arith.muli %[[PART]]
// CHECK:   arith.addi %[[START]], %[[INNER]]
// CHECK: linalg.generic
// CHECK:   arith.minsi
func.func @index_of_the_first_extremum(%x: tensor<1x8388608xf32>, %best: tensor<1xf32>) -> tensor<1xi64> {
  %none = arith.constant 9223372036854775807 : i64
  %e = tensor.empty() : tensor<1xi64>
  %z = linalg.fill ins(%none : i64) outs(%e : tensor<1xi64>) -> tensor<1xi64>
  %s = linalg.generic {indexing_maps = [#row, #sum, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%x, %best : tensor<1x8388608xf32>, tensor<1xf32>) outs(%z : tensor<1xi64>) {
  ^bb0(%a: f32, %b: f32, %acc: i64):
    %is = arith.cmpf oeq, %a, %b : f32
    %i = linalg.index 1 : index
    %at = arith.index_cast %i : index to i64
    %candidate = arith.select %is, %at, %none : i64
    %n = arith.minsi %candidate, %acc : i64
    linalg.yield %n : i64
  } -> tensor<1xi64>
  return %s : tensor<1xi64>
}

// So many rows fill the device without a split.
// CHECK-LABEL: func @many_rows
// CHECK-NOT: tile.form = "two-phase
// WHY: remark: {{.*}}is declined{{.*}}: it takes too little time
func.func @many_rows(%x: tensor<4096x256xf32>) -> tensor<4096xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
  %s = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4096x256xf32>) outs(%z : tensor<4096xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.addf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<4096xf32>
  return %s : tensor<4096xf32>
}

// A row of 200 KB, whose elements are divided by their sum: its block holds it until the sum is known.
// CHECK-LABEL: func @row_that_is_read_again
// CHECK-NOT: tile.form = "two-phase
// WHY: remark: {{.*}}is declined: a block keeps its rows of 200000 bytes for the ops that read them again
func.func @row_that_is_read_again(%x: tensor<1x50000xf32>) -> tensor<1x50000xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %s = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1x50000xf32>) outs(%z : tensor<1xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.addf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<1xf32>
  %o = tensor.empty() : tensor<1x50000xf32>
  %y = linalg.generic {indexing_maps = [#row, #sum, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<1x50000xf32>, tensor<1xf32>) outs(%o : tensor<1x50000xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<1x50000xf32>
  return %y : tensor<1x50000xf32>
}

// No block holds a row that leaves 248 bytes of its memory: the partial sums of the threads do not fit beside it.
// CHECK-LABEL: func @row_beside_which_nothing_fits
// CHECK-NOT: tile.form = "two-phase
// WHY: remark: {{.*}}is declined, {{.*}} us predicted, otherwise {{.*}} us: no cut of its dims
func.func @row_beside_which_nothing_fits(%x: tensor<1x58050xf32>) -> tensor<1x58050xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %s = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1x58050xf32>) outs(%z : tensor<1xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.addf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<1xf32>
  %o = tensor.empty() : tensor<1x58050xf32>
  %y = linalg.generic {indexing_maps = [#row, #sum, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<1x58050xf32>, tensor<1xf32>) outs(%o : tensor<1x58050xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<1x58050xf32>
  return %y : tensor<1x58050xf32>
}

// A block also holds the row if the sum is over values computed from it.
// CHECK-LABEL: func @row_whose_squares_are_summed
// CHECK-NOT: tile.form = "two-phase
func.func @row_whose_squares_are_summed(%x: tensor<1x50000xf32>) -> tensor<1x50000xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %o = tensor.empty() : tensor<1x50000xf32>
  %q = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<1x50000xf32>) outs(%o : tensor<1x50000xf32>) {
  ^bb0(%a: f32, %out: f32):
    %p = arith.mulf %a, %a : f32
    linalg.yield %p : f32
  } -> tensor<1x50000xf32>
  %s = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%q : tensor<1x50000xf32>) outs(%z : tensor<1xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.addf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<1xf32>
  %y = linalg.generic {indexing_maps = [#row, #sum, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<1x50000xf32>, tensor<1xf32>) outs(%o : tensor<1x50000xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<1x50000xf32>
  return %y : tensor<1x50000xf32>
}

// A longer row is split, because it does not fit any block.
// CHECK-LABEL: func @row_that_no_block_has_room_for
// CHECK: tile.form = "two-phase
func.func @row_that_no_block_has_room_for(%x: tensor<1x500000xf32>) -> tensor<1x500000xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %s = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1x500000xf32>) outs(%z : tensor<1xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.addf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<1xf32>
  %o = tensor.empty() : tensor<1x500000xf32>
  %y = linalg.generic {indexing_maps = [#row, #sum, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<1x500000xf32>, tensor<1xf32>) outs(%o : tensor<1x500000xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.divf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<1x500000xf32>
  return %y : tensor<1x500000xf32>
}

// A combiner that is not known to be associative keeps its order.
// CHECK-LABEL: func @unknown_combination
// CHECK-NOT: tile.form = "two-phase
// WHY: remark: {{.*}}one phase: the combination of result 0 is not known to be associative
func.func @unknown_combination(%x: tensor<1x8388608xf32>) -> tensor<1xf32> {
  %c0 = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<1xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %s = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<1x8388608xf32>) outs(%z : tensor<1xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %d = arith.mulf %half, %acc : f32
    %n = arith.addf %a, %d : f32
    linalg.yield %n : f32
  } -> tensor<1xf32>
  return %s : tensor<1xf32>
}

// K of a contraction with few results is split, too: a batch of contractions, in two launches. So are named ops.
// CHECK-LABEL: func @few_rows_of_many_terms
// CHECK-DAG: %[[ROWS:.*]] = tensor.expand_shape %arg0 {{\[\[}}0], [1, 2]] output_shape [8, [[P:[0-9]+]], {{[0-9]+}}]
// CHECK-DAG: %[[LANES:.*]] = tensor.expand_shape %arg1 {{\[\[}}0, 1], [2]] output_shape {{\[}}[[P:[0-9]+]], {{[0-9]+}}, 96]
// CHECK: %[[PARTIAL:.*]] = linalg.generic {{.*}}["parallel", "parallel", "parallel", "reduction"]} ins(%[[ROWS]], %[[LANES]]
// CHECK-SAME: outs(%{{.*}} : tensor<[[P]]x8x96xf32>)
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}["reduction", "parallel", "parallel"]} ins(%[[PARTIAL]]
// CHECK: return %[[SUM]]
func.func @few_rows_of_many_terms(%x: tensor<8x16384xf32>, %w: tensor<16384x96xf32>) -> tensor<8x96xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x96xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<8x96xf32>) -> tensor<8x96xf32>
  %s = linalg.matmul ins(%x, %w : tensor<8x16384xf32>, tensor<16384x96xf32>) outs(%z : tensor<8x96xf32>) -> tensor<8x96xf32>
  return %s : tensor<8x96xf32>
}

// Tiles that fill the device are not split, and the named op stays a named op.
// CHECK-LABEL: func @many_tiles
// CHECK: linalg.matmul
// CHECK-NOT: linalg.generic
// WHY: remark: {{.*}}is declined, {{.*}} us predicted, otherwise {{.*}} us: no cut of its dims is predicted to take clearly less time
func.func @many_tiles(%x: tensor<2048x2048xf32>, %w: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2048x2048xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %s = linalg.matmul ins(%x, %w : tensor<2048x2048xf32>, tensor<2048x2048xf32>) outs(%z : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %s : tensor<2048x2048xf32>
}

// Accumulators in f16 have no register block, because every one of them is rounded.
// CHECK-LABEL: func @narrow_sums_of_products
// CHECK-NOT: tile.form = "two-phase
// WHY: remark: {{.*}}one phase: it accumulates in a type of less than 32 bits
func.func @narrow_sums_of_products(%x: tensor<8x16384xf16>, %w: tensor<16384x96xf16>) -> tensor<8x96xf16> {
  %c0 = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<8x96xf16>
  %z = linalg.fill ins(%c0 : f16) outs(%e : tensor<8x96xf16>) -> tensor<8x96xf16>
  %s = linalg.matmul ins(%x, %w : tensor<8x16384xf16>, tensor<16384x96xf16>) outs(%z : tensor<8x96xf16>) -> tensor<8x96xf16>
  return %s : tensor<8x96xf16>
}
