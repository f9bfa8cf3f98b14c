// RUN: tilewright-opt %s --allow-unregistered-dialect \
// RUN:   --pass-pipeline='builtin.module(tilewright-cpu{target=x86-64-avx2 object-path=%t.o})' -o /dev/null
// RUN: tilewright-opt %s --tile-normalize --tile-mark-online-softmax | FileCheck %s

#all = affine_map<(b, k) -> (b, k)>
#row = affine_map<(b, k) -> (b)>

// A maximum that begins with NaN is no maximum of a row.
// CHECK-LABEL: func.func @begins_with_nan
// CHECK-NOT: online softmax
func.func @begins_with_nan(%s: tensor<64x4096xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %es = tensor.empty() : tensor<64x4096xf32>
  %er = tensor.empty() : tensor<64xf32>
  %zm = linalg.fill ins(%nan : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %m = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<64x4096xf32>) outs(%zm : tensor<64xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.maximumf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %e = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<64x4096xf32>, tensor<64xf32>) outs(%es : tensor<64x4096xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<64x4096xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %l = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<64x4096xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.addf %a, %acc : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  return %l : tensor<64xf32>
}
