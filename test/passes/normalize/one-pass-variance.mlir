// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-one-pass-variance{target=x86-64-avx512}))' | FileCheck %s

#nhwc = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channel = affine_map<(n, h, w, c) -> (c)>
#rows = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i) -> (i)>

// Statistics over more than a workgroup can hold: each image gets its sum, and both moments about its own mean; then
// the mean of all images corrects and combines the moments. Ops that only the two-pass form read are gone.
// CHECK-DAG: #[[$IMAGE:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3)>
// CHECK-DAG: #[[$JOINED:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func @channels_of_images
// CHECK-SAME: %[[X:.*]]: tensor<8x31x33x64xf32>
// CHECK-NOT: tensor<8x31x33x64xf32>) outs(%{{.*}} : tensor<8x31x33x64xf32>
// CHECK: %[[TOTALS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "reduction", "parallel"]} ins(%[[X]] : {{.*}}) outs(%{{.*}} : tensor<8x64xf32>)
// CHECK: %[[MEANS:.*]] = linalg.generic {{.*}} ins(%[[TOTALS]] :
// CHECK:   arith.constant 9.77517105E-4 : f32
// CHECK: %[[M:.*]]:2 = linalg.generic {indexing_maps = [#{{.*}}, #[[$IMAGE]], #[[$IMAGE]], #[[$IMAGE]]], iterator_types = ["parallel", "reduction", "reduction", "parallel"]} ins(%[[X]], %[[MEANS]] :
// CHECK:   %[[D:.*]] = arith.subf
// CHECK:   %[[S:.*]] = arith.mulf %[[D]], %[[D]]
// CHECK:   arith.addf %[[D]]
// CHECK:   arith.addf %[[S]]
// CHECK: %[[TOTAL:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%[[TOTALS]] :
// CHECK: %[[MEAN:.*]] = linalg.generic {{.*}} ins(%[[TOTAL]] :
// CHECK: %[[V:.*]] = linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}, #{{.*}}, #[[$JOINED]], #[[$JOINED]]], iterator_types = ["reduction", "parallel"]} ins(%[[M]]#0, %[[M]]#1, %[[MEANS]], %[[MEAN]] :
// CHECK:   arith.constant 1.023000e+03 : f32
// CHECK:   arith.maximumf
// CHECK: return %[[V]] : tensor<64xf32>
func.func @channels_of_images(%x: tensor<8x31x33x64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0.0 : f32
  %n = arith.constant 8184.0 : f32
  %e = tensor.empty() : tensor<8x31x33x64xf32>
  %f = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %total = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%x : tensor<8x31x33x64xf32>) outs(%z : tensor<64xf32>) {
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
      ins(%x, %mean : tensor<8x31x33x64xf32>, tensor<64xf32>) outs(%e : tensor<8x31x33x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x31x33x64xf32>
  %q = linalg.generic {indexing_maps = [#nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d : tensor<8x31x33x64xf32>) outs(%e : tensor<8x31x33x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    linalg.yield %p : f32
  } -> tensor<8x31x33x64xf32>
  %v = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%q : tensor<8x31x33x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %v : tensor<64xf32>
}

// Two images are more than a workgroup can hold, so a part is one row of both, instead of one row of each.
// CHECK-LABEL: func @images_too_large_are_cut_along_rows
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "reduction", "parallel"]} {{.*}} outs(%{{.*}} : tensor<311x64xf32>)
func.func @images_too_large_are_cut_along_rows(%x: tensor<2x311x33x64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0.0 : f32
  %n = arith.constant 20526.0 : f32
  %e = tensor.empty() : tensor<2x311x33x64xf32>
  %f = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %total = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%x : tensor<2x311x33x64xf32>) outs(%z : tensor<64xf32>) {
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
      ins(%x, %mean : tensor<2x311x33x64xf32>, tensor<64xf32>) outs(%e : tensor<2x311x33x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<2x311x33x64xf32>
  %q = linalg.generic {indexing_maps = [#nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d : tensor<2x311x33x64xf32>) outs(%e : tensor<2x311x33x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    linalg.yield %p : f32
  } -> tensor<2x311x33x64xf32>
  %v = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%q : tensor<2x311x33x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %v : tensor<64xf32>
}

// A row that a workgroup can hold is read again from there, by the graph's two passes.
// CHECK-LABEL: func @short_rows_are_left
// CHECK: arith.subf
// CHECK: math.fpowi
// CHECK-NOT: arith.maximumf
func.func @short_rows_are_left(%x: tensor<6x768xf32>) -> tensor<6xf32> {
  %c0 = arith.constant 0.0 : f32
  %n = arith.constant 768.0 : f32
  %two = arith.constant 2 : i64
  %e = tensor.empty() : tensor<6x768xf32>
  %f = tensor.empty() : tensor<6xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %total = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x768xf32>) outs(%z : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  %mean = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]} ins(%total : tensor<6xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.divf %a, %n : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  %d = linalg.generic {indexing_maps = [#rows, #row, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean : tensor<6x768xf32>, tensor<6xf32>) outs(%e : tensor<6x768xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<6x768xf32>
  %q = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<6x768xf32>) outs(%e : tensor<6x768xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = math.fpowi %a, %two : f32, i64
    linalg.yield %p : f32
  } -> tensor<6x768xf32>
  %v = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%q : tensor<6x768xf32>) outs(%z : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  return %v : tensor<6xf32>
}

// With one reduced dim, no part spans a whole dim.
// CHECK-LABEL: func @long_rows_are_left
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK-NOT: arith.maximumf
func.func @long_rows_are_left(%x: tensor<6x300000xf32>) -> tensor<6xf32> {
  %c0 = arith.constant 0.0 : f32
  %n = arith.constant 300000.0 : f32
  %e = tensor.empty() : tensor<6x300000xf32>
  %f = tensor.empty() : tensor<6xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %total = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<6x300000xf32>) outs(%z : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  %mean = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]} ins(%total : tensor<6xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.divf %a, %n : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  %d = linalg.generic {indexing_maps = [#rows, #row, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean : tensor<6x300000xf32>, tensor<6xf32>) outs(%e : tensor<6x300000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<6x300000xf32>
  %q = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<6x300000xf32>) outs(%e : tensor<6x300000xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    linalg.yield %p : f32
  } -> tensor<6x300000xf32>
  %v = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%q : tensor<6x300000xf32>) outs(%z : tensor<6xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  return %v : tensor<6xf32>
}

// Parts of few elements would have nearly as many sums as x has elements.
// CHECK-LABEL: func @thin_parts_are_left
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK-NOT: arith.maximumf
func.func @thin_parts_are_left(%x: tensor<30011x31x1x64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0.0 : f32
  %n = arith.constant 930341.0 : f32
  %e = tensor.empty() : tensor<30011x31x1x64xf32>
  %f = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %total = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%x : tensor<30011x31x1x64xf32>) outs(%z : tensor<64xf32>) {
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
      ins(%x, %mean : tensor<30011x31x1x64xf32>, tensor<64xf32>) outs(%e : tensor<30011x31x1x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<30011x31x1x64xf32>
  %q = linalg.generic {indexing_maps = [#nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d : tensor<30011x31x1x64xf32>) outs(%e : tensor<30011x31x1x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    linalg.yield %p : f32
  } -> tensor<30011x31x1x64xf32>
  %v = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%q : tensor<30011x31x1x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %v : tensor<64xf32>
}

// The mean is known before x is read, so the two-pass form takes one pass.
// CHECK-LABEL: func @mean_from_elsewhere_is_left
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK-NOT: arith.maximumf
func.func @mean_from_elsewhere_is_left(%x: tensor<8x31x33x64xf32>, %mean: tensor<64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x31x33x64xf32>
  %f = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [#nhwc, #channel, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %mean : tensor<8x31x33x64xf32>, tensor<64xf32>) outs(%e : tensor<8x31x33x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x31x33x64xf32>
  %q = linalg.generic {indexing_maps = [#nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d : tensor<8x31x33x64xf32>) outs(%e : tensor<8x31x33x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    linalg.yield %p : f32
  } -> tensor<8x31x33x64xf32>
  %v = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%q : tensor<8x31x33x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %v : tensor<64xf32>
}

// The subtracted value varies along the images, so there are no moments.
// CHECK-LABEL: func @distance_of_images_is_left
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK-NOT: arith.maximumf
func.func @distance_of_images_is_left(%x: tensor<8x31x33x64xf32>, %y: tensor<8x31x33x64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x31x33x64xf32>
  %f = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [#nhwc, #nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %y : tensor<8x31x33x64xf32>, tensor<8x31x33x64xf32>) outs(%e : tensor<8x31x33x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x31x33x64xf32>
  %q = linalg.generic {indexing_maps = [#nhwc, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%d : tensor<8x31x33x64xf32>) outs(%e : tensor<8x31x33x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    linalg.yield %p : f32
  } -> tensor<8x31x33x64xf32>
  %v = linalg.generic {indexing_maps = [#nhwc, #channel], iterator_types = ["reduction", "reduction", "reduction", "parallel"]}
      ins(%q : tensor<8x31x33x64xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %v : tensor<64xf32>
}
