// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-plan{target=cuda:h200}))' -o /dev/null 2>&1 | FileCheck %s

// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-plan{target=cuda:h200}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-plan{target=cuda:h200}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=SLICES

#id = affine_map<(i, j, k) -> (i, j, k)>

// A reshape between two kernels does not keep them apart: it becomes part of its reader.
// CHECK: remark: kernel contract_maximumf_0: extents [768, 3072]
// CHECK: remark: kernel contract_maximumf_0: extents [3072, 768]
// CHECK: remark: input 0 from op 2 at scope grid
func.func @through(%x: tensor<1x768xf32>, %w: tensor<768x3072xf32>, %v: tensor<3072x768xf32>) -> tensor<1x768xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3072xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3072xf32>) -> tensor<1x3072xf32>
  %m = linalg.matmul ins(%x, %w : tensor<1x768xf32>, tensor<768x3072xf32>) outs(%f : tensor<1x3072xf32>) -> tensor<1x3072xf32>
  %m3 = tensor.expand_shape %m [[0, 1], [2]] output_shape [1, 1, 3072] : tensor<1x3072xf32> into tensor<1x1x3072xf32>
  %e3 = tensor.empty() : tensor<1x1x3072xf32>
  %r3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%m3 : tensor<1x1x3072xf32>) outs(%e3 : tensor<1x1x3072xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<1x1x3072xf32>
  %r = tensor.collapse_shape %r3 [[0, 1], [2]] : tensor<1x1x3072xf32> into tensor<1x3072xf32>
  %e2 = tensor.empty() : tensor<1x768xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x768xf32>) -> tensor<1x768xf32>
  %y = linalg.matmul ins(%r, %v : tensor<1x3072xf32>, tensor<3072x768xf32>) outs(%f2 : tensor<1x768xf32>) -> tensor<1x768xf32>
  return %y : tensor<1x768xf32>
}

// A reshape with other readers stays outside, and the part that reads it gets it from another kernel.
// ELSEWHERE-LABEL: print-plan-grid.mlir:36:1: remark: kernel contract_maximumf_0: extents [768, 3072]
// ELSEWHERE: remark: kernel contract_0: extents [3072, 768]
// ELSEWHERE: op 3 left: a reshape at the border of a kernel: a view, nothing to compute
func.func @read_elsewhere(%x: tensor<1x768xf32>, %w: tensor<768x3072xf32>, %v: tensor<3072x768xf32>) -> (tensor<1x3072xf32>, tensor<1x768xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3072xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3072xf32>) -> tensor<1x3072xf32>
  %m = linalg.matmul ins(%x, %w : tensor<1x768xf32>, tensor<768x3072xf32>) outs(%f : tensor<1x3072xf32>) -> tensor<1x3072xf32>
  %m3 = tensor.expand_shape %m [[0, 1], [2]] output_shape [1, 1, 3072] : tensor<1x3072xf32> into tensor<1x1x3072xf32>
  %e3 = tensor.empty() : tensor<1x1x3072xf32>
  %r3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%m3 : tensor<1x1x3072xf32>) outs(%e3 : tensor<1x1x3072xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %zero : f32
    linalg.yield %s : f32
  } -> tensor<1x1x3072xf32>
  %r = tensor.collapse_shape %r3 [[0, 1], [2]] : tensor<1x1x3072xf32> into tensor<1x3072xf32>
  %e2 = tensor.empty() : tensor<1x768xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x768xf32>) -> tensor<1x768xf32>
  %y = linalg.matmul ins(%r, %v : tensor<1x3072xf32>, tensor<3072x768xf32>) outs(%f2 : tensor<1x768xf32>) -> tensor<1x768xf32>
  return %r, %y : tensor<1x3072xf32>, tensor<1x768xf32>
}

// Strided slices of a kernel's result become a phase of it: alone, each would be a launch that copies.
// SLICES-LABEL: remark: kernel contract_0: extents [128, 768, 2304]
// SLICES: remark: input 0 from op 0 at scope grid
// SLICES-LABEL: remark: kernel contract_0: extents [768, 2304]
// SLICES: op 1 left: movement that no Tilewright kernel computes with
func.func @slices(%x: tensor<128x768xf32>, %w: tensor<768x2304xf32>) -> (tensor<128x768xf32>, tensor<128x768xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x2304xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x2304xf32>) -> tensor<128x2304xf32>
  %m = linalg.matmul ins(%x, %w : tensor<128x768xf32>, tensor<768x2304xf32>) outs(%f : tensor<128x2304xf32>) -> tensor<128x2304xf32>
  %k = tensor.extract_slice %m[0, 768] [128, 768] [1, 1] : tensor<128x2304xf32> to tensor<128x768xf32>
  %v = tensor.extract_slice %m[0, 1536] [128, 768] [1, 1] : tensor<128x2304xf32> to tensor<128x768xf32>
  return %k, %v : tensor<128x768xf32>, tensor<128x768xf32>
}

// Slices of a single row are contiguous, and cost nothing.
func.func @slices_of_a_row(%x: tensor<1x768xf32>, %w: tensor<768x2304xf32>) -> (tensor<1x768xf32>, tensor<1x768xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x2304xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2304xf32>) -> tensor<1x2304xf32>
  %m = linalg.matmul ins(%x, %w : tensor<1x768xf32>, tensor<768x2304xf32>) outs(%f : tensor<1x2304xf32>) -> tensor<1x2304xf32>
  %k = tensor.extract_slice %m[0, 768] [1, 768] [1, 1] : tensor<1x2304xf32> to tensor<1x768xf32>
  %v = tensor.extract_slice %m[0, 1536] [1, 768] [1, 1] : tensor<1x2304xf32> to tensor<1x768xf32>
  return %k, %v : tensor<1x768xf32>, tensor<1x768xf32>
}
