// RUN: tilewright-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(tile-split-reductions{target=cuda:h200}))' | FileCheck %s
// RUN: tilewright-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(tile-split-reductions{target=cuda:h200}))' \
// RUN:   --remarks-filter-missed=tile-split-reductions --remark-format=emitRemark 2>&1 >/dev/null | FileCheck %s --check-prefix=WHY

#all = affine_map<(b, k) -> (b, k)>
#row = affine_map<(b, k) -> (b)>
#keys = affine_map<(b, k, d) -> (b, k, d)>
#query = affine_map<(b, k, d) -> (b, d)>
#score = affine_map<(b, k, d) -> (b, k)>

// One query row per head and long keys: each part of the keys has its own scores, maximum, sum and product, and the
// parts are combined relative to the maximum of all. The maximum of a part is finite, even if the whole part is masked.
// CHECK-LABEL: func @one_query
// CHECK: %[[LOWEST:.*]] = arith.constant -3.40282347E+38 : f32
// CHECK: %[[MAX:.*]] = linalg.generic {{.*}}["parallel", "parallel", "reduction"]} {{.*}} outs(%{{.*}} : tensor<[[P:[0-9]+]]x8xf32>)
// CHECK:   arith.maximumf
// CHECK: arith.subf
// CHECK: math.exp
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<[[P]]x8xf32>) attrs = {tile.form = "sums relative to maxima of parts
// CHECK: %[[PRODUCT:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<[[P]]x8x128xf32>)
// CHECK: %[[TOTAL:.*]] = linalg.generic {{.*}}["reduction", "parallel"]} ins(%[[MAX]]
// CHECK: %[[ALL:.*]] = linalg.generic {{.*}} ins(%[[SUM]], %[[MAX]], %[[TOTAL]]
// CHECK:   arith.subf
// CHECK:   math.exp
// CHECK:   arith.divf
// CHECK:   arith.addf
// CHECK: %[[OUT:.*]] = linalg.generic {{.*}} ins(%[[PRODUCT]], %[[MAX]], %[[TOTAL]]
// CHECK: return %[[OUT]], %[[ALL]]
func.func @one_query(%q: tensor<8x128xf16>, %k: tensor<8x8192x128xf16>, %v: tensor<8x8192x128xf16>) -> (tensor<8x128xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<8x8192xf32>
  %zs = linalg.fill ins(%c0 : f32) outs(%es : tensor<8x8192xf32>) -> tensor<8x8192xf32>
  %s = linalg.generic {indexing_maps = [#query, #keys, #score], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x128xf16>, tensor<8x8192x128xf16>) outs(%zs : tensor<8x8192xf32>) {
  ^bb0(%a: f16, %b: f16, %acc: f32):
    %x = arith.extf %a : f16 to f32
    %y = arith.extf %b : f16 to f32
    %p = arith.mulf %x, %y : f32
    %n = arith.addf %p, %acc : f32
    linalg.yield %n : f32
  } -> tensor<8x8192xf32>
  %er = tensor.empty() : tensor<8xf32>
  %zm = linalg.fill ins(%low : f32) outs(%er : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<8x8192xf32>) outs(%zm : tensor<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.maximumf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %e = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<8x8192xf32>, tensor<8xf32>) outs(%es : tensor<8x8192xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<8x8192xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%er : tensor<8xf32>) -> tensor<8xf32>
  %l = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<8x8192xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.addf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %eh = tensor.empty() : tensor<8x8192xf16>
  %h = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e : tensor<8x8192xf32>) outs(%eh : tensor<8x8192xf16>) {
  ^bb0(%a: f32, %out: f16):
    %n = arith.truncf %a : f32 to f16
    linalg.yield %n : f16
  } -> tensor<8x8192xf16>
  %eo = tensor.empty() : tensor<8x128xf32>
  %zo = linalg.fill ins(%c0 : f32) outs(%eo : tensor<8x128xf32>) -> tensor<8x128xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, d, k) -> (b, k)>, affine_map<(b, d, k) -> (b, k, d)>, affine_map<(b, d, k) -> (b, d)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h, %v : tensor<8x8192xf16>, tensor<8x8192x128xf16>) outs(%zo : tensor<8x128xf32>) {
  ^bb0(%a: f16, %b: f16, %acc: f32):
    %x = arith.extf %a : f16 to f32
    %y = arith.extf %b : f16 to f32
    %p = arith.mulf %x, %y : f32
    %n = arith.addf %p, %acc : f32
    linalg.yield %n : f32
  } -> tensor<8x128xf32>
  return %o, %l : tensor<8x128xf32>, tensor<8xf32>
}

