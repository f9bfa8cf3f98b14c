// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-compute-ratio))' --verify-diagnostics
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-compute-ratio{threshold=0.4}))' 2>&1 | FileCheck %s

// A matmul does two operations per product: 2 * 8 * 4 * 16 over 8*16 + 16*4 read and 8*4 written.
func.func @matmul_is_compute_intensive(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<8x4xf32>
  // expected-remark @below {{compute-intensive: 1024 operations, 192 elements read, 32 written, ratio 4.571}}
  %c = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x4xf32>) outs(%zero : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %c : tensor<8x4xf32>
}

// Each element is moved twice and takes one operation; an option sets the threshold.
// CHECK: compute-intensive: 42 operations
func.func @exp_is_memory_intensive(%a: tensor<6x7xf32>) -> tensor<6x7xf32> {
  // expected-remark @below {{memory-intensive: 42 operations, 42 elements read, 42 written, ratio 0.500}}
  %x = linalg.exp ins(%a : tensor<6x7xf32>) outs(%a : tensor<6x7xf32>) -> tensor<6x7xf32>
  return %x : tensor<6x7xf32>
}

// Movement computes nothing, and a slice reads only the elements that it takes.
func.func @slice_reads_what_it_takes(%a: tensor<6x7xf32>) -> tensor<2x7xf32> {
  // expected-remark @below {{memory-intensive: 0 operations, 14 elements read, 14 written, ratio 0.000}}
  %s = tensor.extract_slice %a[3, 0] [2, 7] [1, 1] : tensor<6x7xf32> to tensor<2x7xf32>
  return %s : tensor<2x7xf32>
}
