// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-one-pass-variance{target=cuda:h200}))' | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-one-pass-variance{target=x86-64-avx512}))' | FileCheck %s --check-prefix=CPU

#nhwc = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channel = affine_map<(n, h, w, c) -> (c)>
#all = affine_map<(i) -> (i)>

// Narrow floats on GPUs: the means of parts and the moments about them are in f32, and the sum is rounded once. The
// mean in the moments' correction is the graph's, which is rounded.
// CHECK-LABEL: func @narrow_moments_are_summed_in_f32
// CHECK-SAME: %[[X:.*]]: tensor<8x31x33x64xbf16>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "reduction", "parallel"]} ins(%[[X]] : {{.*}}) outs(%{{.*}} : tensor<8x64xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]], %{{.*}} : tensor<8x31x33x64xbf16>, tensor<8x64xf32>) outs(%{{.*}} : tensor<8x64xf32>, tensor<8x64xf32>)
// CHECK:   %[[WIDE:.*]] = arith.extf
// CHECK:   arith.subf %[[WIDE]]
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<64xf32>)
// CHECK: %[[TOTAL:.*]] = linalg.generic
// CHECK:   arith.truncf
// CHECK: %[[MEAN:.*]] = linalg.generic {{.*}} ins(%[[TOTAL]] : tensor<64xbf16>)
// CHECK: linalg.generic {{.*}} %[[MEAN]] : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>, tensor<64xbf16>) outs(%{{.*}} : tensor<64xf32>)
// CHECK: %[[V:.*]] = linalg.generic
// CHECK:   arith.truncf
// CHECK: return %[[V]] : tensor<64xbf16>
// On CPUs, the two passes of the graph stay.
// CPU-LABEL: func @narrow_moments_are_summed_in_f32
// CPU-NOT: {{xf32| : f32}}
func.func @narrow_moments_are_summed_in_f32(%x: tensor<8x31x33x64xbf16>) -> tensor<64xbf16> {
  %c0 = arith.constant 0.0 : bf16
  %n = arith.constant 8192.0 : bf16
  %e = tensor.empty() : tensor<8x31x33x64xbf16>
  %f = tensor.empty() : tensor<64xbf16>
  %z = linalg.fill ins(%c0 : bf16) outs(%f : tensor<64xbf16>) -> tensor<64xbf16>
  %total = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%x : tensor<8x31x33x64xbf16>) outs(%z : tensor<64xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %s = arith.addf %a, %o : bf16
    linalg.yield %s : bf16
  } -> tensor<64xbf16>
  %mean = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]} ins(%total : tensor<64xbf16>) outs(%f : tensor<64xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %s = arith.divf %a, %n : bf16
    linalg.yield %s : bf16
  } -> tensor<64xbf16>
  %d = linalg.generic {indexing_maps = [#nhwc, #channel, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %mean : tensor<8x31x33x64xbf16>, tensor<64xbf16>) outs(%e : tensor<8x31x33x64xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %s = arith.subf %a, %b : bf16
    linalg.yield %s : bf16
  } -> tensor<8x31x33x64xbf16>
  %q = linalg.generic {indexing_maps = [#nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d : tensor<8x31x33x64xbf16>) outs(%e : tensor<8x31x33x64xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %p = arith.mulf %a, %a : bf16
    linalg.yield %p : bf16
  } -> tensor<8x31x33x64xbf16>
  %v = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%q : tensor<8x31x33x64xbf16>) outs(%z : tensor<64xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %s = arith.addf %a, %o : bf16
    linalg.yield %s : bf16
  } -> tensor<64xbf16>
  return %v : tensor<64xbf16>
}

// Frontends extend narrow floats before they sum them, and round the mean. All sums of parts read the narrow x and
// extend its elements themselves.
// CHECK-LABEL: func @casts_do_not_hide_the_mean
// CHECK-SAME: %[[X:.*]]: tensor<8x31x33x64xf16>
// CHECK-NOT: outs({{.*}} : tensor<8x31x33x64xf32>)
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "reduction", "parallel"]} ins(%[[X]] : {{.*}}) outs(%{{.*}} : tensor<8x64xf32>)
// CHECK:   arith.extf
// CHECK:   arith.addf
// CHECK: linalg.generic {{.*}} ins(%[[X]], %{{.*}} : tensor<8x31x33x64xf16>, tensor<8x64xf32>) outs(%{{.*}} : tensor<8x64xf32>, tensor<8x64xf32>)
// CHECK:   %[[WIDE:.*]] = arith.extf
// CHECK:   arith.subf %[[WIDE]]
// CHECK: %[[MEAN:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<64xf16>)
// CHECK:   arith.truncf
// CHECK: %[[V:.*]] = linalg.generic {{.*}} %[[MEAN]] : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32>, tensor<64xf16>) outs(%{{.*}} : tensor<64xf32>)
// CHECK: return %[[V]] : tensor<64xf32>
// CPU-LABEL: func @casts_do_not_hide_the_mean
// CPU-NOT: arith.maximumf
func.func @casts_do_not_hide_the_mean(%x: tensor<8x31x33x64xf16>) -> tensor<64xf32> {
  %c0 = arith.constant 0.0 : f32
  %n = arith.constant 8192.0 : f32
  %e = tensor.empty() : tensor<8x31x33x64xf16>
  %ew = tensor.empty() : tensor<8x31x33x64xf32>
  %f = tensor.empty() : tensor<64xf16>
  %fw = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%fw : tensor<64xf32>) -> tensor<64xf32>
  %xw = linalg.generic {indexing_maps = [#nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<8x31x33x64xf16>) outs(%ew : tensor<8x31x33x64xf32>) {
  ^bb0(%a: f16, %o: f32):
    %s = arith.extf %a : f16 to f32
    linalg.yield %s : f32
  } -> tensor<8x31x33x64xf32>
  %total = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%xw : tensor<8x31x33x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %mw = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]} ins(%total : tensor<64xf32>) outs(%fw : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.divf %a, %n : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %mean = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]} ins(%mw : tensor<64xf32>) outs(%f : tensor<64xf16>) {
  ^bb0(%a: f32, %o: f16):
    %s = arith.truncf %a : f32 to f16
    linalg.yield %s : f16
  } -> tensor<64xf16>
  %d = linalg.generic {indexing_maps = [#nhwc, #channel, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %mean : tensor<8x31x33x64xf16>, tensor<64xf16>) outs(%e : tensor<8x31x33x64xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %s = arith.subf %a, %b : f16
    linalg.yield %s : f16
  } -> tensor<8x31x33x64xf16>
  %q = linalg.generic {indexing_maps = [#nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d : tensor<8x31x33x64xf16>) outs(%e : tensor<8x31x33x64xf16>) {
  ^bb0(%a: f16, %o: f16):
    %p = arith.mulf %a, %a : f16
    linalg.yield %p : f16
  } -> tensor<8x31x33x64xf16>
  %qw = linalg.generic {indexing_maps = [#nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%q : tensor<8x31x33x64xf16>) outs(%ew : tensor<8x31x33x64xf32>) {
  ^bb0(%a: f16, %o: f32):
    %s = arith.extf %a : f16 to f32
    linalg.yield %s : f32
  } -> tensor<8x31x33x64xf32>
  %v = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%qw : tensor<8x31x33x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %v : tensor<64xf32>
}
