// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-plan{target=x86-64-avx512}))' --verify-diagnostics -o /dev/null

// A row that fits no workgroup: broadcasting to it is an index computation of the kernel that reads it, and not a
// tensor of the kernel that sums the row.
// expected-remark @below {{kernel reduce_addf_0: extents [1048573]}}
// expected-remark @below {{kernel subf_0: extents [1048573]}}
func.func @broadcasts_to_a_long_row_go_with_their_reader(%x: tensor<1x1048573xf32>) -> tensor<1x1048573xf32> {
  %zero = arith.constant dense<0.0> : tensor<1xf32>
  %e = tensor.empty() : tensor<1x1048573xf32>
  // expected-remark @below {{op 0 in kernel reduce_addf_0, root}}
  %s = linalg.reduce { arith.addf } ins(%x : tensor<1x1048573xf32>) outs(%zero : tensor<1xf32>) dimensions = [1]
  // expected-remark @below {{op 1 in kernel subf_0}}
  // expected-remark @below {{input 0 from op 0 at scope launch: the tiles of one workgroup take}}
  %sb = linalg.broadcast ins(%s : tensor<1xf32>) outs(%e : tensor<1x1048573xf32>) dimensions = [1]
  // expected-remark @below {{op 2 in kernel subf_0, root}}
  // expected-remark @below {{input 1 from op 1 at scope thread, recomputed}}
  %y = linalg.sub ins(%x, %sb : tensor<1x1048573xf32>, tensor<1x1048573xf32>)
                  outs(%e : tensor<1x1048573xf32>) -> tensor<1x1048573xf32>
  return %y : tensor<1x1048573xf32>
}
