// RUN: tilewright-opt %s --split-input-file --tile-form-subprograms=target=x86-64-avx512 --allow-unregistered-dialect \
// RUN:   --verify-diagnostics -o /dev/null

// Functions of IREE are not planned before tile-import-iree has made func.func of them, which is not to go unnoticed.
// expected-warning @below {{is not planned, because only func.func is: run tile-import-iree first}}
"util.func"() <{function_type = (tensor<3x5xf32>) -> tensor<3x5xf32>, sym_name = "add"}> ({
^bb0(%x: tensor<3x5xf32>):
  %e = tensor.empty() : tensor<3x5xf32>
  %sum = linalg.add ins(%x, %x : tensor<3x5xf32>, tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  "util.return"(%sum) : (tensor<3x5xf32>) -> ()
}) : () -> ()

// -----

// Functions without a body have nothing to plan.
"util.func"() <{function_type = (tensor<3x5xf32>) -> tensor<3x5xf32>, sym_name = "elsewhere"}> ({}) : () -> ()
