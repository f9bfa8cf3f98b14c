// RUN: tilewright-opt %s --allow-unregistered-dialect --mlir-print-local-scope --pass-pipeline='builtin.module(func.func(tile-mark-online-softmax{target=x86-64-avx512}))' | FileCheck %s

#scores = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// Keys behind a row's own, the fourth for the first row, are -infinity; several operators make up the comparison.
// CHECK-LABEL: func @compared_indices
// CHECK: linalg.generic {{.*}} attrs = {tile.counted = affine_map<(d0, d1) -> (d0 + 4)>, tile.form = "online softmax with a causal bound"}
// CHECK: arith.maximumf
func.func @compared_indices(%q: tensor<4x3xf32>, %k: tensor<3x7xf32>, %v: tensor<7x2xf32>) -> (tensor<4xf32>, tensor<4x2xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x7xf32>
  %f = tensor.empty() : tensor<4xf32>
  %h = tensor.empty() : tensor<4x2xf32>
  %e0 = linalg.fill ins(%c0 : f32) outs(%e : tensor<4x7xf32>) -> tensor<4x7xf32>
  %l = linalg.fill ins(%low : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %h0 = linalg.fill ins(%c0 : f32) outs(%h : tensor<4x2xf32>) -> tensor<4x2xf32>
  %p = linalg.matmul ins(%q, %k : tensor<4x3xf32>, tensor<3x7xf32>) outs(%e0 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %i = tensor.empty() : tensor<7xi64>
  %at = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>], iterator_types = ["parallel"]} outs(%i : tensor<7xi64>) {
  ^bb0(%o: i64):
    %n = linalg.index 0 : index
    %w = arith.index_cast %n : index to i64
    linalg.yield %w : i64
  } -> tensor<7xi64>
  %x = linalg.generic {indexing_maps = [#scores, #column, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%p, %at : tensor<4x7xf32>, tensor<7xi64>) outs(%e : tensor<4x7xf32>) {
  ^bb0(%a: f32, %j: i64, %o: f32):
    %three = arith.constant 3 : i64
    %n = linalg.index 0 : index
    %r = arith.index_cast %n : index to i64
    %end = arith.addi %r, %three : i64
    %counts = arith.cmpi sle, %j, %end : i64
    %w = arith.select %counts, %a, %low : f32
    linalg.yield %w : f32
  } -> tensor<4x7xf32>
  %m = linalg.generic {indexing_maps = [#scores, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x7xf32>) outs(%l : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  %d = linalg.generic {indexing_maps = [#scores, #row, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<4x7xf32>, tensor<4xf32>) outs(%e : tensor<4x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    %w = math.exp %n : f32
    linalg.yield %w : f32
  } -> tensor<4x7xf32>
  %s = linalg.generic {indexing_maps = [#scores, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<4x7xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  %c = linalg.matmul ins(%d, %v : tensor<4x7xf32>, tensor<7x2xf32>) outs(%h0 : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %s, %c : tensor<4xf32>, tensor<4x2xf32>
}

// The mask is a constant of two triangles with the lowest number in the upper one, and every row has an unmasked key.
// CHECK-LABEL: func @adds_a_triangle
// CHECK: linalg.generic {{.*}} attrs = {tile.counted = affine_map<(d0, d1) -> (d0 + 1)>, tile.form = "online softmax with a causal bound"}
// CHECK: arith.maximumf
func.func @adds_a_triangle(%q: tensor<4x3xf32>, %k: tensor<3x7xf32>, %v: tensor<7x2xf32>) -> (tensor<4xf32>, tensor<4x2xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x7xf32>
  %f = tensor.empty() : tensor<4xf32>
  %h = tensor.empty() : tensor<4x2xf32>
  %e0 = linalg.fill ins(%c0 : f32) outs(%e : tensor<4x7xf32>) -> tensor<4x7xf32>
  %l = linalg.fill ins(%low : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %h0 = linalg.fill ins(%c0 : f32) outs(%h : tensor<4x2xf32>) -> tensor<4x2xf32>
  %p = linalg.matmul ins(%q, %k : tensor<4x3xf32>, tensor<3x7xf32>) outs(%e0 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %mask = arith.constant dense<[[0.0, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF], [0.0, 0.0, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF], [0.0, 0.0, 0.0, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF], [0.0, 0.0, 0.0, 0.0, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF]]> : tensor<4x7xf32>
  %x = linalg.generic {indexing_maps = [#scores, #scores, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%p, %mask : tensor<4x7xf32>, tensor<4x7xf32>) outs(%e : tensor<4x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.addf %a, %b : f32
    linalg.yield %n : f32
  } -> tensor<4x7xf32>
  %m = linalg.generic {indexing_maps = [#scores, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x7xf32>) outs(%l : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  %d = linalg.generic {indexing_maps = [#scores, #row, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<4x7xf32>, tensor<4xf32>) outs(%e : tensor<4x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    %w = math.exp %n : f32
    linalg.yield %w : f32
  } -> tensor<4x7xf32>
  %s = linalg.generic {indexing_maps = [#scores, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<4x7xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  %c = linalg.matmul ins(%d, %v : tensor<4x7xf32>, tensor<7x2xf32>) outs(%h0 : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %s, %c : tensor<4xf32>, tensor<4x2xf32>
}

// The same mask is loaded from a file that only the front end has seen.
// CHECK-LABEL: func @adds_a_triangle_of_a_file
// CHECK: linalg.generic {{.*}} attrs = {tile.counted = affine_map<(d0, d1) -> (d0 + 2)>, tile.form = "online softmax with a causal bound"}
// CHECK: arith.maximumf
func.func @adds_a_triangle_of_a_file(%q: tensor<4x3xf32>, %k: tensor<3x7xf32>, %v: tensor<7x2xf32>) -> (tensor<4xf32>, tensor<4x2xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x7xf32>
  %f = tensor.empty() : tensor<4xf32>
  %h = tensor.empty() : tensor<4x2xf32>
  %e0 = linalg.fill ins(%c0 : f32) outs(%e : tensor<4x7xf32>) -> tensor<4x7xf32>
  %l = linalg.fill ins(%low : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %h0 = linalg.fill ins(%c0 : f32) outs(%h : tensor<4x2xf32>) -> tensor<4x2xf32>
  %p = linalg.matmul ins(%q, %k : tensor<4x3xf32>, tensor<3x7xf32>) outs(%e0 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %mask = "util.global.load"() <{global = @mask}> {tile.triangles = [2 : i64, 0.0 : f64, 0xFFF0000000000000 : f64]} : () -> tensor<4x7xf32>
  %x = linalg.generic {indexing_maps = [#scores, #scores, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%p, %mask : tensor<4x7xf32>, tensor<4x7xf32>) outs(%e : tensor<4x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.addf %a, %b : f32
    linalg.yield %n : f32
  } -> tensor<4x7xf32>
  %m = linalg.generic {indexing_maps = [#scores, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x7xf32>) outs(%l : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  %d = linalg.generic {indexing_maps = [#scores, #row, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<4x7xf32>, tensor<4xf32>) outs(%e : tensor<4x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    %w = math.exp %n : f32
    linalg.yield %w : f32
  } -> tensor<4x7xf32>
  %s = linalg.generic {indexing_maps = [#scores, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<4x7xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  %c = linalg.matmul ins(%d, %v : tensor<4x7xf32>, tensor<7x2xf32>) outs(%h0 : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %s, %c : tensor<4xf32>, tensor<4x2xf32>
}

// With -infinity as mask, such a row is NaN for any keys.
// CHECK-LABEL: func @adds_a_triangle_of_infinities
// CHECK: linalg.generic {{.*}} attrs = {tile.counted = affine_map<(d0, d1) -> (d0)>, tile.form = "online softmax with a causal bound"}
// CHECK: arith.maximumf
func.func @adds_a_triangle_of_infinities(%q: tensor<4x3xf32>, %k: tensor<3x7xf32>, %v: tensor<7x2xf32>) -> (tensor<4xf32>, tensor<4x2xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x7xf32>
  %f = tensor.empty() : tensor<4xf32>
  %h = tensor.empty() : tensor<4x2xf32>
  %e0 = linalg.fill ins(%c0 : f32) outs(%e : tensor<4x7xf32>) -> tensor<4x7xf32>
  %l = linalg.fill ins(%low : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %h0 = linalg.fill ins(%c0 : f32) outs(%h : tensor<4x2xf32>) -> tensor<4x2xf32>
  %p = linalg.matmul ins(%q, %k : tensor<4x3xf32>, tensor<3x7xf32>) outs(%e0 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %mask = arith.constant dense<[[0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000], [0.0, 0.0, 0.0, 0xFF800000, 0xFF800000, 0xFF800000, 0xFF800000]]> : tensor<4x7xf32>
  %x = linalg.generic {indexing_maps = [#scores, #scores, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%p, %mask : tensor<4x7xf32>, tensor<4x7xf32>) outs(%e : tensor<4x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.addf %a, %b : f32
    linalg.yield %n : f32
  } -> tensor<4x7xf32>
  %m = linalg.generic {indexing_maps = [#scores, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x7xf32>) outs(%l : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  %d = linalg.generic {indexing_maps = [#scores, #row, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<4x7xf32>, tensor<4xf32>) outs(%e : tensor<4x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    %w = math.exp %n : f32
    linalg.yield %w : f32
  } -> tensor<4x7xf32>
  %s = linalg.generic {indexing_maps = [#scores, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<4x7xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  %c = linalg.matmul ins(%d, %v : tensor<4x7xf32>, tensor<7x2xf32>) outs(%h0 : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %s, %c : tensor<4xf32>, tensor<4x2xf32>
}
