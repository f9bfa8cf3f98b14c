// RUN: tilewright-opt %s --split-input-file --allow-unregistered-dialect \
// RUN:   --pass-pipeline='builtin.module(func.func(tile-collapse-dims{target=x86-64-avx512}))' | FileCheck %s

// A 7x5 plane that is fully reduced becomes a row of 35, and so do the results beside it.
// CHECK-LABEL: func @plane
// CHECK-SAME: %[[X:.*]]: tensor<9x7x5xf32>
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0], [1, 2]]
// CHECK: %[[SUM:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
// CHECK-SAME: ins(%[[ROWS]] : tensor<9x35xf32>) outs(%{{.*}} : tensor<9xf32>)
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel"]
// CHECK-SAME: ins(%[[ROWS]], %{{.*}} : tensor<9x35xf32>, tensor<9x1x1xf32>) outs(%{{.*}} : tensor<9x35xf32>)
// CHECK: tensor.expand_shape %[[Y]] {{\[\[}}0], [1, 2]] output_shape [9, 7, 5]
func.func @plane(%x: tensor<9x7x5xf32>) -> tensor<9x7x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x7x5xf32>
  %r = tensor.empty() : tensor<9xf32>
  %start = linalg.fill ins(%zero : f32) outs(%r : tensor<9xf32>) -> tensor<9xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i)>],
                         iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<9x7x5xf32>) outs(%start : tensor<9xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<9xf32>
  %kept = tensor.expand_shape %sum [[0, 1, 2]] output_shape [9, 1, 1] : tensor<9xf32> into tensor<9x1x1xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, 0, 0)>,
                                        affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %kept : tensor<9x7x5xf32>, tensor<9x1x1xf32>) outs(%e : tensor<9x7x5xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %d = arith.subf %in, %s : f32
    linalg.yield %d : f32
  } -> tensor<9x7x5xf32>
  return %y : tensor<9x7x5xf32>
}

// -----

// Rows that are reduced one by one stay; their two indices become one. Nothing remains of the initial values of sums
// over two dims.
// CHECK-LABEL: func @rows
// CHECK-NOT: linalg.fill {{.*}}tensor<9x5xf32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}} : tensor<45x7xf32>) outs(%{{.*}} : tensor<45xf32>)
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<45x7xf32>, tensor<45x1xf32>) outs(%{{.*}} : tensor<45x7xf32>)
func.func @rows(%x: tensor<9x5x7xf32>) -> tensor<9x5x7xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<9x5x7xf32>
  %r = tensor.empty() : tensor<9x5xf32>
  %start = linalg.fill ins(%low : f32) outs(%r : tensor<9x5xf32>) -> tensor<9x5xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<9x5x7xf32>) outs(%start : tensor<9x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<9x5xf32>
  %kept = tensor.expand_shape %m [[0], [1, 2]] output_shape [9, 5, 1] : tensor<9x5xf32> into tensor<9x5x1xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, 0)>,
                                        affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %kept : tensor<9x5x7xf32>, tensor<9x5x1xf32>) outs(%e : tensor<9x5x7xf32>) {
  ^bb0(%in: f32, %s: f32, %out: f32):
    %d = arith.subf %in, %s : f32
    linalg.yield %d : f32
  } -> tensor<9x5x7xf32>
  return %y : tensor<9x5x7xf32>
}

// -----

// A linalg.index, a bias along one of two dims, an unknown op and a transpose keep dims apart.
// CHECK-LABEL: func @apart
// CHECK-NOT: collapse_shape
// CHECK: return
func.func @apart(%x: tensor<9x5x7xf32>, %bias: tensor<7xf32>)
    -> (tensor<9x5x7xf32>, tensor<9x5x7xf32>, tensor<7x5x9xf32>) {
  %e = tensor.empty() : tensor<9x5x7xf32>
  %t = tensor.empty() : tensor<7x5x9xf32>
  %numbered = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>],
                              iterator_types = ["parallel", "parallel", "parallel"]}
      outs(%e : tensor<9x5x7xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = linalg.index 2 : index
    %ij = arith.muli %i, %j : index
    %ijk = arith.addi %ij, %k : index
    %n = arith.index_cast %ijk : index to i32
    %f = arith.sitofp %n : i32 to f32
    linalg.yield %f : f32
  } -> tensor<9x5x7xf32>
  %unknown = "some.op"(%x) : (tensor<9x5x7xf32>) -> tensor<9x5x7xf32>
  %biased = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (k)>,
                                             affine_map<(i, j, k) -> (i, j, k)>],
                            iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%unknown, %bias : tensor<9x5x7xf32>, tensor<7xf32>) outs(%e : tensor<9x5x7xf32>) {
  ^bb0(%in: f32, %b: f32, %out: f32):
    %s = arith.addf %in, %b : f32
    linalg.yield %s : f32
  } -> tensor<9x5x7xf32>
  %turned = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k, j, i)>, affine_map<(i, j, k) -> (i, j, k)>],
                            iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<9x5x7xf32>) outs(%t : tensor<7x5x9xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<7x5x9xf32>
  return %numbered, %biased, %turned : tensor<9x5x7xf32>, tensor<9x5x7xf32>, tensor<7x5x9xf32>
}

