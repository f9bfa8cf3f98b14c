// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-raise))' \
// RUN:   --remarks-filter-missed=tile-raise --remark-format=emitRemark --verify-diagnostics

func.func @dynamic(%a: tensor<?xf32>) -> tensor<?xf32> {
  // expected-remark @below {{dynamic shape}}
  %x = linalg.exp ins(%a : tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>
  return %x : tensor<?xf32>
}

func.func @accumulates_onto_a_tensor(%a: tensor<3x5xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  // expected-remark @below {{the accumulator starts from a computed tensor}}
  %m = linalg.reduce { arith.addf } ins(%a : tensor<3x5xf32>) outs(%b : tensor<3xf32>) dimensions = [1]
  return %m : tensor<3xf32>
}

func.func @pads_with_a_computed_value(%a: tensor<5xf32>, %value: f32) -> tensor<8xf32> {
  // expected-remark @below {{pad with a computed value}}
  %p = tensor.pad %a low[2] high[1] {
  ^bb0(%i: index):
    tensor.yield %value : f32
  } : tensor<5xf32> to tensor<8xf32>
  return %p : tensor<8xf32>
}

func.func @slices_anywhere(%a: tensor<5xf32>, %i: index) -> tensor<2xf32> {
  // expected-remark @below {{slice with dynamic offsets or strides}}
  %x = tensor.extract_slice %a[%i] [2] [1] : tensor<5xf32> to tensor<2xf32>
  return %x : tensor<2xf32>
}

func.func @complex_elements(%a: tensor<5x2xcomplex<f32>>) -> tensor<10xcomplex<f32>> {
  // expected-remark @below {{unsupported element type}}
  %x = tensor.collapse_shape %a [[0, 1]] : tensor<5x2xcomplex<f32>> into tensor<10xcomplex<f32>>
  return %x : tensor<10xcomplex<f32>>
}
