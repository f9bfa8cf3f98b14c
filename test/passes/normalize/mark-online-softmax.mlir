// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-mark-online-softmax{target=x86-64-avx512}))' | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// The sum is relative to the maximum of its row, which may be used before the row has ended.
// CHECK-LABEL: func @sum_of_exponentials
// CHECK: linalg.generic {{.*}} attrs = {tile.form = "online softmax"}
// CHECK: arith.maximumf
// CHECK-NOT: tile.form
func.func @sum_of_exponentials(%x: tensor<6x513xf32>) -> tensor<6xf32> {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x513xf32>
  %f = tensor.empty() : tensor<6xf32>
  %l = linalg.fill ins(%low : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x513xf32>) outs(%l : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<6xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<6x513xf32>, tensor<6xf32>) outs(%e : tensor<6x513xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    %p = math.exp %n : f32
    linalg.yield %p : f32
  } -> tensor<6x513xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<6x513xf32>) outs(%z : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<6xf32>
  return %s : tensor<6xf32>
}

// A maximum over rows: the lanes of a vector are different columns.
// CHECK-LABEL: func @leaves_columns
// CHECK-NOT: tile.form
func.func @leaves_columns(%x: tensor<777x6xf32>) -> tensor<6xf32> {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<777x6xf32>
  %f = tensor.empty() : tensor<6xf32>
  %l = linalg.fill ins(%low : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %m = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<777x6xf32>) outs(%l : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<6xf32>
  %s = linalg.generic {indexing_maps = [#id, #column, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x, %m : tensor<777x6xf32>, tensor<6xf32>) outs(%z : tensor<6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    %p = math.exp %n : f32
    %q = arith.addf %p, %o : f32
    linalg.yield %q : f32
  } -> tensor<6xf32>
  return %s : tensor<6xf32>
}

// A row of few vectors stays in the L1 cache.
// CHECK-LABEL: func @leaves_short_rows
// CHECK-NOT: tile.form
func.func @leaves_short_rows(%x: tensor<6x77xf32>) -> tensor<6xf32> {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0.0 : f32
  %f = tensor.empty() : tensor<6xf32>
  %l = linalg.fill ins(%low : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x77xf32>) outs(%l : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<6xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %m : tensor<6x77xf32>, tensor<6xf32>) outs(%z : tensor<6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    %p = math.exp %n : f32
    %q = arith.addf %p, %o : f32
    linalg.yield %q : f32
  } -> tensor<6xf32>
  return %s : tensor<6xf32>
}

// A factor from the references does not correct the sum of x / m, so m must be complete.
// CHECK-LABEL: func @leaves_what_is_not_proportional
// CHECK-NOT: tile.form
func.func @leaves_what_is_not_proportional(%x: tensor<6x513xf32>) -> tensor<6xf32> {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %f = tensor.empty() : tensor<6xf32>
  %l = linalg.fill ins(%low : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x513xf32>) outs(%l : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<6xf32>
  %s = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %m : tensor<6x513xf32>, tensor<6xf32>) outs(%z : tensor<6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    %p = math.exp %n : f32
    %r = arith.addf %p, %one : f32
    %q = arith.addf %r, %o : f32
    linalg.yield %q : f32
  } -> tensor<6xf32>
  return %s : tensor<6xf32>
}

// A contraction reads the exponentials from memory, so they must be relative to one number for each block.
// CHECK-LABEL: func @what_a_contraction_multiplies_with
// CHECK: linalg.generic {{.*}} attrs = {tile.form = "online softmax of blocks"}
// CHECK: arith.maximumf
// CHECK-NOT: tile.form
func.func @what_a_contraction_multiplies_with(%x: tensor<6x513xf32>, %v: tensor<513x7xbf16>)
    -> (tensor<6xf32>, tensor<6x7xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x513xf32>
  %f = tensor.empty() : tensor<6xf32>
  %l = linalg.fill ins(%low : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x513xf32>) outs(%l : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<6xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<6x513xf32>, tensor<6xf32>) outs(%e : tensor<6x513xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    %p = math.exp %n : f32
    linalg.yield %p : f32
  } -> tensor<6x513xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<6x513xf32>) outs(%z : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %a, %o : f32
    linalg.yield %n : f32
  } -> tensor<6xf32>
  %g = tensor.empty() : tensor<6x513xbf16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<6x513xf32>) outs(%g : tensor<6x513xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %n = arith.truncf %a : f32 to bf16
    linalg.yield %n : bf16
  } -> tensor<6x513xbf16>
  %h = tensor.empty() : tensor<6x7xf32>
  %h0 = linalg.fill ins(%c0 : f32) outs(%h : tensor<6x7xf32>) -> tensor<6x7xf32>
  %c = linalg.matmul ins(%w, %v : tensor<6x513xbf16>, tensor<513x7xbf16>) outs(%h0 : tensor<6x7xf32>) -> tensor<6x7xf32>
  return %s, %c : tensor<6xf32>, tensor<6x7xf32>
}
