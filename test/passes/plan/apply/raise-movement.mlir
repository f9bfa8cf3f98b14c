// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-raise))' | FileCheck %s

// CHECK-DAG: [[$SPLIT:#.+]] = affine_map<(d0, d1, d2) -> (d0, d1 * 4 + d2)>
// CHECK-DAG: [[$JOIN:#.+]] = affine_map<(d0) -> (d0 floordiv 7, d0 mod 7)>
// CHECK-DAG: [[$SLICE:#.+]] = affine_map<(d0) -> (2, d0 * 3 + 1)>
// CHECK-DAG: [[$SHIFT:#.+]] = affine_map<(d0) -> (d0 - 2)>
// CHECK-DAG: [[$PLACE:#.+]] = affine_map<(d0) -> ((d0 + 1) floordiv 2 - 1)>
// CHECK-DAG: [[$ID:#.+]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: [[$PADDED:#.+]] = affine_set<(d0) : (d0 - 2 >= 0, -d0 + 6 >= 0)>
// CHECK-DAG: [[$FIRST:#.+]] = affine_set<(d0) : (-d0 + 1 >= 0)>
// CHECK-DAG: [[$SECOND:#.+]] = affine_set<(d0) : (d0 - 2 >= 0)>

// CHECK-LABEL: func @reshapes
// CHECK: maps [[[$SPLIT]]]
// CHECK: maps [[[$JOIN]]]
func.func @reshapes(%a: tensor<3x8xf32>, %b: tensor<5x7xf32>) -> (tensor<3x2x4xf32>, tensor<35xf32>) {
  %x = tensor.expand_shape %a [[0], [1, 2]] output_shape [3, 2, 4] : tensor<3x8xf32> into tensor<3x2x4xf32>
  %y = tensor.collapse_shape %b [[0, 1]] : tensor<5x7xf32> into tensor<35xf32>
  return %x, %y : tensor<3x2x4xf32>, tensor<35xf32>
}

// A dim that the slice drops reads its offset.
// CHECK-LABEL: func @slice
// CHECK: tile.expr domain [4] reduce [](%arg0) maps [[[$SLICE]]] guards [unit]
func.func @slice(%a: tensor<3x11xf32>) -> tensor<4xf32> {
  %x = tensor.extract_slice %a[2, 1] [1, 4] [1, 3] : tensor<3x11xf32> to tensor<4xf32>
  return %x : tensor<4xf32>
}

// A guarded input is zero where it is not read: padding with zero needs nothing else.
// CHECK-LABEL: func @pad_with_zero
// CHECK: maps [[[$SHIFT]]] guards [[[$PADDED]]]
// CHECK-NEXT: ^bb0(%[[IN:.+]]: f32):
// CHECK-NEXT:   tile.yield %[[IN]]
func.func @pad_with_zero(%a: tensor<5xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %a low[2] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<5xf32> to tensor<8xf32>
  return %p : tensor<8xf32>
}

// Minus zero differs from the zero of a guard.
// CHECK-LABEL: func @pad_with_a_value
// CHECK: maps [[[$SHIFT]]] guards [[[$PADDED]]]
// CHECK-NEXT: ^bb0(%[[IN:.+]]: f32):
// CHECK:        %[[PAD:.+]] = arith.constant -0.000000e+00
// CHECK:        %[[INSIDE:.+]] = tile.within [[$PADDED]]
// CHECK:        %[[V:.+]] = arith.select %[[INSIDE]], %[[IN]], %[[PAD]]
// CHECK:        tile.yield %[[V]]
func.func @pad_with_a_value(%a: tensor<5xf32>) -> tensor<8xf32> {
  %value = arith.constant -0.0 : f32
  %p = tensor.pad %a low[2] high[1] {
  ^bb0(%i: index):
    tensor.yield %value : f32
  } : tensor<5xf32> to tensor<8xf32>
  return %p : tensor<8xf32>
}

// CHECK-LABEL: func @concat
// CHECK: tile.expr domain [5] reduce [](%arg1, %arg0) maps [[[$SHIFT]], [[$ID]]] guards [[[$SECOND]], [[$FIRST]]]
// CHECK-NEXT: ^bb0(%[[B:.+]]: f32, %[[A:.+]]: f32):
// CHECK-NEXT:   %[[IN_A:.+]] = tile.within [[$FIRST]]
// CHECK-NEXT:   %[[V:.+]] = arith.select %[[IN_A]], %[[A]], %[[B]]
// CHECK-NEXT:   tile.yield %[[V]]
func.func @concat(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<5xf32> {
  %c = tensor.concat dim(0) %a, %b : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  return %c : tensor<5xf32>
}

// Every second element comes from the source, as the guard says.
// CHECK-LABEL: func @insert_with_stride
// CHECK: tile.expr domain [9] reduce [](%arg1, %arg0) maps [[[$ID]], [[$PLACE]]] guards [unit, #{{.+}}]
// CHECK: tile.within
// CHECK: arith.select
func.func @insert_with_stride(%s: tensor<3xf32>, %d: tensor<9xf32>) -> tensor<9xf32> {
  %c = tensor.insert_slice %s into %d[1] [3] [2] : tensor<3xf32> into tensor<9xf32>
  return %c : tensor<9xf32>
}

// The rest of an empty tensor has no value, so nothing is read for it.
// CHECK-LABEL: func @insert_into_empty
// CHECK: tile.expr domain [9] reduce [](%arg0)
// CHECK-NEXT: ^bb0(%[[IN:.+]]: f32):
// CHECK-NEXT:   tile.yield %[[IN]]
func.func @insert_into_empty(%s: tensor<3xf32>) -> tensor<9xf32> {
  %e = tensor.empty() : tensor<9xf32>
  %c = tensor.insert_slice %s into %e[1] [3] [1] : tensor<3xf32> into tensor<9xf32>
  return %c : tensor<9xf32>
}