// -----

#all = affine_map<(b, k) -> (b, k)>
#row = affine_map<(b, k) -> (b)>

// Readers of the exponentials get them relative to the maximum of all.
// CHECK-LABEL: func @exponentials_leave
// CHECK-NOT: tile.form = "sums relative
// WHY: remark: {{.*}}keys in one part: an op outside the group reads exponentials
func.func @exponentials_leave(%s: tensor<4x65536xf32>) -> (tensor<4xf32>, tensor<4x65536xf32>) {
  %c0 = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<4x65536xf32>
  %er = tensor.empty() : tensor<4xf32>
  %zm = linalg.fill ins(%low : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<4x65536xf32>) outs(%zm : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.maximumf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  %e = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<4x65536xf32>, tensor<4xf32>) outs(%es : tensor<4x65536xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<4x65536xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %l = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<4x65536xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.addf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  return %l, %e : tensor<4xf32>, tensor<4x65536xf32>
}

// -----

#all = affine_map<(b, k) -> (b, k)>
#row = affine_map<(b, k) -> (b)>

// So many rows fill the device without a split.
// CHECK-LABEL: func @many_rows
// CHECK-NOT: tile.form = "sums relative
// WHY: remark: {{.*}}is declined: its rows fill the device; would change: fewer rows
func.func @many_rows(%s: tensor<1024x4096xf32>) -> tensor<1024xf32> {
  %c0 = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<1024x4096xf32>
  %er = tensor.empty() : tensor<1024xf32>
  %zm = linalg.fill ins(%low : f32) outs(%er : tensor<1024xf32>) -> tensor<1024xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<1024x4096xf32>) outs(%zm : tensor<1024xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.maximumf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<1024xf32>
  %e = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<1024x4096xf32>, tensor<1024xf32>) outs(%es : tensor<1024x4096xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<1024x4096xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%er : tensor<1024xf32>) -> tensor<1024xf32>
  %l = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<1024x4096xf32>) outs(%z : tensor<1024xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.addf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<1024xf32>
  return %l : tensor<1024xf32>
}

// -----

#all = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>

// Scores that pass through a reshape belong to the keys as well: each part computes its own.
// CHECK-LABEL: func @scores_behind_a_reshape
// CHECK-NOT: tensor<12x1x2048xf32>
// CHECK: linalg.generic {{.*}}"reduction"]} {{.*}} outs(%{{.*}} : tensor<[[P:[0-9]+]]x12x1x{{[0-9]+}}xf32>)
// CHECK: arith.maximumf
// CHECK: tile.form = "sums relative to maxima of parts
func.func @scores_behind_a_reshape(%q: tensor<12x1x64xf32>, %k: tensor<12x64x2048xf32>, %v: tensor<12x2048x64xf32>) -> tensor<12x1x64xf32> {
  %c0 = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %eb = tensor.empty() : tensor<12x1x2048xf32>
  %zb = linalg.fill ins(%c0 : f32) outs(%eb : tensor<12x1x2048xf32>) -> tensor<12x1x2048xf32>
  %b = linalg.batch_matmul ins(%q, %k : tensor<12x1x64xf32>, tensor<12x64x2048xf32>) outs(%zb : tensor<12x1x2048xf32>) -> tensor<12x1x2048xf32>
  %s = tensor.expand_shape %b [[0, 1], [2], [3]] output_shape [1, 12, 1, 2048] : tensor<12x1x2048xf32> into tensor<1x12x1x2048xf32>
  %c = tensor.collapse_shape %s [[0, 1], [2], [3]] : tensor<1x12x1x2048xf32> into tensor<12x1x2048xf32>
  %er = tensor.empty() : tensor<12x1xf32>
  %zm = linalg.fill ins(%low : f32) outs(%er : tensor<12x1xf32>) -> tensor<12x1xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%c : tensor<12x1x2048xf32>) outs(%zm : tensor<12x1xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.maximumf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<12x1xf32>
  %e = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%c, %m : tensor<12x1x2048xf32>, tensor<12x1xf32>) outs(%eb : tensor<12x1x2048xf32>) {
  ^bb0(%a: f32, %x: f32, %out: f32):
    %d = arith.subf %a, %x : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<12x1x2048xf32>
  %eo = tensor.empty() : tensor<12x1x64xf32>
  %zo = linalg.fill ins(%c0 : f32) outs(%eo : tensor<12x1x64xf32>) -> tensor<12x1x64xf32>
  %o = linalg.batch_matmul ins(%e, %v : tensor<12x1x2048xf32>, tensor<12x2048x64xf32>) outs(%zo : tensor<12x1x64xf32>) -> tensor<12x1x64xf32>
  return %o : tensor<12x1x64xf32>
}

