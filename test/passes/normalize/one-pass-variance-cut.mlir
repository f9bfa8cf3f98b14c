// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-one-pass-variance{target=x86-64-avx512}))' | FileCheck %s

#nhwc = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channel = affine_map<(n, h, w, c) -> (c)>
#rows = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i) -> (i)>

// A workgroup could hold 40 parts of 10 rows of each image, where parts of whole dims would be 400: their sums would be
// a considerable share of the bytes, and a kernel for them slow.
// CHECK-LABEL: func @parts_of_several_rows
// CHECK: %[[V:.*]] = tensor.expand_shape {{.*}} into tensor<3x40x10x40x64xf32>
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "reduction", "reduction", "parallel"]} ins(%[[V]] : {{.*}}) outs(%{{.*}} : tensor<40x64xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[V]], %{{.*}} :
// CHECK:   arith.constant 1.200000e+03 : f32
func.func @parts_of_several_rows(%x: tensor<3x400x40x64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0.0 : f32
  %n = arith.constant 48000.0 : f32
  %e = tensor.empty() : tensor<3x400x40x64xf32>
  %f = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %total = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%x : tensor<3x400x40x64xf32>) outs(%z : tensor<64xf32>) {
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
      ins(%x, %mean : tensor<3x400x40x64xf32>, tensor<64xf32>) outs(%e : tensor<3x400x40x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<3x400x40x64xf32>
  %q = linalg.generic {indexing_maps = [#nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d : tensor<3x400x40x64xf32>) outs(%e : tensor<3x400x40x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    linalg.yield %p : f32
  } -> tensor<3x400x40x64xf32>
  %v = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%q : tensor<3x400x40x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %v : tensor<64xf32>
}

// The producer of x could not share a kernel with readers of a view of x.
// CHECK-LABEL: func @x_that_is_computed_is_not_viewed
// CHECK-NOT: tensor.expand_shape
// CHECK: outs(%{{.*}} : tensor<400x64xf32>)
func.func @x_that_is_computed_is_not_viewed(%y: tensor<3x400x40x64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0.0 : f32
  %n = arith.constant 48000.0 : f32
  %e = tensor.empty() : tensor<3x400x40x64xf32>
  %f = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %x = linalg.exp ins(%y : tensor<3x400x40x64xf32>) outs(%e : tensor<3x400x40x64xf32>) -> tensor<3x400x40x64xf32>
  %total = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%x : tensor<3x400x40x64xf32>) outs(%z : tensor<64xf32>) {
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
      ins(%x, %mean : tensor<3x400x40x64xf32>, tensor<64xf32>) outs(%e : tensor<3x400x40x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<3x400x40x64xf32>
  %q = linalg.generic {indexing_maps = [#nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d : tensor<3x400x40x64xf32>) outs(%e : tensor<3x400x40x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    linalg.yield %p : f32
  } -> tensor<3x400x40x64xf32>
  %v = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%q : tensor<3x400x40x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %v : tensor<64xf32>
}
