// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-plan{target=x86-64-avx512}))' --verify-diagnostics
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-plan{target=x86-64-avx512 json=true}))' -o /dev/null | FileCheck %s

// The report gives the kernel of each op, and the scope of each edge with its reason.
// CHECK: "kernels": [
// CHECK: "policy": "greedy"
// CHECK: "target": "x86-64-avx512"
// expected-remark @below {{kernel reduce_addf_subf_0: extents [37, 53] tiles}}
func.func @center(%x: tensor<37x53xf32>) -> tensor<37x53xf32> {
  %zero = arith.constant dense<0.0> : tensor<37xf32>
  %e = tensor.empty() : tensor<37x53xf32>
  // expected-remark @below {{op 0 in kernel reduce_addf_subf_0, root at dims [0, 1]}}
  %s = linalg.reduce { arith.addf } ins(%x : tensor<37x53xf32>) outs(%zero : tensor<37xf32>) dimensions = [1]
  // expected-remark @below {{op 1 in kernel reduce_addf_subf_0}}
  // expected-remark @below {{input 0 from op 0 at scope block: a reduction: later nests read the finished tile}}
  %sb = linalg.broadcast ins(%s : tensor<37xf32>) outs(%e : tensor<37x53xf32>) dimensions = [1]
  // expected-remark @below {{op 2 in kernel reduce_addf_subf_0, root at dims [0, 1]}}
  // expected-remark @below {{input 1 from op 1 at scope thread, recomputed: movement: its readers compute the index instead}}
  %y = linalg.sub ins(%x, %sb : tensor<37x53xf32>, tensor<37x53xf32>)
                  outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  return %y : tensor<37x53xf32>
}

// Products of sizes must not overflow: each tensor is addressable, but its multiplications exceed 64 bits.
func.func @too_many_points(%a: tensor<2097152x2097152xf32>, %b: tensor<2097152x2097152xf32>, %init: tensor<2097152x2097152xf32>) -> tensor<2097152x2097152xf32> {
  // expected-remark @below {{op 0 left: it has more than 2^56 points}}
  %c = linalg.matmul ins(%a, %b : tensor<2097152x2097152xf32>, tensor<2097152x2097152xf32>)
                     outs(%init : tensor<2097152x2097152xf32>) -> tensor<2097152x2097152xf32>
  return %c : tensor<2097152x2097152xf32>
}