// -----

// Rows that fill vectors stay as they are.
// CHECK-LABEL: func @whole
// CHECK-NOT: collapse_shape
func.func @whole(%x: tensor<9x5x64xf32>) -> tensor<9x5x64xf32> {
  %e = tensor.empty() : tensor<9x5x64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<9x5x64xf32>) outs(%e : tensor<9x5x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %d = math.exp %in : f32
    linalg.yield %d : f32
  } -> tensor<9x5x64xf32>
  return %y : tensor<9x5x64xf32>
}

// -----

// A tensor of one element, such as an empty product, is read like any other.
// CHECK-LABEL: func @filled
// CHECK: %[[FILL:.*]] = linalg.fill
// CHECK: tensor.collapse_shape %[[FILL]] {{\[\[}}0, 1, 2]]
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<40xf32>, tensor<40xf32>)
func.func @filled(%x: tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>,
                                        affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%f, %x : tensor<2x4x5xf32>, tensor<2x4x5xf32>) outs(%e : tensor<2x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<2x4x5xf32>
  return %y : tensor<2x4x5xf32>
}

// -----

// Dims of one element do not keep dims apart, however many are added.
// CHECK-LABEL: func @beside_added
// CHECK-SAME: %[[X:.*]]: tensor<5x3x7x1xf32>
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1, 2], [3]]
// CHECK: %[[ADDED:.*]] = tensor.expand_shape %[[ROWS]] {{\[\[}}0, 1], [2, 3, 4]] output_shape [1, 105, 1, 1, 1]
// CHECK: tensor.expand_shape %[[ADDED]] {{\[\[}}0], [1, 2, 3], [4], [5], [6]] output_shape [1, 5, 3, 7, 1, 1, 1]
func.func @beside_added(%x: tensor<5x3x7x1xf32>) -> (tensor<5x3x7xf32>, tensor<1x5x3x7x1x1x1xf32>) {
  %e = tensor.empty() : tensor<5x3x7xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k, 0)>, affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<5x3x7x1xf32>) outs(%e : tensor<5x3x7xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = math.exp %in : f32
    linalg.yield %s : f32
  } -> tensor<5x3x7xf32>
  %added = tensor.expand_shape %x [[0, 1], [2], [3], [4, 5, 6]] output_shape [1, 5, 3, 7, 1, 1, 1]
      : tensor<5x3x7x1xf32> into tensor<1x5x3x7x1x1x1xf32>
  return %y, %added : tensor<5x3x7xf32>, tensor<1x5x3x7x1x1x1xf32>
}

// -----

// Loops that index a tensor twice, as for its diagonal, stay.
// CHECK-LABEL: func @diagonals
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["reduction", "reduction"]
// CHECK-SAME: ins(%{{.*}} : tensor<7x5x7xf32>) outs(%{{.*}} : tensor<f32>)
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<7x5xf32>, tensor<7x5x9xf32>) outs(%{{.*}} : tensor<7x5xf32>)
func.func @diagonals(%x: tensor<7x5x7xf32>, %y: tensor<7x5xf32>, %z: tensor<7x5x9xf32>)
    -> (tensor<f32>, tensor<7x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %r = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%r : tensor<f32>) -> tensor<f32>
  %trace = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j, i)>, affine_map<(i, j) -> ()>],
                           iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<7x5x7xf32>) outs(%start : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %e = tensor.empty() : tensor<7x5xf32>
  %shifted = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j, i + 2)>,
                                              affine_map<(i, j) -> (i, j)>],
                             iterator_types = ["parallel", "parallel"]}
      ins(%y, %z : tensor<7x5xf32>, tensor<7x5x9xf32>) outs(%e : tensor<7x5xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<7x5xf32>
  return %trace, %shifted : tensor<f32>, tensor<7x5xf32>
}

