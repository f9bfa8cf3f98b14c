// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-normalize))' | FileCheck %s

// A front end reduces a maximum over two dims one after the other.
// CHECK-LABEL: func @maximum_of_maxima
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel", "reduction"]
// CHECK-SAME: outs(%{{.*}} : tensor<3x1xf32>)
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @maximum_of_maxima(%a: tensor<3x5x7xf32>) -> tensor<3x1xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %start = linalg.fill ins(%low : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a : tensor<3x5x7xf32>) outs(%start : tensor<3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  %kept = tensor.expand_shape %m [[0], [1, 2]] output_shape [3, 5, 1] : tensor<3x5xf32> into tensor<3x5x1xf32>
  %e2 = tensor.empty() : tensor<3x1xf32>
  %start2 = linalg.fill ins(%low : f32) outs(%e2 : tensor<3x1xf32>) -> tensor<3x1xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, k)>],
                       iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%kept : tensor<3x5x1xf32>) outs(%start2 : tensor<3x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<3x1xf32>
  return %n : tensor<3x1xf32>
}

// A dim of one element that was added is reduced, too, because it has no loop any more.
// CHECK-LABEL: func @maximum_along_an_added_dim
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "reduction"]
// CHECK-SAME: ins(%{{.*}} : tensor<3x5x7xf32>) outs(%{{.*}} : tensor<3xf32>)
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @maximum_along_an_added_dim(%a: tensor<3x5x7xf32>) -> tensor<3xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %start = linalg.fill ins(%low : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a : tensor<3x5x7xf32>) outs(%start : tensor<3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<3x5xf32>
  %kept = tensor.expand_shape %m [[0, 1], [2]] output_shape [3, 1, 5] : tensor<3x5xf32> into tensor<3x1x5xf32>
  %e2 = tensor.empty() : tensor<3xf32>
  %start2 = linalg.fill ins(%low : f32) outs(%e2 : tensor<3xf32>) -> tensor<3xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i)>],
                       iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%kept : tensor<3x1x5xf32>) outs(%start2 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  return %n : tensor<3xf32>
}

// Left alone: sums would change their order of addition, and maxima with other readers are needed.
// CHECK-LABEL: func @sums_and_read_maxima_stay
// CHECK-COUNT-4: linalg.generic
func.func @sums_and_read_maxima_stay(%a: tensor<3x5x7xf32>) -> (tensor<3xf32>, tensor<3x5xf32>, tensor<3xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %e2 = tensor.empty() : tensor<3xf32>
  %lows = linalg.fill ins(%low : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %lows2 = linalg.fill ins(%low : f32) outs(%e2 : tensor<3xf32>) -> tensor<3xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %zeros2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<3xf32>) -> tensor<3xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a : tensor<3x5x7xf32>) outs(%zeros : tensor<3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %x = arith.addf %in, %out : f32
    linalg.yield %x : f32
  } -> tensor<3x5xf32>
  %ss = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                        iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<3x5xf32>) outs(%zeros2 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %x = arith.addf %in, %out : f32
    linalg.yield %x : f32
  } -> tensor<3xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a : tensor<3x5x7xf32>) outs(%lows : tensor<3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %x = arith.maximumf %in, %out : f32
    linalg.yield %x : f32
  } -> tensor<3x5xf32>
  %mm = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                        iterator_types = ["parallel", "reduction"]}
      ins(%m : tensor<3x5xf32>) outs(%lows2 : tensor<3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %x = arith.maximumf %in, %out : f32
    linalg.yield %x : f32
  } -> tensor<3xf32>
  return %ss, %m, %mm : tensor<3xf32>, tensor<3x5xf32>, tensor<3xf32>
}
