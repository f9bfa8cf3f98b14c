// RUN: tilewright-opt %s --allow-unregistered-dialect --mlir-print-local-scope --pass-pipeline='builtin.module(func.func(tile-mark-online-softmax{target=x86-64-avx512}))' | FileCheck %s

#scores = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// The first row has only masked keys: with the lowest number as mask, all keys get the same weight.
// CHECK-LABEL: func @leaves_rows_of_lowest_numbers
// CHECK-NOT: tile.counted
// CHECK: linalg.generic {{.*}} attrs = {tile.form = "online softmax of blocks"}
// CHECK: arith.maximumf
func.func @leaves_rows_of_lowest_numbers(%q: tensor<4x3xf32>, %k: tensor<3x7xf32>, %v: tensor<7x2xf32>) -> (tensor<4xf32>, tensor<4x2xf32>) {
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
  %mask = arith.constant dense<[[0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF], [0.0, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF], [0.0, 0.0, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF], [0.0, 0.0, 0.0, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF]]> : tensor<4x7xf32>
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

// Another mask may leave only lowest numbers in a row.
// CHECK-LABEL: func @leaves_lowest_numbers_beside_another_mask
// CHECK-NOT: tile.counted
// CHECK: linalg.generic {{.*}} attrs = {tile.form = "online softmax of blocks"}
// CHECK: arith.maximumf
func.func @leaves_lowest_numbers_beside_another_mask(%q: tensor<4x3xf32>, %k: tensor<3x7xf32>, %v: tensor<7x2xf32>, %other: tensor<4x7xf32>) -> (tensor<4xf32>, tensor<4x2xf32>) {
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
  %mask2 = linalg.generic {indexing_maps = [#scores, #scores, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%mask, %other : tensor<4x7xf32>, tensor<4x7xf32>) outs(%e : tensor<4x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.addf %a, %b : f32
    linalg.yield %n : f32
  } -> tensor<4x7xf32>
  %x = linalg.generic {indexing_maps = [#scores, #scores, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%p, %mask2 : tensor<4x7xf32>, tensor<4x7xf32>) outs(%e : tensor<4x7xf32>) {
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

// A mask that is an input is unknown.
// CHECK-LABEL: func @leaves_inputs
// CHECK-NOT: tile.counted
// CHECK: linalg.generic {{.*}} attrs = {tile.form = "online softmax of blocks"}
// CHECK: arith.maximumf
func.func @leaves_inputs(%q: tensor<4x3xf32>, %k: tensor<3x7xf32>, %v: tensor<7x2xf32>, %mask: tensor<4x7xf32>) -> (tensor<4xf32>, tensor<4x2xf32>) {
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

// If 32-bit arithmetic that may wrap computes the end of a row, all elements are read.
// CHECK-LABEL: func @wrapping_indices
// CHECK-NOT: tile.counted
// CHECK: return
func.func @wrapping_indices(%q: tensor<5x3xf32>, %k: tensor<3x7xf32>, %v: tensor<7x2xf32>) -> (tensor<5xf32>, tensor<5x2xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %f = tensor.empty() : tensor<5xf32>
  %h = tensor.empty() : tensor<5x2xf32>
  %e0 = linalg.fill ins(%c0 : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %l = linalg.fill ins(%low : f32) outs(%f : tensor<5xf32>) -> tensor<5xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<5xf32>) -> tensor<5xf32>
  %h0 = linalg.fill ins(%c0 : f32) outs(%h : tensor<5x2xf32>) -> tensor<5x2xf32>
  %p = linalg.matmul ins(%q, %k : tensor<5x3xf32>, tensor<3x7xf32>) outs(%e0 : tensor<5x7xf32>) -> tensor<5x7xf32>
  %i = tensor.empty() : tensor<7xi32>
  %at = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>], iterator_types = ["parallel"]} outs(%i : tensor<7xi32>) {
  ^bb0(%o: i32):
    %n = linalg.index 0 : index
    %w = arith.index_cast %n : index to i32
    linalg.yield %w : i32
  } -> tensor<7xi32>
  %x = linalg.generic {indexing_maps = [#scores, #column, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%p, %at : tensor<5x7xf32>, tensor<7xi32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%a: f32, %j: i32, %o: f32):
    %three = arith.constant 3 : i32
    %n = linalg.index 0 : index
    %r = arith.index_cast %n : index to i32
    %big = arith.constant -1073741824 : i32
    %end0 = arith.muli %r, %big : i32
    %end = arith.addi %end0, %three : i32
    %counts = arith.cmpi sle, %j, %end : i32
    %w = arith.select %counts, %a, %low : f32
    linalg.yield %w : f32
  } -> tensor<5x7xf32>
  %m = linalg.generic {indexing_maps = [#scores, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x7xf32>) outs(%l : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<5xf32>
  %d = linalg.generic {indexing_maps = [#scores, #row, #scores], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<5x7xf32>, tensor<5xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    %w = math.exp %n : f32
    linalg.yield %w : f32
  } -> tensor<5x7xf32>
  %s = linalg.generic {indexing_maps = [#scores, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<5x7xf32>) outs(%z : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<5xf32>
  %c = linalg.matmul ins(%d, %v : tensor<5x7xf32>, tensor<7x2xf32>) outs(%h0 : tensor<5x2xf32>) -> tensor<5x2xf32>
  return %s, %c : tensor<5xf32>, tensor<5x2xf32>
}
