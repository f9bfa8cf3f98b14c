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
