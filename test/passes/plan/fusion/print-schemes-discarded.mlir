// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-schemes{target=cuda:h200 all=true}))' -o /dev/null 2>&1 | FileCheck %s

// Too few columns per block split cache lines between blocks; too many threads with own rows exceed its memory.
// CHECK-DAG: columns, {{.*}} discarded, neighbours would read 16 bytes of a line of 128
// CHECK-DAG: remark: chosen: columns
func.func @columns(%x: tensor<100x640xf32>) -> tensor<640xf32> {
  %zero = arith.constant dense<0.0> : tensor<640xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<100x640xf32>) outs(%zero : tensor<640xf32>) dimensions = [0]
  return %s : tensor<640xf32>
}

// CHECK-DAG: thread composition, {{.*}} discarded, its rows take {{[0-9]+}} bytes of shared memory; the target has
func.func @rows(%x: tensor<400x2048xf32>) -> tensor<400x2048xf32> {
  %zero = arith.constant dense<0.0> : tensor<400xf32>
  %e = tensor.empty() : tensor<400x2048xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<400x2048xf32>) outs(%zero : tensor<400xf32>) dimensions = [1]
  %b = linalg.broadcast ins(%s : tensor<400xf32>) outs(%e : tensor<400x2048xf32>) dimensions = [1]
  %y = linalg.sub ins(%x, %b : tensor<400x2048xf32>, tensor<400x2048xf32>) outs(%e : tensor<400x2048xf32>)
      -> tensor<400x2048xf32>
  return %y : tensor<400x2048xf32>
}
