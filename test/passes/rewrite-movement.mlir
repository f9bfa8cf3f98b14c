// RUN: tilewright-opt %s --tile-rewrite-movement=target=sm_80 --split-input-file | FileCheck %s
// RUN: tilewright-opt %s --tile-rewrite-movement="target=sm_80 rules=sync,merge" --split-input-file | FileCheck %s --check-prefix=UNSWAPPED

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#turned = affine_map<(d0, d1)[s0, s1] -> (d1, d0)>

// An elementwise op between two barriers of the device: blocks wait for each other at both, because the movement around
// it transposes. Behind the second one, both transpositions merge into a copy, element by element.
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
// Without swapping one copy merges; what is computed is written and read once more, past a barrier of the grid.
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

// ShuffleNet's concatenate, shuffle channels and split, each op a phase of its own: what is left are the two pieces of
// the split, side by side, and each takes an element from the input that has it.
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