// -----

// Dims of which a single index other than the first is read stay, too.
// CHECK-LABEL: func @one_place
// CHECK: linalg.generic
// CHECK-SAME: outs(%{{.*}} : tensor<7x5xf32>)
// CHECK: linalg.generic
// CHECK-SAME: outs(%{{.*}} : tensor<27xf32>)
func.func @one_place(%x: tensor<7x5xf32>, %y: tensor<9x3xf32>) -> (tensor<f32>, tensor<f32>) {
  %e = tensor.empty() : tensor<7x5xf32>
  %f = tensor.empty() : tensor<9x3xf32>
  %r = tensor.empty() : tensor<f32>
  %exp = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                         iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<7x5xf32>) outs(%e : tensor<7x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = math.exp %in : f32
    linalg.yield %s : f32
  } -> tensor<7x5xf32>
  %tanh = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                          iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<9x3xf32>) outs(%f : tensor<9x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = math.tanh %in : f32
    linalg.yield %s : f32
  } -> tensor<9x3xf32>
  %inner = linalg.generic {indexing_maps = [affine_map<() -> (2, 3)>, affine_map<() -> ()>], iterator_types = []}
      ins(%exp : tensor<7x5xf32>) outs(%r : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<f32>
  %first = linalg.generic {indexing_maps = [affine_map<() -> (0, 0)>, affine_map<() -> ()>], iterator_types = []}
      ins(%tanh : tensor<9x3xf32>) outs(%r : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<f32>
  return %inner, %first : tensor<f32>, tensor<f32>
}

// -----

// An input that repeats along rows of 3 does not keep 7x3 planes apart: it is repeated in memory, a constant folded.
// CHECK-LABEL: func @repeated
// CHECK-SAME: %[[BIAS:[a-z0-9]+]]: tensor<3xf32>
// CHECK: %[[LAID:.*]] = linalg.generic
// CHECK-SAME: ins(%[[BIAS]] : tensor<3xf32>) outs(%{{.*}} : tensor<7x3xf32>)
// CHECK: %[[ROW:.*]] = tensor.collapse_shape %[[LAID]] {{\[\[}}0, 1]]
// CHECK: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<21xf32>
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction", "parallel"]
// CHECK-SAME: ins(%{{.*}}, %[[ROW]], %[[TWO]] : tensor<2x9x21xf32>, tensor<21xf32>, tensor<21xf32>)
func.func @repeated(%x: tensor<2x9x7x3xf32>, %bias: tensor<3xf32>) -> tensor<2x7x3xf32> {
  %two = arith.constant dense<2.0> : tensor<3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x7x3xf32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<2x7x3xf32>) -> tensor<2x7x3xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(n, r, i, j) -> (n, r, i, j)>, affine_map<(n, r, i, j) -> (j)>,
                                          affine_map<(n, r, i, j) -> (j)>, affine_map<(n, r, i, j) -> (n, i, j)>],
                         iterator_types = ["parallel", "reduction", "parallel", "parallel"]}
      ins(%x, %bias, %two : tensor<2x9x7x3xf32>, tensor<3xf32>, tensor<3xf32>) outs(%start : tensor<2x7x3xf32>) {
  ^bb0(%in: f32, %b: f32, %t: f32, %out: f32):
    %a = arith.addf %in, %b : f32
    %m = arith.maximumf %a, %t : f32
    %s = arith.addf %m, %out : f32
    linalg.yield %s : f32
  } -> tensor<2x7x3xf32>
  return %sum : tensor<2x7x3xf32>
}

// -----

// The input is not repeated if it would be as large as the result.
// CHECK-LABEL: func @too_large
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<70x3xf32>, tensor<3xf32>)
func.func @too_large(%x: tensor<70x3xf32>, %bias: tensor<3xf32>) -> tensor<70x3xf32> {
  %e = tensor.empty() : tensor<70x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias : tensor<70x3xf32>, tensor<3xf32>) outs(%e : tensor<70x3xf32>) {
  ^bb0(%in: f32, %b: f32, %out: f32):
    %a = arith.addf %in, %b : f32
    linalg.yield %a : f32
  } -> tensor<70x3xf32>
  return %y : tensor<70x3xf32>
}
