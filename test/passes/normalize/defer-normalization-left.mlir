// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-defer-normalization))' | FileCheck %s

#id = affine_map<(b, i, j) -> (b, i, j)>
#row = affine_map<(b, i, j) -> (b, i)>
#whole = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>

// A mask that sets keys (K) to zero after the division does not move, because the sum counts masked keys, too.
// CHECK-LABEL: func @hidden_keys_are_left
// CHECK: arith.divf
// CHECK: arith.select
// CHECK: linalg.matmul
// CHECK-NOT: arith.divf
func.func @hidden_keys_are_left(%x: tensor<29x53xf32>, %v: tensor<53x17xf32>, %hidden: tensor<53xi1>) -> tensor<29x17xf32> {
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
  %shown = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, #whole, #whole], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %p : tensor<53xi1>, tensor<29x53xf32>) outs(%full : tensor<29x53xf32>) {
  ^bb0(%c: i1, %a: f32, %o: f32):
    %r = arith.select %c, %zero, %a : f32
    linalg.yield %r : f32
  } -> tensor<29x53xf32>
  %out = tensor.empty() : tensor<29x17xf32>
  %out0 = linalg.fill ins(%zero : f32) outs(%out : tensor<29x17xf32>) -> tensor<29x17xf32>
  %c = linalg.matmul ins(%shown, %v : tensor<29x53xf32>, tensor<53x17xf32>) outs(%out0 : tensor<29x17xf32>) -> tensor<29x17xf32>
  return %c : tensor<29x17xf32>
}

// A divisor that is not the sum of its dividends could be zero where the row is not: infinities of both signs would
// become one of them.
// CHECK-LABEL: func @any_other_divisor_is_left
// CHECK: arith.divf
// CHECK: linalg.batch_matmul
// CHECK-NOT: arith.divf
func.func @any_other_divisor_is_left(%d: tensor<6x29x53xf32>, %s: tensor<6x29xf32>, %v: tensor<6x53x17xf32>) -> tensor<6x29x17xf32> {
  %zero = arith.constant 0.0 : f32
  %full = tensor.empty() : tensor<6x29x53xf32>
  %e = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%d : tensor<6x29x53xf32>) outs(%full : tensor<6x29x53xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<6x29x53xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e, %s : tensor<6x29x53xf32>, tensor<6x29xf32>) outs(%full : tensor<6x29x53xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<6x29x53xf32>
  %out = tensor.empty() : tensor<6x29x17xf32>
  %out0 = linalg.fill ins(%zero : f32) outs(%out : tensor<6x29x17xf32>) -> tensor<6x29x17xf32>
  %c = linalg.batch_matmul ins(%p, %v : tensor<6x29x53xf32>, tensor<6x53x17xf32>) outs(%out0 : tensor<6x29x17xf32>) -> tensor<6x29x17xf32>
  return %c : tensor<6x29x17xf32>
}

// Exponentials of other values may be so large that products overflow, or so small that products underflow to zero.
// CHECK-LABEL: func @exponentials_without_a_maximum_are_left
// CHECK: arith.divf
// CHECK: linalg.batch_matmul
// CHECK-NOT: arith.divf
func.func @exponentials_without_a_maximum_are_left(%d: tensor<6x29x53xf32>, %v: tensor<6x53x17xf32>) -> tensor<6x29x17xf32> {
  %zero = arith.constant 0.0 : f32
  %full = tensor.empty() : tensor<6x29x53xf32>
  %rows = tensor.empty() : tensor<6x29xf32>
  %rows0 = linalg.fill ins(%zero : f32) outs(%rows : tensor<6x29xf32>) -> tensor<6x29xf32>
  %e = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%d : tensor<6x29x53xf32>) outs(%full : tensor<6x29x53xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<6x29x53xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%e : tensor<6x29x53xf32>) outs(%rows0 : tensor<6x29xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<6x29xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e, %s : tensor<6x29x53xf32>, tensor<6x29xf32>) outs(%full : tensor<6x29x53xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<6x29x53xf32>
  %out = tensor.empty() : tensor<6x29x17xf32>
  %out0 = linalg.fill ins(%zero : f32) outs(%out : tensor<6x29x17xf32>) -> tensor<6x29x17xf32>
  %c = linalg.batch_matmul ins(%p, %v : tensor<6x29x53xf32>, tensor<6x53x17xf32>) outs(%out0 : tensor<6x29x17xf32>) -> tensor<6x29x17xf32>
  return %c : tensor<6x29x17xf32>
}
