// RUN: tilewright-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(func.func(tile-normalize))' | FileCheck %s

// The rank of an element is the number of elements in front of it, and each place takes the element of its rank. The
// second operand is the index of each element, so it is not gathered.
// CHECK-LABEL: func @top
// CHECK-SAME:  %[[X:[a-z0-9]+]]: tensor<3x17xf32>
// CHECK: %[[KEYS:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<3x17xf32>) outs({{.*}} : tensor<3x17xi32>)
// CHECK:   arith.bitcast
// CHECK: %[[RANKS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[KEYS]], %[[KEYS]]
// CHECK:   arith.cmpi sgt
// CHECK:   arith.cmpi eq
// CHECK: %[[PLACES:.*]] = linalg.generic {{.*}} ins(%[[RANKS]] {{.*}} outs({{.*}} : tensor<3x4xi32>)
// CHECK: %[[VALUES:.*]] = linalg.generic {{.*}} ins(%[[PLACES]] {{.*}} outs({{.*}} : tensor<3x4xf32>)
// CHECK:   tensor.extract %[[X]]
// CHECK: %[[INDICES:.*]] = linalg.generic {{.*}} ins(%[[PLACES]] {{.*}} outs({{.*}} : tensor<3x4xi64>)
// CHECK:   arith.extsi
// CHECK: return %[[VALUES]], %[[INDICES]]
func.func @top(%x: tensor<3x17xf32>) -> (tensor<3x4xf32>, tensor<3x4xi64>) {
  %e = tensor.empty() : tensor<3x17xi64>
  %i = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<3x17xi64>) {
  ^bb0(%o: i64):
    %at = linalg.index 1 : index
    %n = arith.index_cast %at : index to i64
    linalg.yield %n : i64
  } -> tensor<3x17xi64>
  %s:2 = "iree_linalg_ext.sort"(%x, %i) <{dimension = 1 : i64}> ({
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %g = arith.cmpf oge, %a, %b : f32
    "iree_linalg_ext.yield"(%g) : (i1) -> ()
  }) : (tensor<3x17xf32>, tensor<3x17xi64>) -> (tensor<3x17xf32>, tensor<3x17xi64>)
  %v = tensor.extract_slice %s#0[0, 0] [3, 4] [1, 1] : tensor<3x17xf32> to tensor<3x4xf32>
  %n = tensor.extract_slice %s#1[0, 0] [3, 4] [1, 1] : tensor<3x17xi64> to tensor<3x4xi64>
  return %v, %n : tensor<3x4xf32>, tensor<3x4xi64>
}

// The first elements of a long row are among the first ones of its blocks, the last of which is filled up.
// CHECK-LABEL: func @blocks
// CHECK: tensor.pad {{.*}} low[0] high[8]
// CHECK:   tensor.yield %c-2147483648_i32
// CHECK: tensor.expand_shape {{.*}} into tensor<63x16xi32>
// CHECK: tensor.collapse_shape {{.*}} : tensor<63x3xi32> into tensor<189xi32>
// CHECK: outs({{.*}} : tensor<3xi32>)
// CHECK-NOT: iree_linalg_ext.sort
func.func @blocks(%x: tensor<1000xi32>) -> tensor<3xi32> {
  %s = "iree_linalg_ext.sort"(%x) <{dimension = 0 : i64}> ({
  ^bb0(%a: i32, %b: i32):
    %g = arith.cmpi sgt, %a, %b : i32
    "iree_linalg_ext.yield"(%g) : (i1) -> ()
  }) : (tensor<1000xi32>) -> tensor<1000xi32>
  %v = tensor.extract_slice %s[0] [3] [1] : tensor<1000xi32> to tensor<3xi32>
  return %v : tensor<3xi32>
}

