// RUN: tilewright-opt %s --tile-rewrite-movement=target=sm_80 --split-input-file | FileCheck %s
// RUN: tilewright-opt %s --tile-rewrite-movement="target=sm_80 rules=sync,merge" --split-input-file | FileCheck %s --check-prefix=UNSWAPPED

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>

// Sigmoid and add have one parallel structure: a block reads what it wrote, and each point reads its own element.
// CHECK-LABEL: tile.program @sigmoid_and_add_alike outputs 1
// CHECK: tile.parallel [64, 256] tiles [4, 256] workgroups 16
// CHECK: tile.load
// CHECK: arith.divf
// CHECK-NEXT: tile.load
// CHECK-NEXT: arith.addf
// CHECK-NEXT: tile.store
// CHECK-NOT: tile.store
// CHECK: return
tile.program @sigmoid_and_add_alike outputs 2 {
^bb0(%x: !tile.slice<64x256xf32, global>, %z: !tile.slice<64x256xf32, global>,
     %t: !tile.slice<64x256xf32, global>, %y: !tile.slice<64x256xf32, global>):
  tile.parallel [64, 256] tiles [4, 256] workgroups 16 attributes {tile.threads = 128 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [64, 256] sizes [4, 256] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<64x256xf32, global> -> f32
      %one = arith.constant 1.0 : f32
      %m = arith.negf %v : f32
      %e = math.exp %m : f32
      %d = arith.addf %e, %one : f32
      %s = arith.divf %one, %d : f32
      tile.store %s, %t at #id : f32, !tile.slice<64x256xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [64, 256] tiles [4, 256] workgroups 16 attributes {tile.threads = 128 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [64, 256] sizes [4, 256] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %t at #id : !tile.slice<64x256xf32, global> -> f32
      %w = tile.load %z at #id : !tile.slice<64x256xf32, global> -> f32
      %a = arith.addf %v, %w : f32
      tile.store %a, %y at #id : f32, !tile.slice<64x256xf32, global>
      tile.yield
    }
  }
  }
}

func.func @call_alike(%x: tensor<64x256xf32>, %z: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %0:2 = tile.launch @sigmoid_and_add_alike(%x, %z)
      : (tensor<64x256xf32>, tensor<64x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>)
  return %0#1 : tensor<64x256xf32>
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>

// The same ops from two other variants: the sigmoid has tiles of columns, and more threads. The parts do not match, so
// a grid barrier stays between them; once the sigmoid is behind it, the barrier has nothing to order.
// CHECK-LABEL: tile.program @sigmoid_and_add_apart outputs 1
// CHECK-NOT: tile.sync
// CHECK: tile.parallel [64, 256] tiles [4, 256] workgroups 16
// CHECK: tile.load
// CHECK: arith.divf
// CHECK: arith.addf
// CHECK: tile.store
// CHECK-NOT: tile.parallel
// CHECK: return
// UNSWAPPED-LABEL: tile.program @sigmoid_and_add_apart outputs 2
// UNSWAPPED: tile.sync <grid>
tile.program @sigmoid_and_add_apart outputs 2 {
^bb0(%x: !tile.slice<64x256xf32, global>, %z: !tile.slice<64x256xf32, global>,
     %t: !tile.slice<64x256xf32, global>, %y: !tile.slice<64x256xf32, global>):
  tile.parallel [64, 256] tiles [64, 32] workgroups 8 attributes {tile.threads = 256 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [64, 256] sizes [64, 32] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<64x256xf32, global> -> f32
      %one = arith.constant 1.0 : f32
      %m = arith.negf %v : f32
      %e = math.exp %m : f32
      %d = arith.addf %e, %one : f32
      %s = arith.divf %one, %d : f32
      tile.store %s, %t at #id : f32, !tile.slice<64x256xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [64, 256] tiles [4, 256] workgroups 16 attributes {tile.threads = 128 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [64, 256] sizes [4, 256] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %t at #id : !tile.slice<64x256xf32, global> -> f32
      %w = tile.load %z at #id : !tile.slice<64x256xf32, global> -> f32
      %a = arith.addf %v, %w : f32
      tile.store %a, %y at #id : f32, !tile.slice<64x256xf32, global>
      tile.yield
    }
  }
  }
}

