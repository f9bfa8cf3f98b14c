// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-one-pass-variance{target=cuda:h200}),tile-form-subprograms{target=cuda:h200})' | FileCheck %s

#nhwc = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channel = affine_map<(n, h, w, c) -> (c)>
#all = affine_map<(i) -> (i)>

// The moments of parts, those of all, and the values that they normalise wait for each other at grid barriers. Alone,
// each would choose its block size; in one kernel, all use the size that suits them together, and the last group uses
// the tiles of the first, so that blocks keep theirs in shared memory: 98 KiB each, 2 per SM.
// CHECK-LABEL: func @batch_statistics
// CHECK: tile.subprogram "[[KERNEL:.*]]"({{.*}} tiles [1, 1, 14, 56, 32] {{.*}} workgroups 256 {{.*}}tile.resident = array<i64: 0, 0>{{.*}}tile.threads = 256
// CHECK: tile.subprogram "[[KERNEL]]"({{.*}}tile.threads = 256
// CHECK: tile.subprogram "[[KERNEL]]"({{.*}} tiles [1, 14, 56, 32] {{.*}} workgroups 256 {{.*}}tile.resident = array<i64: 0, 0>{{.*}}tile.threads = 256
func.func @batch_statistics(%x: tensor<32x56x56x64xf32>) -> tensor<32x56x56x64xf32> {
  %c0 = arith.constant 0.0 : f32
  %n = arith.constant 100352.0 : f32
  %e = tensor.empty() : tensor<32x56x56x64xf32>
  %f = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %total = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%x : tensor<32x56x56x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %mean = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]} ins(%total : tensor<64xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.divf %a, %n : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [#nhwc, #channel, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %mean : tensor<32x56x56x64xf32>, tensor<64xf32>) outs(%e : tensor<32x56x56x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<32x56x56x64xf32>
  %q = linalg.generic {indexing_maps = [#nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d : tensor<32x56x56x64xf32>) outs(%e : tensor<32x56x56x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    linalg.yield %p : f32
  } -> tensor<32x56x56x64xf32>
  %v = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%q : tensor<32x56x56x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#nhwc, #channel, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d, %v : tensor<32x56x56x64xf32>, tensor<64xf32>) outs(%e : tensor<32x56x56x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<32x56x56x64xf32>
  return %y : tensor<32x56x56x64xf32>
}