// An operand beside the one that is compared is gathered, and all of a row is kept where it is read whole. The order of
// unsigned numbers, from the least one, is that of signed ones whose highest bit is turned.
// CHECK-LABEL: func @second_operand
// CHECK-SAME:  %[[X:[a-z0-9]+]]: tensor<9xi8>, %[[Y:[a-z0-9]+]]: tensor<9xf64>
// CHECK: arith.xori {{.*}} : i8
// CHECK: arith.extsi {{.*}} : i8 to i32
// CHECK: arith.xori {{.*}} : i32
// CHECK: tensor.extract %[[Y]]
// CHECK: return {{.*}} : tensor<9xf64>
func.func @second_operand(%x: tensor<9xi8>, %y: tensor<9xf64>) -> tensor<9xf64> {
  %s:2 = "iree_linalg_ext.sort"(%x, %y) <{dimension = 0 : i64}> ({
  ^bb0(%a: i8, %b: i8, %c: f64, %d: f64):
    %g = arith.cmpi ult, %a, %b : i8
    "iree_linalg_ext.yield"(%g) : (i1) -> ()
  }) : (tensor<9xi8>, tensor<9xf64>) -> (tensor<9xi8>, tensor<9xf64>)
  return %s#1 : tensor<9xf64>
}

// Any other comparison gives the order, too, with constants from outside: an element is in front of another if it is
// less and not greater, or stands before it and is not greater, or less.
// CHECK-LABEL: func @another_comparison
// CHECK-SAME:  %[[X:[a-z0-9]+]]: tensor<9xi32>, %[[Y:[a-z0-9]+]]: tensor<9xi32>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[X]], %[[Y]], %[[X]], %[[Y]]
// CHECK: ^bb0(%[[A:.*]]: i32, %[[B:.*]]: i32, %[[OTHER_A:.*]]: i32, %[[OTHER_B:.*]]: i32,
// CHECK:   arith.addi %[[OTHER_A]], %[[OTHER_B]]
// CHECK:   %[[LESS:.*]] = arith.cmpi sle
// CHECK:   %[[GREATER:.*]] = arith.cmpi sle
// CHECK:   %[[NOT:.*]] = arith.xori %[[GREATER]], %true
// CHECK:   arith.andi %[[LESS]], %[[NOT]]
// CHECK:   arith.ori %[[LESS]], %[[NOT]]
// CHECK-NOT: iree_linalg_ext.sort
// CHECK: return
func.func @another_comparison(%x: tensor<9xi32>, %y: tensor<9xi32>) -> tensor<9xi32> {
  %five = arith.constant 5 : i32
  %s:2 = "iree_linalg_ext.sort"(%x, %y) <{dimension = 0 : i64}> ({
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
    %t = arith.addi %a, %c : i32
    %u = arith.addi %b, %d : i32
    %v = arith.muli %u, %five : i32
    %w = arith.muli %t, %five : i32
    %g = arith.cmpi sle, %w, %v : i32
    "iree_linalg_ext.yield"(%g) : (i1) -> ()
  }) : (tensor<9xi32>, tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi32>)
  return %s#0 : tensor<9xi32>
}

// With a NaN, floats that are compared as they are have no order, in which ranks could be counted.
// CHECK-LABEL: func @floats_as_they_are
// CHECK: iree_linalg_ext.sort
func.func @floats_as_they_are(%x: tensor<9xf32>, %y: tensor<9xf32>) -> tensor<9xf32> {
  %s:2 = "iree_linalg_ext.sort"(%x, %y) <{dimension = 0 : i64}> ({
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %t = arith.addf %a, %c : f32
    %u = arith.addf %b, %d : f32
    %g = arith.cmpf olt, %t, %u : f32
    "iree_linalg_ext.yield"(%g) : (i1) -> ()
  }) : (tensor<9xf32>, tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>)
  return %s#0 : tensor<9xf32>
}

