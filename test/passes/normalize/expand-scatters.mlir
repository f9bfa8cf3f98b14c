// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-normalize))' | FileCheck %s

// Each slice takes the elements of the last update that hits it.
// CHECK-LABEL: func @replaced
// CHECK-SAME:  %[[X:[a-z0-9]+]]: tensor<7x5xf32>, %[[PLACES:[a-z0-9]+]]: tensor<3x1xi64>, %[[NEW:[a-z0-9]+]]: tensor<3x5xf32>
// CHECK: %[[OLD:.*]] = linalg.generic {{.*}} ins(%[[X]]
// CHECK: %[[LAST:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[PLACES]] {{.*}} outs({{.*}} : tensor<7xi32>)
// CHECK:   arith.cmpi eq
// CHECK:   arith.maxsi
// CHECK: linalg.generic {{.*}} ins(%[[LAST]], %[[OLD]] : tensor<7xi32>, tensor<7x5xf32>)
// CHECK:   arith.cmpi sge
// CHECK:   tensor.extract %[[NEW]]
// CHECK:   arith.select
func.func @replaced(%x: tensor<7x5xf32>, %places: tensor<3x1xi64>, %new: tensor<3x5xf32>) -> tensor<7x5xf32> {
  %e = tensor.empty() : tensor<7x5xf32>
  %old = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
                         iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<7x5xf32>) outs(%e : tensor<7x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<7x5xf32>
  %y = "iree_linalg_ext.scatter"(%new, %places, %old) <{dimension_map = array<i64: 0>, unique_indices = false}> ({
  ^bb0(%a: f32, %b: f32):
    "iree_linalg_ext.yield"(%a) : (f32) -> ()
  }) : (tensor<3x5xf32>, tensor<3x1xi64>, tensor<7x5xf32>) -> tensor<7x5xf32>
  return %y : tensor<7x5xf32>
}

// Updates that are added are summed from -0, which leaves an element without updates as it is. They may have several
// dims, and indices into several dims.
// CHECK-LABEL: func @added
// CHECK: tensor.collapse_shape {{.*}} : tensor<2x3x5xf32> into tensor<6x5xf32>
// CHECK: tensor.collapse_shape {{.*}} : tensor<2x3x2xi32> into tensor<6x2xi32>
// CHECK: %[[ZERO:.*]] = arith.constant -0.000000e+00 : f32
// CHECK: linalg.fill ins(%[[ZERO]]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
// CHECK-COUNT-2: arith.cmpi eq
// CHECK:   arith.addf
// CHECK: linalg.generic
// CHECK:   arith.addf
func.func @added(%x: tensor<7x4x5xf32>, %places: tensor<2x3x2xi32>, %new: tensor<2x3x5xf32>) -> tensor<7x4x5xf32> {
  %y = "iree_linalg_ext.scatter"(%new, %places, %x) <{dimension_map = array<i64: 0, 1>, unique_indices = false}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %b, %a : f32
    "iree_linalg_ext.yield"(%s) : (f32) -> ()
  }) : (tensor<2x3x5xf32>, tensor<2x3x2xi32>, tensor<7x4x5xf32>) -> tensor<7x4x5xf32>
  return %y : tensor<7x4x5xf32>
}

// A single update needs no loop.
// CHECK-LABEL: func @single
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]}
// CHECK:   arith.minsi
// CHECK:   arith.cmpi eq
// CHECK:   arith.select
// CHECK-NOT: linalg.generic
func.func @single(%x: tensor<7xi32>, %place: tensor<1xi64>, %new: tensor<1xi32>) -> tensor<7xi32> {
  %y = "iree_linalg_ext.scatter"(%new, %place, %x) <{dimension_map = array<i64: 0>, unique_indices = true}> ({
  ^bb0(%a: i32, %b: i32):
    %s = arith.minsi %a, %b : i32
    "iree_linalg_ext.yield"(%s) : (i32) -> ()
  }) : (tensor<1xi32>, tensor<1xi64>, tensor<7xi32>) -> tensor<7xi32>
  return %y : tensor<7xi32>
}

// IREE stores rows in place of an argument, such as a cache; and many updates would be compared with many elements.
// CHECK-LABEL: func @left
// CHECK-COUNT-2: iree_linalg_ext.scatter
func.func @left(%cache: tensor<2048x64xf32>, %at: tensor<1xi64>, %row: tensor<1x64xf32>, %x: tensor<9000x64xf32>,
                %places: tensor<4000xi64>, %new: tensor<4000x64xf32>) -> (tensor<2048x64xf32>, tensor<9000x64xf32>) {
  %y = "iree_linalg_ext.scatter"(%row, %at, %cache) <{dimension_map = array<i64: 0>, unique_indices = true}> ({
  ^bb0(%a: f32, %b: f32):
    "iree_linalg_ext.yield"(%a) : (f32) -> ()
  }) : (tensor<1x64xf32>, tensor<1xi64>, tensor<2048x64xf32>) -> tensor<2048x64xf32>
  %z = "iree_linalg_ext.scatter"(%new, %places, %x) <{dimension_map = array<i64: 0>, unique_indices = false}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "iree_linalg_ext.yield"(%s) : (f32) -> ()
  }) : (tensor<4000x64xf32>, tensor<4000xi64>, tensor<9000x64xf32>) -> tensor<9000x64xf32>
  return %y, %z : tensor<2048x64xf32>, tensor<9000x64xf32>
}
