// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-propagation{output-tile=4,128}))' 2>&1 | FileCheck %s --check-prefix=ROWS4
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-propagation{output-tile=16,128}))' 2>&1 | FileCheck %s --check-prefix=ROWS16
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-propagation{output-tile=16,128 reduction-tile=8}))' 2>&1 | FileCheck %s --check-prefix=STEP
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-propagation{output-tile=16,128 connect=false}))' 2>&1 | FileCheck %s --check-prefix=APART

// Welder's example (section 2): 24,576 tiles of 35 KB are 840 MB; with 16 rows it is 264 MB. Only A, B and D move.
// ROWS4: remark: tile [4, 128, 64]
// ROWS4: remark: 24576 tiles, footprint 35840 B, traffic 880803840 B; in [4, 64] 1024 B; in [64, 128] 32768 B;
// ROWS4-SAME: out [4, 128] 2048 B
// ROWS16: remark: 6144 tiles, footprint 45056 B, traffic 276824064 B; in [16, 64] 4096 B; in [64, 128] 32768 B;
// ROWS16-SAME: out [16, 128] 8192 B

// Loading the reduced dim of the matmul in steps needs less space and moves the same.
// STEP: remark: 6144 tiles, footprint 24576 B, traffic 276824064 B;

// Alone, the last op reads both its operands.
// APART: remark: 6144 tiles, footprint 24576 B, traffic 150994944 B; in [16, 128] 8192 B; in [16, 128] 8192 B; out [16, 128] 8192 B
func.func @matmul_softmax(%a: tensor<98304x64xf32>, %b: tensor<64x128xf32>) -> tensor<98304x128xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<98304x128xf32>
  %r = tensor.empty() : tensor<98304xf32>
  %c0 = linalg.fill ins(%zero : f32) outs(%e : tensor<98304x128xf32>) -> tensor<98304x128xf32>
  %c = linalg.matmul ins(%a, %b : tensor<98304x64xf32>, tensor<64x128xf32>) outs(%c0 : tensor<98304x128xf32>) -> tensor<98304x128xf32>
  %m0 = linalg.fill ins(%low : f32) outs(%r : tensor<98304xf32>) -> tensor<98304xf32>
  %m = linalg.reduce { arith.maximumf } ins(%c : tensor<98304x128xf32>) outs(%m0 : tensor<98304xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%m : tensor<98304xf32>) outs(%e : tensor<98304x128xf32>) dimensions = [1]
  %d = linalg.sub ins(%c, %mb : tensor<98304x128xf32>, tensor<98304x128xf32>) outs(%e : tensor<98304x128xf32>) -> tensor<98304x128xf32>
  %x = linalg.exp ins(%d : tensor<98304x128xf32>) outs(%e : tensor<98304x128xf32>) -> tensor<98304x128xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%r : tensor<98304xf32>) -> tensor<98304xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<98304x128xf32>) outs(%s0 : tensor<98304xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<98304xf32>) outs(%e : tensor<98304x128xf32>) dimensions = [1]
  %y = linalg.div ins(%x, %sb : tensor<98304x128xf32>, tensor<98304x128xf32>) outs(%e : tensor<98304x128xf32>) -> tensor<98304x128xf32>
  return %y : tensor<98304x128xf32>
}