func.func @call_apart(%x: tensor<64x256xf32>, %z: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %0:2 = tile.launch @sigmoid_and_add_apart(%x, %z)
      : (tensor<64x256xf32>, tensor<64x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>)
  return %0#1 : tensor<64x256xf32>
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0)>

// The add comes first: it makes one element of two, so it stays where it is. Both parts have the same tiling: they
// become one part and one nest, with the sum of an element in a register; z is loaded once.
// CHECK-LABEL: tile.program @add_and_sigmoid outputs 1
// CHECK: tile.compute
// CHECK-NEXT: tile.load %arg0
// CHECK-NEXT: tile.load %arg1
// CHECK-NEXT: arith.addf
// CHECK-NEXT: math.tanh
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: tile.store
// CHECK-NOT: tile.compute
// CHECK: return
tile.program @add_and_sigmoid outputs 2 {
^bb0(%x: !tile.slice<64x256xf32, global>, %z: !tile.slice<64x256xf32, global>,
     %t: !tile.slice<64x256xf32, global>, %y: !tile.slice<64x256xf32, global>):
  tile.parallel [64, 256] tiles [4, 256] workgroups 16 {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [64, 256] sizes [4, 256] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<64x256xf32, global> -> f32
      %w = tile.load %z at #id : !tile.slice<64x256xf32, global> -> f32
      %a = arith.addf %v, %w : f32
      tile.store %a, %t at #id : f32, !tile.slice<64x256xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [64, 256] tiles [4, 256] workgroups 16 {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [64, 256] sizes [4, 256] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %t at #id : !tile.slice<64x256xf32, global> -> f32
      %s = math.tanh %v : f32
      %w = tile.load %z at #id : !tile.slice<64x256xf32, global> -> f32
      %a = arith.mulf %s, %w : f32
      tile.store %a, %y at #id : f32, !tile.slice<64x256xf32, global>
      tile.yield
    }
  }
  }
}

func.func @call_add(%x: tensor<64x256xf32>, %z: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %0:2 = tile.launch @add_and_sigmoid(%x, %z)
      : (tensor<64x256xf32>, tensor<64x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>)
  return %0#1 : tensor<64x256xf32>
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0)>
// CHECK-DAG: #[[$ROW:.*]] = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>

// A row sum and the division by it: a block has its rows to itself, and a warp its row. The grid barrier becomes a
// barrier of a warp, and the sums a buffer of the block.
// CHECK-LABEL: tile.program @rows_stay_in_their_block outputs 1
// CHECK: %[[S:.*]] = tile.alloc : <4xf32, block>
// CHECK: tile.compute {{.*}} into(%[[S]] : !tile.slice<4xf32, block>) at [#[[$ROW]]]
// CHECK: tile.sync <warp>
// CHECK: tile.load %[[S]] at #[[$ROW]]
// CHECK-NOT: tile.parallel
// CHECK: return
tile.program @rows_stay_in_their_block outputs 2 {
^bb0(%x: !tile.slice<64x256xf32, global>, %s: !tile.slice<64xf32, global>, %y: !tile.slice<64x256xf32, global>):
  tile.parallel [64] tiles [4] workgroups 16 attributes {tile.threads = 128 : i64, tile.group = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [1] into (%s : !tile.slice<64xf32, global>)
        at [#row] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<64x256xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
  tile.sync <grid>
  tile.parallel [64] tiles [4] workgroups 16 attributes {tile.threads = 128 : i64, tile.group = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64, 256] sizes [4, 256] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<64x256xf32, global> -> f32
      %m = tile.load %s at #row : !tile.slice<64xf32, global> -> f32
      %q = arith.divf %v, %m : f32
      tile.store %q, %y at #id : f32, !tile.slice<64x256xf32, global>
      tile.yield
    }
  }
  }
}

func.func @call_rows(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %0:2 = tile.launch @rows_stay_in_their_block(%x) : (tensor<64x256xf32>) -> (tensor<64xf32>, tensor<64x256xf32>)
  return %0#1 : tensor<64x256xf32>
}
