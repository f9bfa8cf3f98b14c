// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-form-subprograms{target=x86-64-avx2})' | FileCheck %s

// A number that another op takes out of its tensor needs no kernel; numbers that are a result of the function do.
// CHECK-LABEL: func.func @sizes
// CHECK-NOT: tile.subprogram
// CHECK: return
func.func @sizes(%x: tensor<2xi64>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %e = tensor.empty() : tensor<2xi64>
  %t = linalg.add ins(%x, %x : tensor<2xi64>, tensor<2xi64>) outs(%e : tensor<2xi64>) -> tensor<2xi64>
  %zero = arith.constant 0 : index
  %n = tensor.extract %t[%zero] : tensor<2xi64>
  %size = arith.index_cast %n : i64 to index
  %r = tensor.extract_slice %y[0] [%size] [1] : tensor<?xf32> to tensor<?xf32>
  return %r : tensor<?xf32>
}

// CHECK-LABEL: func.func @numbers
// CHECK: tile.subprogram
func.func @numbers(%x: tensor<2xi64>) -> tensor<2xi64> {
  %e = tensor.empty() : tensor<2xi64>
  %t = linalg.add ins(%x, %x : tensor<2xi64>, tensor<2xi64>) outs(%e : tensor<2xi64>) -> tensor<2xi64>
  return %t : tensor<2xi64>
}
