// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-plan{target=x86-64-avx2}))' --verify-diagnostics

#image = affine_map<(i, j) -> (i, j)>
#window = affine_map<(i, j, k, l) -> (i + k, j + l)>
#windows = affine_map<(i, j, k, l) -> (i, j, k, l)>

// Nine windows contain each element. Its exponential is computed once, in a kernel of its own.
// expected-remark @below {{kernel exp_0}}
// expected-remark @below {{kernel mulf_0}}
func.func @exponential_before_windows(%x: tensor<243x517xf32>, %scale: tensor<241x515x3x3xf32>) -> tensor<241x515x3x3xf32> {
  %e = tensor.empty() : tensor<243x517xf32>
  %r = tensor.empty() : tensor<241x515x3x3xf32>
  // expected-remark @below {{op 0 in kernel exp_0, root}}
  %y = linalg.exp ins(%x : tensor<243x517xf32>) outs(%e : tensor<243x517xf32>) -> tensor<243x517xf32>
  // expected-remark @below {{op 1 in kernel mulf_0, root}}
  // expected-remark @below {{input 1 from op 0 at scope launch: one kernel is predicted slower}}
  %z = linalg.generic {indexing_maps = [#windows, #window, #windows],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%scale, %y : tensor<241x515x3x3xf32>, tensor<243x517xf32>) outs(%r : tensor<241x515x3x3xf32>) {
  ^bb0(%s: f32, %in: f32, %out: f32):
    %m = arith.mulf %s, %in : f32
    linalg.yield %m : f32
  } -> tensor<241x515x3x3xf32>
  return %z : tensor<241x515x3x3xf32>
}

// A maximum is cheaper than writing and reading the image, so each window computes its own.
// expected-remark @below {{kernel maximumf_mulf_0}}
func.func @maximum_before_windows(%x: tensor<243x517xf32>, %scale: tensor<241x515x3x3xf32>) -> tensor<241x515x3x3xf32> {
  %e = tensor.empty() : tensor<243x517xf32>
  %r = tensor.empty() : tensor<241x515x3x3xf32>
  // expected-remark @below {{op 0 in kernel}}
  %y = linalg.generic {indexing_maps = [#image, #image], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<243x517xf32>) outs(%e : tensor<243x517xf32>) {
  ^bb0(%in: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    %m = arith.maximumf %in, %zero : f32
    linalg.yield %m : f32
  } -> tensor<243x517xf32>
  // expected-remark @below {{op 1 in kernel}}
  // expected-remark @below {{input 1 from op 0 at scope thread, recomputed: one nest reads it: it stays in registers}}
  %z = linalg.generic {indexing_maps = [#windows, #window, #windows],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%scale, %y : tensor<241x515x3x3xf32>, tensor<243x517xf32>) outs(%r : tensor<241x515x3x3xf32>) {
  ^bb0(%s: f32, %in: f32, %out: f32):
    %m = arith.mulf %s, %in : f32
    linalg.yield %m : f32
  } -> tensor<241x515x3x3xf32>
  return %z : tensor<241x515x3x3xf32>
}

// A batch of images is multiplied with one image: its square root is kept in a buffer for all of them.
// expected-remark @below {{kernel sqrt_mulf_0}}
func.func @square_root_of_a_repeated_image(%x: tensor<243x517xf32>, %scale: tensor<7x243x517xf32>) -> tensor<7x243x517xf32> {
  %e = tensor.empty() : tensor<243x517xf32>
  %r = tensor.empty() : tensor<7x243x517xf32>
  // expected-remark @below {{op 0 in kernel}}
  %y = linalg.sqrt ins(%x : tensor<243x517xf32>) outs(%e : tensor<243x517xf32>) -> tensor<243x517xf32>
  // expected-remark @below {{op 1 in kernel}}
  // expected-remark @below {{input 1 from op 0 at scope block: its readers use each element several times: computed once, in a buffer}}
  %z = linalg.generic {indexing_maps = [affine_map<(n, i, j) -> (n, i, j)>, affine_map<(n, i, j) -> (i, j)>,
                                        affine_map<(n, i, j) -> (n, i, j)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scale, %y : tensor<7x243x517xf32>, tensor<243x517xf32>) outs(%r : tensor<7x243x517xf32>) {
  ^bb0(%s: f32, %in: f32, %out: f32):
    %m = arith.mulf %s, %in : f32
    linalg.yield %m : f32
  } -> tensor<7x243x517xf32>
  return %z : tensor<7x243x517xf32>
}
