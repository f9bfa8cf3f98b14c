// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(tile-lay-out-images{target=cuda:h200})' | FileCheck %s
// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(tile-lay-out-images{target=cuda:h200 numerics=strict})' | FileCheck %s --check-prefix=STRICT
// RUN: echo '{"kernels": [], "edges": [], "forms": [{"form": "channels last", "number": 1, "taken": false}]}' > %t.json
// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(tile-request-forms{plan-in=%t.json},tile-lay-out-images{target=cuda:h200})' | FileCheck %s --check-prefix=MIXED

// Convolutions that follow each other: the result of the first has channels last, and the windows of the second are
// copied as whole vectors of channels. Their weights have the same order of K.
// CHECK-LABEL: func.func @joined
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<196x128xf32>)
// CHECK: linalg.transpose ins({{.*}} : tensor<128x128x3x3xf16>) outs({{.*}} : tensor<128x3x3x128xf16>) permutation = [0, 2, 3, 1]
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<196x1152xf16>, tensor<128x1152xf16>) outs({{.*}} : tensor<196x128xf32>)
// CHECK-NOT: linalg.conv
// A plan may give one of the images between them the layout of the model. Its reader has windows of it in that order,
// and the windows that it is computed from are still runs of channels.
// MIXED-LABEL: func.func @joined
// MIXED: linalg.generic {{.*}} outs({{.*}} : tensor<196x128xf32>)
// MIXED: linalg.generic {{.*}} ins({{.*}} : tensor<1x1152x196xf16>, tensor<128x1152xf16>) outs({{.*}} : tensor<1x128x196xf32>)
// MIXED: linalg.generic {{.*}} outs({{.*}} : tensor<196x128xf32>)
// Strict numerics keep the order of the sums.
// STRICT-LABEL: func.func @joined
// STRICT-NOT: tensor<196x1152xf16>
// STRICT: return
"util.global"() <{initial_value = #stream.parameter.named<"model"::"v"> : tensor<128x128x1x1xf16>, sym_name = "v", sym_visibility = "private", type = tensor<128x128x1x1xf16>}> : () -> ()
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<128x128x3x3xf16>, sym_name = "w", sym_visibility = "private", type = tensor<128x128x3x3xf16>}> : () -> ()
func.func @joined(%x: tensor<1x128x14x14xf16>) -> tensor<128xf32> {
  %v = "util.global.load"() <{global = @v}> : () -> tensor<128x128x1x1xf16>
  %w = "util.global.load"() <{global = @w}> : () -> tensor<128x128x3x3xf16>
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<1x128x14x14xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x128x14x14xf32>) -> tensor<1x128x14x14xf32>
  %first = linalg.conv_2d_nchw_fchw ins(%x, %v : tensor<1x128x14x14xf16>, tensor<128x128x1x1xf16>)
      outs(%zeros : tensor<1x128x14x14xf32>) -> tensor<1x128x14x14xf32>
  %narrow = tensor.empty() : tensor<1x128x14x14xf16>
  %rounded = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
                             iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%first : tensor<1x128x14x14xf32>) outs(%narrow : tensor<1x128x14x14xf16>) {
  ^bb0(%a: f32, %out: f16):
    %r = arith.truncf %a : f32 to f16
    linalg.yield %r : f16
  } -> tensor<1x128x14x14xf16>
  %padded = tensor.pad %rounded low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %none : f16
  } : tensor<1x128x14x14xf16> to tensor<1x128x16x16xf16>
  %second = linalg.conv_2d_nchw_fchw ins(%padded, %w : tensor<1x128x16x16xf16>, tensor<128x128x3x3xf16>)
      outs(%zeros : tensor<1x128x14x14xf32>) -> tensor<1x128x14x14xf32>
  %again = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
                           iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%second : tensor<1x128x14x14xf32>) outs(%narrow : tensor<1x128x14x14xf16>) {
  ^bb0(%a: f32, %out: f16):
    %r = arith.truncf %a : f32 to f16
    linalg.yield %r : f16
  } -> tensor<1x128x14x14xf16>
  %wide = tensor.pad %again low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %none : f16
  } : tensor<1x128x14x14xf16> to tensor<1x128x16x16xf16>
  %third = linalg.conv_2d_nchw_fchw ins(%wide, %w : tensor<1x128x16x16xf16>, tensor<128x128x3x3xf16>)
      outs(%zeros : tensor<1x128x14x14xf32>) -> tensor<1x128x14x14xf32>
  %few = tensor.empty() : tensor<128xf32>
  %start = linalg.fill ins(%zero : f32) outs(%few : tensor<128xf32>) -> tensor<128xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(c, h, w) -> (0, c, h, w)>, affine_map<(c, h, w) -> (c)>],
                         iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%third : tensor<1x128x14x14xf32>) outs(%start : tensor<128xf32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<128xf32>
  return %sum : tensor<128xf32>
}

// A single convolution keeps the layout of the model: its image has to be read from there in any case.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<1x32x784xf32>)
// CHECK: return
func.func @alone(%x: tensor<1x64x30x30xf16>, %w: tensor<32x64x3x3xf16>) -> tensor<1x32x28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x28x28xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x64x30x30xf16>, tensor<32x64x3x3xf16>)
      outs(%zeros : tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
  return %y : tensor<1x32x28x28xf32>
}
