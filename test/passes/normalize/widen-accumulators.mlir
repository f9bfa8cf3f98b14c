// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-lower-quantized-matmul))' | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-lower-quantized-matmul{numerics=strict}))' | FileCheck %s --check-prefix=STRICT
// Accumulators start from zero; products in f16 and bf16 are accumulated in f32, and rounded once at the end.

// Strict numerics keep the type of the accumulators.
// CHECK-LABEL: func.func @sums_in_f16
// CHECK: %[[S:.+]] = linalg.generic {{.*}}"reduction"]} ins(%{{.+}}, %{{.+}} : tensor<5x7xf16>, tensor<7x9xf16>) outs(%{{.+}} : tensor<5x9xf32>)
// CHECK:   arith.mulf %{{.+}} : f32
// CHECK:   arith.addf %{{.+}} : f32
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<5x9xf32>) {{.*}} attrs = {tile.form = "rounding after a sum in f32"}
// CHECK:   arith.truncf
// STRICT-LABEL: func.func @sums_in_f16
// STRICT: linalg.matmul ins({{.*}}) outs({{.*}} : tensor<5x9xf16>)
// STRICT-NOT: arith.truncf
func.func @sums_in_f16(%a: tensor<5x7xf16>, %b: tensor<7x9xf16>) -> tensor<5x9xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<5x9xf16>
  %zeros = linalg.fill ins(%zero : f16) outs(%empty : tensor<5x9xf16>) -> tensor<5x9xf16>
  %y = linalg.matmul ins(%a, %b : tensor<5x7xf16>, tensor<7x9xf16>) outs(%zeros : tensor<5x9xf16>) -> tensor<5x9xf16>
  return %y : tensor<5x9xf16>
}

// The initial value is added before the rounding. With strict numerics, it is the first value in the order of addition.
// CHECK-LABEL: func.func @sums_in_bf16_from_a_tensor
// CHECK-SAME: %[[C:[^:]+]]: tensor<5x9xbf16>)
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %[[C]] : tensor<5x9xf32>, tensor<5x9xbf16>)
// CHECK:   %[[START:.+]] = arith.extf
// CHECK:   %[[SUM:.+]] = arith.addf %{{.+}}, %[[START]] : f32
// CHECK:   arith.truncf %[[SUM]]
// STRICT-LABEL: func.func @sums_in_bf16_from_a_tensor
// STRICT-SAME: %[[C:[^:]+]]: tensor<5x9xbf16>)
// STRICT: linalg.matmul ins({{.*}}) outs(%[[C]] :
func.func @sums_in_bf16_from_a_tensor(%a: tensor<5x7xbf16>, %b: tensor<7x9xbf16>, %c: tensor<5x9xbf16>) -> tensor<5x9xbf16> {
  %y = linalg.matmul ins(%a, %b : tensor<5x7xbf16>, tensor<7x9xbf16>) outs(%c : tensor<5x9xbf16>) -> tensor<5x9xbf16>
  return %y : tensor<5x9xbf16>
}

// The initial value is the C of a gemm.
// CHECK-LABEL: func.func @from_a_tensor
// CHECK-SAME: %[[C:[^:]+]]: tensor<5x9xf32>)
// CHECK: %[[ZEROS:.+]] = linalg.fill
// CHECK: %[[S:.+]] = linalg.matmul ins({{.*}}) outs(%[[ZEROS]] :
// CHECK: linalg.generic {{.*}} ins(%[[S]], %[[C]] : tensor<5x9xf32>, tensor<5x9xf32>)
// CHECK-NOT: tile.form
// CHECK:   arith.addf
// STRICT-LABEL: func.func @from_a_tensor
// STRICT: linalg.matmul
// STRICT: arith.addf
func.func @from_a_tensor(%a: tensor<5x7xf32>, %b: tensor<7x9xf32>, %c: tensor<5x9xf32>) -> tensor<5x9xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<5x7xf32>, tensor<7x9xf32>) outs(%c : tensor<5x9xf32>) -> tensor<5x9xf32>
  return %y : tensor<5x9xf32>
}

