// RUN: tilewright-opt %s --tile-lower-to-program --split-input-file | FileCheck %s

#id = affine_map<(i) -> (i)>

// Adjacent subprograms of one name are parts of one kernel, each on its own workgroups.
// CHECK-LABEL: tile.program @packed outputs 2
// CHECK: ^bb0(%[[A:.*]]: {{.*}}7xf32{{.*}}, %[[B:.*]]: {{.*}}5xf32{{.*}}, %[[C:.*]]: {{.*}}7xf32{{.*}}, %[[D:.*]]: {{.*}}5xf32
// CHECK: tile.parallel [7]
// CHECK: tile.store {{.*}}, %[[C]]
// CHECK: tile.parallel [5]
// CHECK: tile.store {{.*}}, %[[D]]
// CHECK: %[[R:.*]]:2 = tile.launch @tilewright_kernels::@packed
func.func @packs_parts(%x: tensor<7xf32>, %y: tensor<5xf32>) -> (tensor<7xf32>, tensor<5xf32>) {
  %r = tile.subprogram "packed" (%x) extents [7] tiles [7] grid [0] vector 0 workgroups 1
      : (tensor<7xf32>) -> tensor<7xf32> {
  ^bb0(%a: tensor<7xf32>):
    %n = tile.expr domain [7] reduce [] (%a) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<7xf32>) -> tensor<7xf32> {
    ^bb0(%v: f32):
      %d = arith.negf %v : f32
      tile.yield %d : f32
    }
    tile.yield %n : tensor<7xf32>
  }
  %s = tile.subprogram "packed" (%y) extents [5] tiles [5] grid [0] vector 0 workgroups 1
      : (tensor<5xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<5xf32>):
    %n = tile.expr domain [5] reduce [] (%a) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<5xf32>) -> tensor<5xf32> {
    ^bb0(%v: f32):
      %d = math.absf %v : f32
      tile.yield %d : f32
    }
    tile.yield %n : tensor<5xf32>
  }
  return %r, %s : tensor<7xf32>, tensor<5xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// A tensor that both parts of a kernel read is bound once.
// CHECK-LABEL: tile.program @both outputs 2
// CHECK: ^bb0(%[[A:.*]]: {{.*}}7xf32{{.*}}, %[[B:.*]]: {{.*}}7xf32{{.*}}, %[[C:[a-z0-9]*]]: {{.*}}7xf32, global>):
// CHECK-COUNT-2: tile.load %[[A]]
// CHECK: tile.launch @tilewright_kernels::@both(%{{[a-z0-9]+}}) :
func.func @parts_of_one_input(%x: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>) {
  %r = tile.subprogram "both" (%x) extents [7] tiles [7] grid [0] vector 0 workgroups 1
      : (tensor<7xf32>) -> tensor<7xf32> {
  ^bb0(%a: tensor<7xf32>):
    %n = tile.expr domain [7] reduce [] (%a) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<7xf32>) -> tensor<7xf32> {
    ^bb0(%v: f32):
      %d = arith.negf %v : f32
      tile.yield %d : f32
    }
    tile.yield %n : tensor<7xf32>
  }
  %s = tile.subprogram "both" (%x) extents [7] tiles [7] grid [0] vector 0 workgroups 1
      : (tensor<7xf32>) -> tensor<7xf32> {
  ^bb0(%a: tensor<7xf32>):
    %n = tile.expr domain [7] reduce [] (%a) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<7xf32>) -> tensor<7xf32> {
    ^bb0(%v: f32):
      %d = math.absf %v : f32
      tile.yield %d : f32
    }
    tile.yield %n : tensor<7xf32>
  }
  return %r, %s : tensor<7xf32>, tensor<7xf32>
}
