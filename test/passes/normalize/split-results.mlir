// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-normalize))' | FileCheck %s

// Results of different types are computed by an op each, without what only the other needs.
// CHECK-LABEL: func @split
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<4x1xi64>)
// CHECK:   linalg.index
// CHECK-NOT: arith.addf
// CHECK: linalg.generic {{.*}} ins(%arg0 : tensor<4xf32>) outs({{.*}} : tensor<4xf32>)
// CHECK-NOT: linalg.index
// CHECK:   arith.addf
func.func @split(%x: tensor<4xf32>) -> (tensor<4x1xi64>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4x1xi64>
  %f = tensor.empty() : tensor<4xf32>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a, 0)>, affine_map<(a) -> (a)>],
                         iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e, %f : tensor<4x1xi64>, tensor<4xf32>) {
  ^bb0(%a: f32, %o: i64, %p: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %s = arith.addf %a, %a : f32
    linalg.yield %n, %s : i64, f32
  } -> (tensor<4x1xi64>, tensor<4xf32>)
  return %y#0, %y#1 : tensor<4x1xi64>, tensor<4xf32>
}

// Results of a reduction depend on each other's loop, so they stay together.
// CHECK-LABEL: func @reduced
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
func.func @reduced(%x: tensor<4xf32>, %a: tensor<f32>, %b: tensor<i32>) -> (tensor<f32>, tensor<i32>) {
  %y:2 = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> ()>, affine_map<(a) -> ()>],
                         iterator_types = ["reduction"]}
      ins(%x : tensor<4xf32>) outs(%a, %b : tensor<f32>, tensor<i32>) {
  ^bb0(%v: f32, %o: f32, %p: i32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %c = arith.cmpf ogt, %v, %o : f32
    %s = arith.select %c, %v, %o : f32
    %m = arith.select %c, %n, %p : i32
    linalg.yield %s, %m : f32, i32
  } -> (tensor<f32>, tensor<i32>)
  return %y#0, %y#1 : tensor<f32>, tensor<i32>
}
