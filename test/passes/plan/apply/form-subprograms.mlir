// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(tile-form-subprograms{target=x86-64-avx512 cores=2})' --split-input-file | FileCheck %s

// Softmax, decomposed by a front end, is one kernel: reductions and the exponential have block scope, and the rest
// stays in registers. No pattern is matched; any group of dependent reductions is treated this way.
// CHECK-LABEL: func @softmax_is_one_kernel
// CHECK: tile.subprogram "reduce_maximumf_addf_exp_0"(%arg0) extents [37, 1027] tiles [1, 1027] grid [0] vector 1
// CHECK:   %[[MAX:.*]] = tile.expr domain [37, 1027] reduce [1]{{.*}} inits [0xFF800000 : f32] dims [0, 1]
// CHECK:   %[[MAXED:.*]] = tile.connect %[[MAX]] <block>
// CHECK:   %[[ROW:.*]] = tile.expr domain [37, 1027] reduce [](%[[MAXED]])
// CHECK:   tile.connect %[[ROW]] <thread> recompute
// CHECK:   math.exp
// CHECK:   tile.connect {{.*}} <block>
// CHECK:   tile.expr domain [37, 1027] reduce [1]
// CHECK:   arith.divf
// CHECK:   tile.yield %{{.*}} : tensor<37x1027xf32>
// CHECK: return
func.func @softmax_is_one_kernel(%x: tensor<37x1027xf32>) -> tensor<37x1027xf32> {
  %zero = arith.constant dense<0.0> : tensor<37xf32>
  %low = arith.constant dense<0xFF800000> : tensor<37xf32>
  %e = tensor.empty() : tensor<37x1027xf32>
  %m = linalg.reduce { arith.maximumf } ins(%x : tensor<37x1027xf32>) outs(%low : tensor<37xf32>) dimensions = [1]
  %mb = linalg.broadcast ins(%m : tensor<37xf32>) outs(%e : tensor<37x1027xf32>) dimensions = [1]
  %d = linalg.sub ins(%x, %mb : tensor<37x1027xf32>, tensor<37x1027xf32>)
                  outs(%e : tensor<37x1027xf32>) -> tensor<37x1027xf32>
  %p = linalg.exp ins(%d : tensor<37x1027xf32>) outs(%e : tensor<37x1027xf32>) -> tensor<37x1027xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<37x1027xf32>) outs(%zero : tensor<37xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<37xf32>) outs(%e : tensor<37x1027xf32>) dimensions = [1]
  %y = linalg.div ins(%p, %sb : tensor<37x1027xf32>, tensor<37x1027xf32>)
                  outs(%e : tensor<37x1027xf32>) -> tensor<37x1027xf32>
  return %y : tensor<37x1027xf32>
}

// -----

// A reshape between two ops of a kernel disappears into it; dims of one element are not part of the iteration space.
// CHECK-LABEL: func @inner_reshape_and_unit_dims_vanish
// CHECK: tile.subprogram {{.*}} extents [37, 53]
// CHECK:   tile.expr domain [37, 53] reduce [1]
// CHECK:   tile.expr domain [37] reduce []
// CHECK:   tile.yield
// CHECK-NOT: tensor.collapse_shape
func.func @inner_reshape_and_unit_dims_vanish(%x: tensor<1x37x53xf32>) -> tensor<1x37xf32> {
  %zero = arith.constant dense<0.0> : tensor<1x37x1xf32>
  %e = tensor.empty() : tensor<1x37xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, 0)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<1x37x53xf32>) outs(%zero : tensor<1x37x1xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %r = arith.addf %in, %acc : f32
    linalg.yield %r : f32
  } -> tensor<1x37x1xf32>
  %c = tensor.collapse_shape %s [[0], [1, 2]] : tensor<1x37x1xf32> into tensor<1x37xf32>
  %y = linalg.exp ins(%c : tensor<1x37xf32>) outs(%e : tensor<1x37xf32>) -> tensor<1x37xf32>
  return %y : tensor<1x37xf32>
}

// -----

// At the border of a kernel a reshape is a view and stays outside.
// CHECK-LABEL: func @border_reshape_stays_outside
// CHECK: tensor.collapse_shape
// CHECK: tile.subprogram {{.*}} extents [4096]
// CHECK: tensor.expand_shape
func.func @border_reshape_stays_outside(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<4096xf32>
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<64x64xf32> into tensor<4096xf32>
  %y = linalg.exp ins(%c : tensor<4096xf32>) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
  %r = tensor.expand_shape %y [[0, 1]] output_shape [64, 64] : tensor<4096xf32> into tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}

// -----

// Small independent parts become one kernel: two subprograms of one name, side by side.
// CHECK-LABEL: func @small_independent_parts_are_packed
// CHECK: tile.subprogram "exp_tanh_0"(%arg0) extents [37]
// CHECK: tile.subprogram "exp_tanh_0"(%arg1) extents [53]
func.func @small_independent_parts_are_packed(%x: tensor<37xf32>, %y: tensor<53xf32>) -> (tensor<37xf32>, tensor<53xf32>) {
  %e = tensor.empty() : tensor<37xf32>
  %f = tensor.empty() : tensor<53xf32>
  %a = linalg.exp ins(%x : tensor<37xf32>) outs(%e : tensor<37xf32>) -> tensor<37xf32>
  %b = linalg.tanh ins(%y : tensor<53xf32>) outs(%f : tensor<53xf32>) -> tensor<53xf32>
  return %a, %b : tensor<37xf32>, tensor<53xf32>
}

