// RUN: tilewright-opt %s --verify-diagnostics --pass-pipeline='builtin.module(func.func(tile-print-propagation{output-tile=0}))'

// expected-error @below {{tile sizes must be positive}}
func.func @tile_of_no_elements(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