// A bias keeps its narrow type.
// CHECK-LABEL: func.func @from_a_bias
// CHECK-SAME: %[[BIAS:[^:]+]]: tensor<9xf32>)
// CHECK: %[[S:.+]] = linalg.matmul
// CHECK: linalg.generic {{.*}} ins(%[[S]], %[[BIAS]] : tensor<5x9xf32>, tensor<9xf32>)
func.func @from_a_bias(%a: tensor<5x7xf32>, %b: tensor<7x9xf32>, %bias: tensor<9xf32>) -> tensor<5x9xf32> {
  %empty = tensor.empty() : tensor<5x9xf32>
  %c = linalg.broadcast ins(%bias : tensor<9xf32>) outs(%empty : tensor<5x9xf32>) dimensions = [0]
  %y = linalg.matmul ins(%a, %b : tensor<5x7xf32>, tensor<7x9xf32>) outs(%c : tensor<5x9xf32>) -> tensor<5x9xf32>
  return %y : tensor<5x9xf32>
}

// Bytes are narrowed for any initial value of their accumulators.
// CHECK-LABEL: func.func @quantised_from_a_tensor
// CHECK-SAME: %[[C:[^:]+]]: tensor<5x9xi32>)
// CHECK: arith.muli
// CHECK: linalg.generic {{.*}} ins(%{{.+}}, %[[C]] :
// CHECK:   arith.addi
// CHECK-NOT: linalg.quantized_matmul
func.func @quantised_from_a_tensor(%a: tensor<5x7xi8>, %b: tensor<7x9xi8>, %c: tensor<5x9xi32>) -> tensor<5x9xi32> {
  %za = arith.constant 3 : i32
  %zb = arith.constant 0 : i32
  %y = linalg.quantized_matmul ins(%a, %b, %za, %zb : tensor<5x7xi8>, tensor<7x9xi8>, i32, i32)
      outs(%c : tensor<5x9xi32>) -> tensor<5x9xi32>
  return %y : tensor<5x9xi32>
}

// tile-convolution-to-matmul adds the initial value of windows.
// CHECK-LABEL: func.func @convolution
// CHECK-SAME: %[[C:[^:]+]]: tensor<1x7x7x6xf32>)
// CHECK: linalg.conv_2d_nhwc_hwcf {{.*}} outs(%[[C]] :
func.func @convolution(%x: tensor<1x9x9x4xf32>, %w: tensor<3x3x4x6xf32>, %c: tensor<1x7x7x6xf32>) -> tensor<1x7x7x6xf32> {
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x9x9x4xf32>, tensor<3x3x4x6xf32>)
      outs(%c : tensor<1x7x7x6xf32>) -> tensor<1x7x7x6xf32>
  return %y : tensor<1x7x7x6xf32>
}

// Left alone: a maximum is not a sum, and dynamic sizes do not make a tensor of zeros.
// CHECK-LABEL: func.func @maximum
// CHECK-SAME: %[[C:[^:]+]]: tensor<5xf32>)
// CHECK: outs(%[[C]] :
// CHECK-LABEL: func.func @unknown_sizes
// CHECK: linalg.matmul ins({{.*}}) outs(%arg2
func.func @maximum(%a: tensor<5x7xf32>, %c: tensor<5xf32>) -> tensor<5xf32> {
  %y = linalg.reduce { arith.maximumf } ins(%a : tensor<5x7xf32>) outs(%c : tensor<5xf32>) dimensions = [1]
  return %y : tensor<5xf32>
}
func.func @unknown_sizes(%a: tensor<?x7xf32>, %b: tensor<7x9xf32>, %c: tensor<?x9xf32>) -> tensor<?x9xf32> {
  %y = linalg.matmul ins(%a, %b : tensor<?x7xf32>, tensor<7x9xf32>) outs(%c : tensor<?x9xf32>) -> tensor<?x9xf32>
  return %y : tensor<?x9xf32>
}
