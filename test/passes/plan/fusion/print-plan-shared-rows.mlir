// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-plan{target=cuda:h200}))' -o /dev/null 2>&1 | FileCheck %s

#at = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Whole rows of 768 columns would leave most SMs without a block, so blocks share them: the grid has the columns, dim 2,
// which the sum reduces.
// CHECK: remark: kernel contract_reduce_{{.*}}: extents [256, 64, 768] {{.*}} grid [0, 2]
// CHECK: remark: input 1 from op 1 at scope block: blocks that share its rows exchange their results
func.func @shares(%x: tensor<256x64xf32>, %w: tensor<64x768xf32>) -> tensor<256x768xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x768xf32>
  %rows = tensor.empty() : tensor<256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x768xf32>) -> tensor<256x768xf32>
  %z = linalg.fill ins(%zero : f32) outs(%rows : tensor<256xf32>) -> tensor<256xf32>
  %p = linalg.matmul ins(%x, %w : tensor<256x64xf32>, tensor<64x768xf32>) outs(%f : tensor<256x768xf32>)
      -> tensor<256x768xf32>
  %s = linalg.generic {indexing_maps = [#at, #row], iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<256x768xf32>) outs(%z : tensor<256xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %v = arith.addf %a, %acc : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  %y = linalg.generic {indexing_maps = [#at, #row, #at], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s : tensor<256x768xf32>, tensor<256xf32>) outs(%e : tensor<256x768xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<256x768xf32>
  return %y : tensor<256x768xf32>
}

// A sum over 3072 products takes less time in steps that all blocks share. The edge names both times.
// CHECK-LABEL: remark: kernel contract_0: extents [128, 3072, 768]
// CHECK: from op 0 at scope launch: {{.*}}; with rows that blocks share instead: predicted to take
func.func @stays_whole(%x: tensor<128x3072xf32>, %w: tensor<3072x768xf32>) -> tensor<128x768xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %rows = tensor.empty() : tensor<128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  %z = linalg.fill ins(%zero : f32) outs(%rows : tensor<128xf32>) -> tensor<128xf32>
  %p = linalg.matmul ins(%x, %w : tensor<128x3072xf32>, tensor<3072x768xf32>) outs(%f : tensor<128x768xf32>)
      -> tensor<128x768xf32>
  %s = linalg.generic {indexing_maps = [#at, #row], iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<128x768xf32>) outs(%z : tensor<128xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %v = arith.addf %a, %acc : f32
    linalg.yield %v : f32
  } -> tensor<128xf32>
  %y = linalg.generic {indexing_maps = [#at, #row, #at], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s : tensor<128x768xf32>, tensor<128xf32>) outs(%e : tensor<128x768xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.divf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<128x768xf32>
  return %y : tensor<128x768xf32>
}
