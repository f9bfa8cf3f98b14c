// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-shift-moments{target=x86-64-avx512}))' | FileCheck %s

#nhwc = affine_map<(n, h, w, c) -> (n, h, w, c)>
#channel = affine_map<(n, h, w, c) -> (c)>
#kept = affine_map<(n, h, w, c) -> (0, 0, 0, c)>
#rows = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Statistics over more than a workgroup can keep: both moments about the first element in one pass, then corrected by the
// mean. What only the two-pass form read is gone.
// CHECK-LABEL: func @channels_of_images
// CHECK-SAME: %[[X:.*]]: tensor<8x31x33x64xf32>, %[[MEAN:.*]]: tensor<1x1x1x64xf32>
// CHECK-NOT: tensor<8x31x33x64xf32>) outs
// CHECK: %[[M:.*]]:2 = linalg.generic {{.*}}"reduction", "reduction", "reduction", "parallel"]} ins(%[[X]], %[[X]] : {{.*}}) outs(%{{.*}}, %{{.*}} : tensor<64xf32>, tensor<64xf32>)
// CHECK:   %[[D:.*]] = arith.subf
// CHECK:   %[[S:.*]] = arith.mulf %[[D]], %[[D]]
// CHECK:   arith.addf %[[D]]
// CHECK:   arith.addf %[[S]]
// CHECK: %[[V:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%[[M]]#0, %[[M]]#1, %[[MEAN]], %[[X]] :
// CHECK:   arith.maximumf
// CHECK: return %[[V]] : tensor<64xf32>
func.func @channels_of_images(%x: tensor<8x31x33x64xf32>, %mean: tensor<1x1x1x64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x31x33x64xf32>
  %f = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<64xf32>) -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [#nhwc, #kept, #nhwc], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %mean : tensor<8x31x33x64xf32>, tensor<1x1x1x64xf32>) outs(%e : tensor<8x31x33x64xf32>) {
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

// A row that a workgroup can keep is read again there: the exacter form stays.
// CHECK-LABEL: func @short_rows_are_left
// CHECK: arith.subf
// CHECK: math.fpowi
// CHECK-NOT: arith.maximumf
func.func @short_rows_are_left(%x: tensor<6x768xf32>, %mean: tensor<6xf32>) -> tensor<6xf32> {
  %c0 = arith.constant 0.0 : f32
  %two = arith.constant 2 : i64
  %e = tensor.empty() : tensor<6x768xf32>
  %f = tensor.empty() : tensor<6xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
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

// What is subtracted changes along the row: no moments.
// CHECK-LABEL: func @distance_of_rows_is_left
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK-NOT: arith.maximumf
func.func @distance_of_rows_is_left(%x: tensor<6x300000xf32>, %y: tensor<6x300000xf32>) -> tensor<6xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x300000xf32>
  %f = tensor.empty() : tensor<6xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%f : tensor<6xf32>) -> tensor<6xf32>
  %d = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<6x300000xf32>, tensor<6x300000xf32>) outs(%e : tensor<6x300000xf32>) {
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
