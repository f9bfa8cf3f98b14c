// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-convolution-to-matmul{target=cuda:h200},tile-normalize,tile-print-plan{target=cuda:h200}))' -o /dev/null 2>&1 | FileCheck %s

// Sums over an image whose channels are innermost, of windows that are sums themselves. In one group, a block would have
// memory for so few channels of the whole image that its threads read parts of lines: there is no such block.
// CHECK: extents [56, 56, 3, 3, 192] tiles [{{[0-9]+}}, {{[0-9]+}}, 3, 3, {{(32|64|128|192)}}]
func.func @windows_then_image(%x: tensor<1x58x58x192xf32>) -> tensor<192xf32> {
  %zero = arith.constant 0.0 : f32
  %window = tensor.empty() : tensor<3x3xf32>
  %empty = tensor.empty() : tensor<1x56x56x192xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x56x56x192xf32>) -> tensor<1x56x56x192xf32>
  %pool = linalg.pooling_nhwc_sum ins(%x, %window : tensor<1x58x58x192xf32>, tensor<3x3xf32>)
      outs(%start : tensor<1x56x56x192xf32>) -> tensor<1x56x56x192xf32>
  %one = tensor.empty() : tensor<192xf32>
  %none = linalg.fill ins(%zero : f32) outs(%one : tensor<192xf32>) -> tensor<192xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(h, w, c) -> (0, h, w, c)>, affine_map<(h, w, c) -> (c)>],
                         iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%pool : tensor<1x56x56x192xf32>) outs(%none : tensor<192xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<192xf32>
  return %sum : tensor<192xf32>
}
