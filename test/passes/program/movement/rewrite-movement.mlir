// RUN: tilewright-opt %s --tile-rewrite-movement=target=sm_80 --split-input-file | FileCheck %s
// RUN: tilewright-opt %s --tile-rewrite-movement="target=sm_80 rules=sync,merge" --split-input-file | FileCheck %s --check-prefix=UNSWAPPED

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#turned = affine_map<(d0, d1)[s0, s1] -> (d1, d0)>

// An elementwise op between two grid barriers: blocks wait for each other at both, because the movement around it
// transposes. Behind the second barrier, both transpositions merge into a copy, element by element.
// CHECK-LABEL: tile.program @swaps_then_merges outputs 1
// CHECK-SAME: {
// CHECK-NEXT: ^bb0(%[[X:.*]]: !tile.slice<37x53xf32, global>, %[[Y:.*]]: !tile.slice<37x53xf32, global>):
// CHECK-NEXT: tile.parallel
// CHECK: %[[V:.*]] = tile.load %[[X]] at #{{.*}} : <37x53xf32, global> -> f32
// CHECK-NEXT: %[[E:.*]] = math.exp %[[V]]
// CHECK-NEXT: tile.store %[[E]], %[[Y]] at
// CHECK-NOT: tile.sync
// CHECK-NOT: tile.load
// CHECK: tile.launch @swaps_then_merges({{.*}}) : (tensor<37x53xf32>) -> tensor<37x53xf32>
// Without swapping, one copy merges; the elementwise result is written and read once more, past a grid barrier.
// UNSWAPPED-LABEL: tile.program @swaps_then_merges outputs 2
// UNSWAPPED: math.exp
// UNSWAPPED: tile.store
// UNSWAPPED: tile.sync <grid>
// UNSWAPPED: tile.load
tile.program @swaps_then_merges outputs 3 {
^bb0(%x: !tile.slice<37x53xf32, global>, %a: !tile.slice<53x37xf32, global>, %b: !tile.slice<53x37xf32, global>,
     %y: !tile.slice<37x53xf32, global>):
  tile.parallel [53, 37] tiles [8, 37] workgroups 7 attributes {tile.threads = 128 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [53, 37] sizes [8, 37] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %x at #turned : !tile.slice<37x53xf32, global> -> f32
      tile.store %v, %a at #id : f32, !tile.slice<53x37xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [53, 37] tiles [53, 8] workgroups 5 attributes {tile.threads = 128 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [53, 37] sizes [53, 8] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %a at #id : !tile.slice<53x37xf32, global> -> f32
      %e = math.exp %v : f32
      tile.store %e, %b at #id : f32, !tile.slice<53x37xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [37, 53] tiles [8, 53] workgroups 5 attributes {tile.threads = 128 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [37, 53] sizes [8, 53] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %b at #turned : !tile.slice<53x37xf32, global> -> f32
      tile.store %v, %y at #id : f32, !tile.slice<37x53xf32, global>
      tile.yield
    }
  }
  }
}
func.func @call_swaps(%x: tensor<37x53xf32>) -> tensor<37x53xf32> {
  %0:3 = tile.launch @swaps_then_merges(%x) : (tensor<37x53xf32>) -> (tensor<53x37xf32>, tensor<53x37xf32>, tensor<37x53xf32>)
  return %0#2 : tensor<37x53xf32>
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#second = affine_map<(d0, d1)[s0, s1] -> (d0 + 5, d1)>
#shuffle = affine_map<(d0, d1)[s0, s1] -> ((d0 mod 2) * 5 + d0 floordiv 2, d1)>

// ShuffleNet's concatenation, channel shuffle and split, each op a phase of its own: what remains are the two pieces of
// the split, side by side, and each takes an element from the input that holds it.
// CHECK-LABEL: tile.program @shuffles_channels outputs 2
// CHECK-SAME: {
// CHECK-NEXT: ^bb0(%[[A:.*]]: !tile.slice<5x784xf32, global>, %[[B:.*]]: !tile.slice<5x784xf32, global>, %[[P:.*]]: !tile.slice<5x784xf32, global>, %[[Q:.*]]: !tile.slice<5x784xf32, global>):
// CHECK: tile.parallel
// CHECK: tile.load %[[A]] at #{{.*}} guard
// CHECK: tile.load %[[B]] at #{{.*}} guard
// CHECK: tile.within
// CHECK: tile.store %{{.*}}, %[[P]]
// CHECK-NOT: tile.sync
// CHECK: tile.parallel
// CHECK: tile.load %[[A]] at #{{.*}} guard
// CHECK: tile.load %[[B]] at #{{.*}} guard
// CHECK: tile.within
// CHECK: tile.store %{{.*}}, %[[Q]]
// CHECK-NOT: tile.parallel
// CHECK: return
tile.program @shuffles_channels outputs 4 {
^bb0(%a: !tile.slice<5x784xf32, global>, %b: !tile.slice<5x784xf32, global>, %j: !tile.slice<10x784xf32, global>,
     %s: !tile.slice<10x784xf32, global>, %p: !tile.slice<5x784xf32, global>, %q: !tile.slice<5x784xf32, global>):
  tile.parallel [5, 784] tiles [1, 784] workgroups 5 {
  tile.walk {
  ^bb0(%i: index, %k: index):
    tile.compute [5, 784] sizes [1, 784] offsets [0, 1] (%i, %k) vector 1 reduce [] {
      %v = tile.load %a at #id : !tile.slice<5x784xf32, global> -> f32
      tile.store %v, %j at #id : f32, !tile.slice<10x784xf32, global>
      tile.yield
    }
  }
  }
  tile.parallel [5, 784] tiles [1, 784] workgroups 5 {
  tile.walk {
  ^bb0(%i: index, %k: index):
    tile.compute [5, 784] sizes [1, 784] offsets [0, 1] (%i, %k) vector 1 reduce [] {
      %v = tile.load %b at #id : !tile.slice<5x784xf32, global> -> f32
      tile.store %v, %j at #second : f32, !tile.slice<10x784xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [10, 784] tiles [1, 784] workgroups 10 {
  tile.walk {
  ^bb0(%i: index, %k: index):
    tile.compute [10, 784] sizes [1, 784] offsets [0, 1] (%i, %k) vector 1 reduce [] {
      %v = tile.load %j at #shuffle : !tile.slice<10x784xf32, global> -> f32
      tile.store %v, %s at #id : f32, !tile.slice<10x784xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [5, 784] tiles [1, 784] workgroups 5 {
  tile.walk {
  ^bb0(%i: index, %k: index):
    tile.compute [5, 784] sizes [1, 784] offsets [0, 1] (%i, %k) vector 1 reduce [] {
      %v = tile.load %s at #id : !tile.slice<10x784xf32, global> -> f32
      tile.store %v, %p at #id : f32, !tile.slice<5x784xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [5, 784] tiles [1, 784] workgroups 5 {
  tile.walk {
  ^bb0(%i: index, %k: index):
    tile.compute [5, 784] sizes [1, 784] offsets [0, 1] (%i, %k) vector 1 reduce [] {
      %v = tile.load %s at #second : !tile.slice<10x784xf32, global> -> f32
      tile.store %v, %q at #id : f32, !tile.slice<5x784xf32, global>
      tile.yield
    }
  }
  }
}
func.func @call_shuffles(%a: tensor<5x784xf32>, %b: tensor<5x784xf32>) -> (tensor<5x784xf32>, tensor<5x784xf32>) {
  %0:4 = tile.launch @shuffles_channels(%a, %b) : (tensor<5x784xf32>, tensor<5x784xf32>)
      -> (tensor<10x784xf32>, tensor<10x784xf32>, tensor<5x784xf32>, tensor<5x784xf32>)
  return %0#2, %0#3 : tensor<5x784xf32>, tensor<5x784xf32>
}

// -----

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

// -----

#id = affine_map<(d0)[s0] -> (d0)>

// Two parts read one tensor, and neither waits for the other: they are one phase.
// CHECK-LABEL: tile.program @independent_phases outputs 2
// CHECK-NOT: tile.sync
// CHECK: return
tile.program @independent_phases outputs 2 {
^bb0(%x: !tile.slice<96xf32, global>, %y: !tile.slice<96xf32, global>, %z: !tile.slice<96xf32, global>):
  tile.parallel [96] tiles [32] workgroups 3 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [96] sizes [32] offsets [0] (%i) vector 0 reduce [] {
      %v = tile.load %x at #id : !tile.slice<96xf32, global> -> f32
      %n = math.exp %v : f32
      tile.store %n, %y at #id : f32, !tile.slice<96xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [96] tiles [32] workgroups 3 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [96] sizes [32] offsets [0] (%i) vector 0 reduce [] {
      %v = tile.load %x at #id : !tile.slice<96xf32, global> -> f32
      %n = math.tanh %v : f32
      tile.store %n, %z at #id : f32, !tile.slice<96xf32, global>
      tile.yield
    }
  }
  }
}
func.func @call_independent(%x: tensor<96xf32>) -> (tensor<96xf32>, tensor<96xf32>) {
  %0:2 = tile.launch @independent_phases(%x) : (tensor<96xf32>) -> (tensor<96xf32>, tensor<96xf32>)
  return %0#0, %0#1 : tensor<96xf32>, tensor<96xf32>
}

// -----

#id = affine_map<(d0)[s0] -> (d0)>

// Two loads of one element in a nest become one, unless the element is written in between.
// CHECK-LABEL: tile.program @read_after_read
// CHECK: %[[V:.*]] = tile.load
// CHECK-NEXT: arith.mulf %[[V]], %[[V]]
// CHECK-NEXT: tile.store
// CHECK-NEXT: tile.load %arg1
// CHECK-NEXT: tile.store
// CHECK-NEXT: tile.load %arg1
tile.program @read_after_read outputs 2 {
^bb0(%x: !tile.slice<96xf32, global>, %y: !tile.slice<96xf32, global>, %z: !tile.slice<96xf32, global>):
  tile.parallel [96] tiles [32] workgroups 3 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [96] sizes [32] offsets [0] (%i) vector 0 reduce [] {
      %v = tile.load %x at #id : !tile.slice<96xf32, global> -> f32
      %w = tile.load %x at #id : !tile.slice<96xf32, global> -> f32
      %n = arith.mulf %v, %w : f32
      tile.store %n, %y at #id : f32, !tile.slice<96xf32, global>
      %a = tile.load %y at #id : !tile.slice<96xf32, global> -> f32
      tile.store %n, %y at #id : f32, !tile.slice<96xf32, global>
      %b = tile.load %y at #id : !tile.slice<96xf32, global> -> f32
      %m = arith.addf %a, %b : f32
      tile.store %m, %z at #id : f32, !tile.slice<96xf32, global>
      tile.yield
    }
  }
  }
}
