// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(tile-form-subprograms{target=x86-64-avx512 cores=2})' | FileCheck %s --check-prefixes=CHECK,DEFAULT
// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(tile-form-subprograms{target=x86-64-avx512 cores=2 numerics=strict})' | FileCheck %s --check-prefixes=CHECK,STRICT
// RUN: not tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(tile-form-subprograms{numerics=exact})' 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// RUN: not tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(tile-form-subprograms{target=x86-64-avx512 numerics=tf32})' 2>&1 | FileCheck %s --check-prefix=NO-TF32

// UNKNOWN: error: unknown numerics 'exact'; choose default, strict or tf32
// NO-TF32: error: numerics 'tf32' are for GPUs; target 'x86-64-avx512' multiplies f32 without rounding: choose default or strict

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// By default, a bf16 sum has an f32 accumulator, and its addends are not rounded; with strict numerics it is the
// graph's sum, in the graph's order.
// CHECK-LABEL: func @sum_of_products
// DEFAULT: numerics <relaxed, fast>
// STRICT: numerics <kept, accurate>
// DEFAULT: tile.connect %{{.*}} <thread>{{.*}} unrounded
// STRICT-NOT: unrounded
// DEFAULT: inits [0.000000e+00 : f32] dims
// DEFAULT: ^bb0(%{{.*}}: bf16, %[[ACC:.*]]: f32):
// DEFAULT: arith.addf %[[ACC]], %{{.*}} : f32
// STRICT: inits [0.000000e+00 : bf16] in_order dims
// STRICT: ^bb0(%{{.*}}: bf16, %[[ACC:.*]]: bf16):
// STRICT: arith.addf %[[ACC]], %{{.*}} : bf16
func.func @sum_of_products(%x: tensor<37x1027xbf16>, %y: tensor<37x1027xbf16>) -> tensor<37xbf16> {
  %zero = arith.constant dense<0.0> : tensor<37xbf16>
  %e = tensor.empty() : tensor<37x1027xbf16>
  %p = linalg.mul ins(%x, %y : tensor<37x1027xbf16>, tensor<37x1027xbf16>)
                  outs(%e : tensor<37x1027xbf16>) -> tensor<37x1027xbf16>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<37x1027xbf16>) outs(%zero : tensor<37xbf16>) dimensions = [1]
  return %s : tensor<37xbf16>
}

// An f32 softmax of bf16 scores: the maximum, and the values that it is subtracted from, both use unrounded scores.
// CHECK-LABEL: func @softmax_of_widened_scores
// DEFAULT: %[[S:.*]] = tile.expr
// DEFAULT: tile.connect %{{.*}} <thread>{{.*}} unrounded : tensor<37x1027xbf16>
// STRICT-NOT: unrounded
func.func @softmax_of_widened_scores(%x: tensor<37x1027xbf16>, %y: tensor<37x1027xbf16>) -> tensor<37x1027xf32> {
  %low = arith.constant dense<0xFF800000> : tensor<37xf32>
  %e = tensor.empty() : tensor<37x1027xbf16>
  %f = tensor.empty() : tensor<37x1027xf32>
  %p = linalg.mul ins(%x, %y : tensor<37x1027xbf16>, tensor<37x1027xbf16>)
                  outs(%e : tensor<37x1027xbf16>) -> tensor<37x1027xbf16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<37x1027xbf16>) outs(%f : tensor<37x1027xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %r = arith.extf %a : bf16 to f32
    linalg.yield %r : f32
  } -> tensor<37x1027xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%w : tensor<37x1027xf32>) outs(%low : tensor<37xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<37xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %m : tensor<37x1027xf32>, tensor<37xf32>) outs(%f : tensor<37x1027xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %r = math.exp %s : f32
    linalg.yield %r : f32
  } -> tensor<37x1027xf32>
  return %d : tensor<37x1027xf32>
}

// A maximum that is a result keeps its rounded operand, and so do other readers of that operand beside it.
// CHECK-LABEL: func @maximum_of_widened_terms
// CHECK-NOT: unrounded : tensor<37x1027xbf16>
func.func @maximum_of_widened_terms(%x: tensor<37x1027xbf16>, %y: tensor<37x1027xbf16>) -> tensor<37xf32> {
  %low = arith.constant dense<0xFF800000> : tensor<37xf32>
  %e = tensor.empty() : tensor<37x1027xbf16>
  %f = tensor.empty() : tensor<37x1027xf32>
  %p = linalg.mul ins(%x, %y : tensor<37x1027xbf16>, tensor<37x1027xbf16>)
                  outs(%e : tensor<37x1027xbf16>) -> tensor<37x1027xbf16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<37x1027xbf16>) outs(%f : tensor<37x1027xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %r = arith.extf %a : bf16 to f32
    linalg.yield %r : f32
  } -> tensor<37x1027xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%w : tensor<37x1027xf32>) outs(%low : tensor<37xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<37xf32>
  return %m : tensor<37xf32>
}

// A bf16 softmax: the maximum is rounded like the scores, so it must be subtracted from rounded scores, too.
// CHECK-LABEL: func @softmax_of_narrow_scores
// CHECK-NOT: unrounded : tensor<37x1027xbf16>
func.func @softmax_of_narrow_scores(%x: tensor<37x1027xbf16>) -> tensor<37x1027xf32> {
  %low = arith.constant dense<0xFF80> : tensor<37xbf16>
  %e = tensor.empty() : tensor<37x1027xbf16>
  %f = tensor.empty() : tensor<37x1027xf32>
  %p = linalg.mul ins(%x, %x : tensor<37x1027xbf16>, tensor<37x1027xbf16>)
                  outs(%e : tensor<37x1027xbf16>) -> tensor<37x1027xbf16>
  %m = linalg.reduce { arith.maximumf } ins(%p : tensor<37x1027xbf16>) outs(%low : tensor<37xbf16>) dimensions = [1]
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %m : tensor<37x1027xbf16>, tensor<37xbf16>) outs(%f : tensor<37x1027xf32>) {
  ^bb0(%a: bf16, %b: bf16, %o: f32):
    %s = arith.subf %a, %b : bf16
    %w = arith.extf %s : bf16 to f32
    %r = math.exp %w : f32
    linalg.yield %r : f32
  } -> tensor<37x1027xf32>
  return %d : tensor<37x1027xf32>
}
