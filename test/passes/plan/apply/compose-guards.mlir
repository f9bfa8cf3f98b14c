// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-raise,tile-compose))' | FileCheck %s

// CHECK-DAG: [[$SHIFT:#.+]] = affine_map<(d0) -> (d0 - 1)>
// CHECK-DAG: [[$INSIDE:#.+]] = affine_set<(d0) : (d0 - 1 >= 0, -d0 + 5 >= 0)>
// CHECK-DAG: [[$TAIL:#.+]] = affine_map<(d0) -> (d0 + 1)>
// CHECK-DAG: [[$SECOND:#.+]] = affine_map<(d0) -> (d0 + 2)>

// exp of the padding would be one instead of zero, so the guard becomes a select.
// CHECK-LABEL: func @padding_of_computed_values_stays_zero
// CHECK: tile.expr domain [7] reduce [](%arg0) maps [[[$SHIFT]]] guards [[[$INSIDE]]]
// CHECK-NEXT: ^bb0(%[[IN:.+]]: f32):
// CHECK-DAG:    %[[X:.+]] = math.exp %[[IN]]
// CHECK-DAG:    %[[WITHIN:.+]] = tile.within [[$INSIDE]]
// CHECK-DAG:    %[[ZERO:.+]] = arith.constant 0.0
// CHECK:        %[[V:.+]] = arith.select %[[WITHIN]], %[[X]], %[[ZERO]]
// CHECK:        tile.yield %[[V]]
func.func @padding_of_computed_values_stays_zero(%a: tensor<5xf32>) -> tensor<7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5xf32>
  %x = linalg.exp ins(%a : tensor<5xf32>) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<5xf32> to tensor<7xf32>
  return %p : tensor<7xf32>
}

// Padding a tensor that was only moved needs no select: an input is zero where it is not read.
// CHECK-LABEL: func @padding_of_moved_values_needs_no_select
// CHECK: tile.expr domain [7] reduce [](%arg0)
// CHECK-NEXT: ^bb0(%[[IN:.+]]: f32):
// CHECK-NEXT:   tile.yield %[[IN]]
func.func @padding_of_moved_values_needs_no_select(%a: tensor<9xf32>) -> tensor<7xf32> {
  %zero = arith.constant 0.0 : f32
  %x = tensor.extract_slice %a[2] [5] [1] : tensor<9xf32> to tensor<5xf32>
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<5xf32> to tensor<7xf32>
  return %p : tensor<7xf32>
}

// A body that uses an input only inside the guard needs no second select around the inlined value.
// CHECK-LABEL: func @select_of_the_pad_is_enough
// CHECK: tile.expr domain [7]
// CHECK-COUNT-1: arith.select
// CHECK-NOT: arith.select
// CHECK: return
func.func @select_of_the_pad_is_enough(%a: tensor<5xf32>) -> tensor<7xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<5xf32>
  %x = linalg.exp ins(%a : tensor<5xf32>) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  %p = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %one : f32
  } : tensor<5xf32> to tensor<7xf32>
  return %p : tensor<7xf32>
}

// A slice that lies inside a pad reads the source as it is.
// CHECK-LABEL: func @slice_undoes_pad
// CHECK: tile.expr domain [4] reduce [](%arg0) maps [[[$TAIL]]] guards [unit]
// CHECK-NEXT: ^bb0(%[[IN:.+]]: f32):
// CHECK-NEXT:   tile.yield %[[IN]]
func.func @slice_undoes_pad(%a: tensor<5xf32>) -> tensor<4xf32> {
  %one = arith.constant 1.0 : f32
  %p = tensor.pad %a low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %one : f32
  } : tensor<5xf32> to tensor<7xf32>
  %x = tensor.extract_slice %p[2] [4] [1] : tensor<7xf32> to tensor<4xf32>
  return %x : tensor<4xf32>
}

// A slice of one piece of a concat reads only that piece.
// CHECK-LABEL: func @slice_picks_a_piece
// CHECK: tile.expr domain [3] reduce [](%arg1) maps [[[$SECOND]]] guards [unit]
// CHECK-NEXT: ^bb0(%[[IN:.+]]: f32):
// CHECK-NEXT:   tile.yield %[[IN]]
func.func @slice_picks_a_piece(%a: tensor<4xf32>, %b: tensor<5xf32>) -> tensor<3xf32> {
  %c = tensor.concat dim(0) %a, %b : (tensor<4xf32>, tensor<5xf32>) -> tensor<9xf32>
  %x = tensor.extract_slice %c[6] [3] [1] : tensor<9xf32> to tensor<3xf32>
  return %x : tensor<3xf32>
}

// Rotating halves (rotary embedding): negate and concat of two slices of one tensor are one expression.
// CHECK-LABEL: func @rotate_half
// CHECK: tile.expr domain [3, 8] reduce [](%arg0, %arg0)
// CHECK: arith.negf
// CHECK: arith.select
// CHECK-NOT: arith.select
// CHECK: return
func.func @rotate_half(%a: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %lo = tensor.extract_slice %a[0, 0] [3, 4] [1, 1] : tensor<3x8xf32> to tensor<3x4xf32>
  %hi = tensor.extract_slice %a[0, 4] [3, 4] [1, 1] : tensor<3x8xf32> to tensor<3x4xf32>
  %e = tensor.empty() : tensor<3x4xf32>
  %n = linalg.negf ins(%hi : tensor<3x4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  %c = tensor.concat dim(1) %n, %lo : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x8xf32>
  return %c : tensor<3x8xf32>
}
