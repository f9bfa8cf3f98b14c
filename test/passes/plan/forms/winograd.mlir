// RUN: tilewright-opt %s --allow-unregistered-dialect --remark-format=emitRemark --remarks-filter='tile-(lay-out-images|store-weights)' \
// RUN:   --pass-pipeline='builtin.module(tile-lay-out-images{target=x86-64-avx2},func.func(tile-pack-weights{target=x86-64-avx2}),tile-store-weights{scopes=model recipes=-})' \
// RUN:   2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(tile-lay-out-images{target=x86-64-avx2 numerics=strict})' | FileCheck %s --check-prefix=STRICT
// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(tile-lay-out-images{target=cuda:h200})' | FileCheck %s --check-prefix=STRICT

// A convolution of many channels becomes 16 contractions of sums of points, which have a known matrix, with sums of
// weights, which are stored. Those of the results have a known matrix, too.
// REMARK: form 'winograd' 0 of linalg.conv_2d_nhwc_hwcf is taken
// REMARK: stored as model::w/packed-{{.*}}product(reshape(model::w : 3x3x128x96) : 9x128x96, matrix of 16 rows) : 16x128x96
// CHECK: "matrix": [
// CHECK: "step": "product"
// CHECK-LABEL: func.func @convolution
// CHECK: linalg.generic {{.*}} attrs = {tile.factors = dense<{{.*}}> : tensor<16x16xf32>}
// CHECK: linalg.generic {{.*}} attrs = {tile.form = "winograd"}
// CHECK: linalg.generic {{.*}} attrs = {tile.factors = dense<{{.*}}> : tensor<4x16xf32>}
// CHECK-NOT: linalg.conv
// Neither strict numerics nor GPUs have this form.
// STRICT-LABEL: func.func @convolution
// STRICT-NOT: tile.factors
// STRICT: return
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<3x3x128x96xf32>, sym_name = "w", sym_visibility = "private", type = tensor<3x3x128x96xf32>}> : () -> ()
func.func @convolution(%x: tensor<1x30x30x128xf32>) -> tensor<1x28x28x96xf32> {
  %w = "util.global.load"() <{global = @w}> : () -> tensor<3x3x128x96xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x28x28x96xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x28x28x96xf32>) -> tensor<1x28x28x96xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x30x30x128xf32>, tensor<3x3x128x96xf32>)
      outs(%zeros : tensor<1x28x28x96xf32>) -> tensor<1x28x28x96xf32>
  return %y : tensor<1x28x28x96xf32>
}
