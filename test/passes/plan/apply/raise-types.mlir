// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-raise,tile-compose))' | FileCheck %s

// Scalars are tensors of rank zero, with an empty domain.
// CHECK-LABEL: func @rank_zero
// CHECK: %[[S:.+]] = tile.expr domain [7] reduce [0](%arg0) {{.*}} inits [0.000000e+00 : f16] : (tensor<7xf16>) -> tensor<f16>
// CHECK: tile.expr domain [] reduce [](%[[S]])
func.func @rank_zero(%a: tensor<7xf16>) -> tensor<f16> {
  %zero = arith.constant dense<0.0> : tensor<f16>
  %s = linalg.reduce { arith.addf } ins(%a : tensor<7xf16>) outs(%zero : tensor<f16>) dimensions = [0]
  %e = tensor.empty() : tensor<f16>
  %x = linalg.exp ins(%s : tensor<f16>) outs(%e : tensor<f16>) -> tensor<f16>
  return %x : tensor<f16>
}

// A pad of integers or booleans keeps its type.
// CHECK-LABEL: func @integers
// CHECK: tile.expr domain [6]
// CHECK: ^bb0(%[[M:.+]]: i1):
// CHECK:   arith.constant true
// CHECK:   arith.select {{.*}} : i1
func.func @integers(%m: tensor<4xi1>) -> tensor<6xi1> {
  %true = arith.constant true
  %p = tensor.pad %m low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %true : i1
  } : tensor<4xi1> to tensor<6xi1>
  return %p : tensor<6xi1>
}

// Accumulators may have different types; one of these holds an index (argmax).
// CHECK-LABEL: func @argmax
// CHECK: tile.expr domain [3, 5] reduce [1](%arg0) {{.*}} inits [0xFC00 : f16, 0] : (tensor<3x5xf16>) -> (tensor<3xf16>, tensor<3xi64>)
// CHECK: ^bb0(%{{.+}}: f16, %{{.+}}: f16, %{{.+}}: i64):
// CHECK:   tile.index
func.func @argmax(%a: tensor<3x5xf16>) -> (tensor<3xf16>, tensor<3xi64>) {
  %low = arith.constant dense<0xFC00> : tensor<3xf16>
  %first = arith.constant dense<0> : tensor<3xi64>
  %m:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<3x5xf16>) outs(%low, %first : tensor<3xf16>, tensor<3xi64>) {
  ^bb0(%in: f16, %best: f16, %at: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %greater = arith.cmpf ogt, %in, %best : f16
    %max = arith.maximumf %in, %best : f16
    %where = arith.select %greater, %here, %at : i64
    linalg.yield %max, %where : f16, i64
  } -> (tensor<3xf16>, tensor<3xi64>)
  return %m#0, %m#1 : tensor<3xf16>, tensor<3xi64>
}
