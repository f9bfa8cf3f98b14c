// RUN: tilewright-opt %s --tile-rewrite-movement=target=sm_80 --split-input-file | FileCheck %s

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