// -----

// A result that is read both inside and outside is an output of the kernel, and stays available in it.
// CHECK-LABEL: func @several_outputs
// CHECK: %[[R:.*]]:2 = tile.subprogram {{.*}} -> (tensor<640x53xf32>, tensor<640xf32>)
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @several_outputs(%x: tensor<640x53xf32>) -> (tensor<640x53xf32>, tensor<640xf32>) {
  %zero = arith.constant dense<0.0> : tensor<640xf32>
  %e = tensor.empty() : tensor<640x53xf32>
  %a = linalg.exp ins(%x : tensor<640x53xf32>) outs(%e : tensor<640x53xf32>) -> tensor<640x53xf32>
  %s = linalg.reduce { arith.addf } ins(%a : tensor<640x53xf32>) outs(%zero : tensor<640xf32>) dimensions = [1]
  return %a, %s : tensor<640x53xf32>, tensor<640xf32>
}

// -----

// Ops between the members of a kernel move out of the way; ops with effects keep their order.
// CHECK-LABEL: func @ops_between_move
// CHECK: "some.load"
// CHECK: %[[K:.*]]:2 = tile.subprogram
// CHECK: "some.store"
// CHECK: "some.store"
func.func @ops_between_move(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %a = linalg.exp ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = "some.load"() : () -> tensor<64x64xf32>
  "some.store"(%a) : (tensor<64x64xf32>) -> ()
  %b = linalg.add ins(%a, %g : tensor<64x64xf32>, tensor<64x64xf32>)
                  outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  "some.store"(%b) : (tensor<64x64xf32>) -> ()
  return %b : tensor<64x64xf32>
}

// -----

// Splat constants are scalars of the body, not inputs of the kernel.
// CHECK-LABEL: func @splat_constants_are_no_inputs
// CHECK: tile.subprogram {{.*}}(%arg0) extents
// CHECK: arith.constant 2.500000e+00 : f32
func.func @splat_constants_are_no_inputs(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c = arith.constant dense<2.5> : tensor<64x64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %y = linalg.mul ins(%x, %c : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// -----

// Left as they are: contractions without a register block, ops that IREE folds into them, movement, and several blocks.
// CHECK-LABEL: func @leaves_contractions_and_what_folds
// CHECK-NOT: tile.subprogram
func.func @leaves_contractions_and_what_folds(%a: tensor<9x5xf16>, %b: tensor<5x7xf16>) -> tensor<7x9xf16> {
  %z = arith.constant dense<0.0> : tensor<9x7xf16>
  %e = tensor.empty() : tensor<9x7xf16>
  %f = tensor.empty() : tensor<7x9xf16>
  %m = linalg.matmul ins(%a, %b : tensor<9x5xf16>, tensor<5x7xf16>) outs(%z : tensor<9x7xf16>) -> tensor<9x7xf16>
  %x = linalg.exp ins(%m : tensor<9x7xf16>) outs(%e : tensor<9x7xf16>) -> tensor<9x7xf16>
  %t = linalg.transpose ins(%x : tensor<9x7xf16>) outs(%f : tensor<7x9xf16>) permutation = [1, 0]
  return %t : tensor<7x9xf16>
}

// CHECK-LABEL: func @leaves_several_blocks
// CHECK-NOT: tile.subprogram
func.func @leaves_several_blocks(%x: tensor<7xf32>) -> tensor<7xf32> {
  %e = tensor.empty() : tensor<7xf32>
  %y = linalg.exp ins(%x : tensor<7xf32>) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  cf.br ^bb1
^bb1:
  return %y : tensor<7xf32>
}

// -----

// Input and output of 64 MiB exceed every cache, so the output is streamed. The row sums are few, and are not streamed.
// CHECK-LABEL: func @streams_what_no_cache_holds
// CHECK: tile.subprogram {{.*}} streamed [0] numerics <relaxed, fast> : (tensor<4096x4096xf32>) -> (tensor<4096x4096xf32>, tensor<4096xf32>)
// CHECK-LABEL: func @keeps_what_a_cache_holds
// CHECK: tile.subprogram
// CHECK-NOT: streamed
func.func @streams_what_no_cache_holds(%x: tensor<4096x4096xf32>) -> (tensor<4096x4096xf32>, tensor<4096xf32>) {
  %zero = arith.constant dense<0.0> : tensor<4096xf32>
  %e = tensor.empty() : tensor<4096x4096xf32>
  %y = linalg.exp ins(%x : tensor<4096x4096xf32>) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %s = linalg.reduce { arith.addf } ins(%y : tensor<4096x4096xf32>) outs(%zero : tensor<4096xf32>) dimensions = [1]
  return %y, %s : tensor<4096x4096xf32>, tensor<4096xf32>
}
func.func @keeps_what_a_cache_holds(%x: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>, tensor<1024xf32>) {
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %e = tensor.empty() : tensor<1024x1024xf32>
  %y = linalg.exp ins(%x : tensor<1024x1024xf32>) outs(%e : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %s = linalg.reduce { arith.addf } ins(%y : tensor<1024x1024xf32>) outs(%zero : tensor<1024xf32>) dimensions = [1]
  return %y, %s : tensor<1024x1024xf32>, tensor<1024xf32>
}