// -----

#all = affine_map<(b, k) -> (b, k)>
#row = affine_map<(b, k) -> (b)>
#keys = affine_map<(b, k, d) -> (b, k, d)>
#query = affine_map<(b, k, d) -> (b, d)>
#score = affine_map<(b, k, d) -> (b, k)>

// A dim of one element keeps its index in the parts, too.
// CHECK-LABEL: func @scores_of_one_term
// CHECK: tensor.expand_shape
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<[[P:[0-9]+]]x8x128xf32>)
func.func @scores_of_one_term(%q: tensor<8x1xf16>, %k: tensor<8x8192x1xf16>, %v: tensor<8x8192x128xf16>) -> (tensor<8x128xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %es = tensor.empty() : tensor<8x8192xf32>
  %zs = linalg.fill ins(%c0 : f32) outs(%es : tensor<8x8192xf32>) -> tensor<8x8192xf32>
  %s = linalg.generic {indexing_maps = [#query, #keys, #score], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x1xf16>, tensor<8x8192x1xf16>) outs(%zs : tensor<8x8192xf32>) {
  ^bb0(%a: f16, %b: f16, %acc: f32):
    %x = arith.extf %a : f16 to f32
    %y = arith.extf %b : f16 to f32
    %p = arith.mulf %x, %y : f32
    %n = arith.addf %p, %acc : f32
    linalg.yield %n : f32
  } -> tensor<8x8192xf32>
  %er = tensor.empty() : tensor<8xf32>
  %zm = linalg.fill ins(%low : f32) outs(%er : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<8x8192xf32>) outs(%zm : tensor<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.maximumf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %e = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<8x8192xf32>, tensor<8xf32>) outs(%es : tensor<8x8192xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<8x8192xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%er : tensor<8xf32>) -> tensor<8xf32>
  %l = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<8x8192xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.addf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %eh = tensor.empty() : tensor<8x8192xf16>
  %h = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e : tensor<8x8192xf32>) outs(%eh : tensor<8x8192xf16>) {
  ^bb0(%a: f32, %out: f16):
    %n = arith.truncf %a : f32 to f16
    linalg.yield %n : f16
  } -> tensor<8x8192xf16>
  %eo = tensor.empty() : tensor<8x128xf32>
  %zo = linalg.fill ins(%c0 : f32) outs(%eo : tensor<8x128xf32>) -> tensor<8x128xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, d, k) -> (b, k)>, affine_map<(b, d, k) -> (b, k, d)>, affine_map<(b, d, k) -> (b, d)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h, %v : tensor<8x8192xf16>, tensor<8x8192x128xf16>) outs(%zo : tensor<8x128xf32>) {
  ^bb0(%a: f16, %b: f16, %acc: f32):
    %x = arith.extf %a : f16 to f32
    %y = arith.extf %b : f16 to f32
    %p = arith.mulf %x, %y : f32
    %n = arith.addf %p, %acc : f32
    linalg.yield %n : f32
  } -> tensor<8x128xf32>
  return %o, %l : tensor<8x128xf32>, tensor<8xf32>
}