// The first elements of a row and their positions are those of a sorted row, in XLA's order: of floats, negative ones
// are ordered by their turned bits.
// CHECK-LABEL: func @top_k
// CHECK-SAME:  %[[X:[a-z0-9]+]]: tensor<3x17xf32>
// CHECK: %[[BITS:.*]] = arith.bitcast
// CHECK: %[[TURNED:.*]] = arith.xori %[[BITS]], %c2147483647_i32
// CHECK: arith.select {{.*}}, %[[TURNED]], %[[BITS]]
// CHECK: tensor.extract %[[X]]
// CHECK: return {{.*}} : tensor<3x4xf32>, tensor<3x4xi32>
func.func @top_k(%x: tensor<3x17xf32>) -> (tensor<3x4xf32>, tensor<3x4xi32>) {
  %low = arith.constant 0xFF800000 : f32
  %far = arith.constant 2147483647 : i32
  %e = tensor.empty() : tensor<3x4xf32>
  %p = tensor.empty() : tensor<3x4xi32>
  %v = linalg.fill ins(%low : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %i = linalg.fill ins(%far : i32) outs(%p : tensor<3x4xi32>) -> tensor<3x4xi32>
  %s:2 = "iree_linalg_ext.topk"(%x, %v, %i) <{dimension = 1 : i64}> ({
  ^bb0(%a: f32, %b: f32):
    %g = arith.cmpf ogt, %a, %b : f32
    "iree_linalg_ext.yield"(%g) : (i1) -> ()
  }) : (tensor<3x17xf32>, tensor<3x4xf32>, tensor<3x4xi32>) -> (tensor<3x4xf32>, tensor<3x4xi32>)
  return %s#0, %s#1 : tensor<3x4xf32>, tensor<3x4xi32>
}

// A search that begins with other elements than the last ones in order is left to IREE.
// CHECK-LABEL: func @top_k_of_more
// CHECK: iree_linalg_ext.topk
func.func @top_k_of_more(%x: tensor<9xi32>, %v: tensor<4xi32>, %i: tensor<4xi32>) -> tensor<4xi32> {
  %s:2 = "iree_linalg_ext.topk"(%x, %v, %i) <{dimension = 0 : i64}> ({
  ^bb0(%a: i32, %b: i32):
    %g = arith.cmpi sgt, %a, %b : i32
    "iree_linalg_ext.yield"(%g) : (i1) -> ()
  }) : (tensor<9xi32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>)
  return %s#1 : tensor<4xi32>
}

// A row whose length is not known is left to IREE, which swaps elements for which the comparison is false. It keeps
// equal ones in order if the comparison is true of them, as one of keys is, in which NaN has its place, too.
// CHECK-LABEL: func @open_dim
// CHECK: iree_linalg_ext.sort
// CHECK: ^bb0(%[[A:.*]]: i32, %[[B:.*]]: i32):
// CHECK:   %[[FRONT:.*]] = arith.cmpi sge, %[[A]], %[[B]]
// CHECK:   "iree_linalg_ext.yield"(%[[FRONT]])
func.func @open_dim(%x: tensor<?xi32>) -> tensor<?xi32> {
  %s = "iree_linalg_ext.sort"(%x) <{dimension = 0 : i64}> ({
  ^bb0(%a: i32, %b: i32):
    %g = arith.cmpi sgt, %a, %b : i32
    "iree_linalg_ext.yield"(%g) : (i1) -> ()
  }) : (tensor<?xi32>) -> tensor<?xi32>
  return %s : tensor<?xi32>
}

// CHECK-LABEL: func @open_dim_of_two_keys
// CHECK: ^bb0(%[[A:.*]]: i32, %[[B:.*]]: i32, %[[C:.*]]: i32, %[[D:.*]]: i32):
// CHECK:   %[[LESS:.*]] = arith.cmpi slt
// CHECK:   %[[GREATER:.*]] = arith.cmpi slt
// CHECK:   %[[NOT:.*]] = arith.xori %[[GREATER]], %true
// CHECK:   %[[FRONT:.*]] = arith.ori %[[LESS]], %[[NOT]]
// CHECK:   "iree_linalg_ext.yield"(%[[FRONT]])
func.func @open_dim_of_two_keys(%x: tensor<?xi32>, %y: tensor<?xi32>) -> tensor<?xi32> {
  %s:2 = "iree_linalg_ext.sort"(%x, %y) <{dimension = 0 : i64}> ({
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
    %t = arith.addi %a, %c : i32
    %u = arith.addi %b, %d : i32
    %g = arith.cmpi slt, %t, %u : i32
    "iree_linalg_ext.yield"(%g) : (i1) -> ()
  }) : (tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
  return %s#0 : tensor<?xi32>
}
