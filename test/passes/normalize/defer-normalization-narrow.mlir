// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-defer-normalization))' | FileCheck %s

#whole = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>

// Rounding the operand to bf16 before the division errs by as much as rounding after it, and the exponentials need not
// be more accurate than that.
// CHECK-LABEL: func @rounded_weights
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<29x53xf32>, tensor<29xf32>)
// CHECK-SAME: attrs = {tile.form = "exponentials within 2^-13"}
// CHECK:   math.exp %{{.*}} {tile.for_bf16}
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[E]] : tensor<29x53xf32>)
// CHECK-NOT: arith.divf
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[E]] : tensor<29x53xf32>)
// CHECK:   arith.truncf
// CHECK: %[[C:.*]] = linalg.matmul ins(%[[R]], %{{.*}} : tensor<29x53xbf16>, tensor<53x17xbf16>)
// CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%[[C]], %[[S]] : tensor<29x17xf32>, tensor<29xf32>)
// CHECK:   arith.divf
// CHECK: return %[[Q]]
func.func @rounded_weights(%x: tensor<29x53xf32>, %v: tensor<53x17xbf16>) -> tensor<29x17xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %full = tensor.empty() : tensor<29x53xf32>
  %rows = tensor.empty() : tensor<29xf32>
  %lowest = linalg.fill ins(%low : f32) outs(%rows : tensor<29xf32>) -> tensor<29xf32>
  %most = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<29x53xf32>) outs(%lowest : tensor<29xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<29xf32>
  %e = linalg.generic {indexing_maps = [#whole, #rows, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %most : tensor<29x53xf32>, tensor<29xf32>) outs(%full : tensor<29x53xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<29x53xf32>
  %rows0 = linalg.fill ins(%zero : f32) outs(%rows : tensor<29xf32>) -> tensor<29xf32>
  %s = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<29x53xf32>) outs(%rows0 : tensor<29xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<29xf32>
  %p = linalg.generic {indexing_maps = [#whole, #rows, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%e, %s : tensor<29x53xf32>, tensor<29xf32>) outs(%full : tensor<29x53xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<29x53xf32>
  %narrow = tensor.empty() : tensor<29x53xbf16>
  %w = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<29x53xf32>) outs(%narrow : tensor<29x53xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %r = arith.truncf %a : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<29x53xbf16>
  %out = tensor.empty() : tensor<29x17xf32>
  %out0 = linalg.fill ins(%zero : f32) outs(%out : tensor<29x17xf32>) -> tensor<29x17xf32>
  %c = linalg.matmul ins(%w, %v : tensor<29x53xbf16>, tensor<53x17xbf16>) outs(%out0 : tensor<29x17xf32>) -> tensor<29x17xf32>
  return %c : tensor<29x17xf32>
}

// If a sum of exponentials has other readers, the exponentials keep the accuracy of f32.
// CHECK-LABEL: func @sums_of_exponentials_that_others_read
// CHECK-NOT: tile.for_bf16
// CHECK: arith.truncf
func.func @sums_of_exponentials_that_others_read(%x: tensor<29x53xf32>, %v: tensor<53x17xbf16>) -> (tensor<29x17xf32>, tensor<29xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %full = tensor.empty() : tensor<29x53xf32>
  %rows = tensor.empty() : tensor<29xf32>
  %lowest = linalg.fill ins(%low : f32) outs(%rows : tensor<29xf32>) -> tensor<29xf32>
  %most = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<29x53xf32>) outs(%lowest : tensor<29xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<29xf32>
  %e = linalg.generic {indexing_maps = [#whole, #rows, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %most : tensor<29x53xf32>, tensor<29xf32>) outs(%full : tensor<29x53xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<29x53xf32>
  %rows0 = linalg.fill ins(%zero : f32) outs(%rows : tensor<29xf32>) -> tensor<29xf32>
  %s = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<29x53xf32>) outs(%rows0 : tensor<29xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<29xf32>
  %p = linalg.generic {indexing_maps = [#whole, #rows, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%e, %s : tensor<29x53xf32>, tensor<29xf32>) outs(%full : tensor<29x53xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<29x53xf32>
  %narrow = tensor.empty() : tensor<29x53xbf16>
  %w = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<29x53xf32>) outs(%narrow : tensor<29x53xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %r = arith.truncf %a : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<29x53xbf16>
  %out = tensor.empty() : tensor<29x17xf32>
  %out0 = linalg.fill ins(%zero : f32) outs(%out : tensor<29x17xf32>) -> tensor<29x17xf32>
  %c = linalg.matmul ins(%w, %v : tensor<29x53xbf16>, tensor<53x17xbf16>) outs(%out0 : tensor<29x17xf32>) -> tensor<29x17xf32>
  return %c, %s : tensor<29x17xf32>, tensor<29xf32>
}

// A softmax in bf16 throughout: the sum is widened to the accumulator type of the contraction.
// CHECK-LABEL: func @narrow_weights
// CHECK: math.exp
// CHECK-NOT: arith.divf {{.*}} : bf16
// CHECK: %[[C:.*]] = linalg.matmul
// CHECK: linalg.generic {{.*}} ins(%[[C]], %{{.*}} : tensor<29x17xf32>, tensor<29xbf16>)
// CHECK:   %[[B:.*]] = arith.extf {{.*}} : bf16 to f32
// CHECK:   arith.divf %{{.*}}, %[[B]] : f32
func.func @narrow_weights(%x: tensor<29x53xbf16>, %v: tensor<53x17xbf16>) -> tensor<29x17xf32> {
  %zero = arith.constant 0.0 : f32
  %zero16 = arith.constant 0.0 : bf16
  %low = arith.constant 0xFF80 : bf16
  %full = tensor.empty() : tensor<29x53xbf16>
  %rows = tensor.empty() : tensor<29xbf16>
  %lowest = linalg.fill ins(%low : bf16) outs(%rows : tensor<29xbf16>) -> tensor<29xbf16>
  %most = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<29x53xbf16>) outs(%lowest : tensor<29xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %r = arith.maximumf %a, %o : bf16
    linalg.yield %r : bf16
  } -> tensor<29xbf16>
  %e = linalg.generic {indexing_maps = [#whole, #rows, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%x, %most : tensor<29x53xbf16>, tensor<29xbf16>) outs(%full : tensor<29x53xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %d = arith.subf %a, %b : bf16
    %r = math.exp %d : bf16
    linalg.yield %r : bf16
  } -> tensor<29x53xbf16>
  %rows0 = linalg.fill ins(%zero16 : bf16) outs(%rows : tensor<29xbf16>) -> tensor<29xbf16>
  %s = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<29x53xbf16>) outs(%rows0 : tensor<29xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %r = arith.addf %a, %o : bf16
    linalg.yield %r : bf16
  } -> tensor<29xbf16>
  %p = linalg.generic {indexing_maps = [#whole, #rows, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%e, %s : tensor<29x53xbf16>, tensor<29xbf16>) outs(%full : tensor<29x53xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %r = arith.divf %a, %b : bf16
    linalg.yield %r : bf16
  } -> tensor<29x53xbf16>
  %out = tensor.empty() : tensor<29x17xf32>
  %out0 = linalg.fill ins(%zero : f32) outs(%out : tensor<29x17xf32>) -> tensor<29x17xf32>
  %c = linalg.matmul ins(%p, %v : tensor<29x53xbf16>, tensor<53x17xbf16>) outs(%out0 : tensor<29x17xf32>) -> tensor<29x17xf32>
  return %c : tensor<29x17xf32>
}
