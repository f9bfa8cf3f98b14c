// RUN: tilewright-opt %s --tile-rewrite-movement=target=sm_80 --split-input-file | FileCheck %s
// RUN: tilewright-opt %s --tile-rewrite-movement=target=sm_80 --split-input-file --remarks-filter-missed=tile-rewrite-movement --remark-format=emitRemark 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#turned = affine_map<(d0, d1)[s0, s1] -> (d1, d0)>

// The value that the phases hand over has other readers, so it is stored, and the phases keep their barrier.
// CHECK-LABEL: tile.program @read_after_the_launch outputs 2
// CHECK: tile.store {{.*}} %arg1
// CHECK: tile.sync <grid>
// CHECK: tile.load %arg1
tile.program @read_after_the_launch outputs 2 {
^bb0(%x: !tile.slice<37x53xf32, global>, %t: !tile.slice<53x37xf32, global>, %y: !tile.slice<37x53xf32, global>):
  tile.parallel [53, 37] tiles [8, 37] workgroups 7 {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [53, 37] sizes [8, 37] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %x at #turned : !tile.slice<37x53xf32, global> -> f32
      tile.store %v, %t at #id : f32, !tile.slice<53x37xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [37, 53] tiles [8, 53] workgroups 5 {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [37, 53] sizes [8, 53] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %t at #turned : !tile.slice<53x37xf32, global> -> f32
      tile.store %v, %y at #id : f32, !tile.slice<37x53xf32, global>
      tile.yield
    }
  }
  }
}
func.func @call_read_after(%x: tensor<37x53xf32>) -> (tensor<53x37xf32>, tensor<37x53xf32>) {
  %0:2 = tile.launch @read_after_the_launch(%x) : (tensor<37x53xf32>) -> (tensor<53x37xf32>, tensor<37x53xf32>)
  return %0#0, %0#1 : tensor<53x37xf32>, tensor<37x53xf32>
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#column = affine_map<(d0, d1)[s0, s1] -> (d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0)>

// Sums of rows are read along columns: blocks wait for each other, and a reduction is not movement.
// CHECK-LABEL: tile.program @sums_cross_blocks outputs 2
// CHECK: tile.sync <grid>
// REMARK: 'sums_cross_blocks' hands output 0 over through memory: a reduction or a move writes it
tile.program @sums_cross_blocks outputs 2 {
^bb0(%x: !tile.slice<64x64xf32, global>, %s: !tile.slice<64xf32, global>, %y: !tile.slice<64x64xf32, global>):
  tile.parallel [64] tiles [4] workgroups 16 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64, 64] sizes [4, 64] offsets [0] (%i) vector 1 reduce [1] into (%s : !tile.slice<64xf32, global>)
        at [#row] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<64x64xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
  tile.sync <grid>
  tile.parallel [64] tiles [4] workgroups 16 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64, 64] sizes [4, 64] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<64x64xf32, global> -> f32
      %m = tile.load %s at #column : !tile.slice<64xf32, global> -> f32
      %q = arith.divf %v, %m : f32
      tile.store %q, %y at #id : f32, !tile.slice<64x64xf32, global>
      tile.yield
    }
  }
  }
}
func.func @call_sums(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0:2 = tile.launch @sums_cross_blocks(%x) : (tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64x64xf32>)
  return %0#1 : tensor<64x64xf32>
}

// -----

#at = affine_map<(d0)[s0] -> (d0)>
#last = affine_map<(d0, d1)[s0, s1] -> (d1)>
#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>

// Every row reads the exponentials: behind the barrier, they would be computed 64 times.
// CHECK-LABEL: tile.program @would_be_computed_again outputs 2
// CHECK: math.exp
// CHECK: tile.sync <grid>
// CHECK-NOT: math.exp
// REMARK: 'would_be_computed_again' hands output 0 over through memory: its value is computed, not copied
tile.program @would_be_computed_again outputs 2 {
^bb0(%x: !tile.slice<53xf32, global>, %t: !tile.slice<53xf32, global>, %y: !tile.slice<64x53xf32, global>):
  tile.parallel [53] tiles [53] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [53] sizes [53] offsets [0] (%i) vector 0 reduce [] {
      %v = tile.load %x at #at : !tile.slice<53xf32, global> -> f32
      %e = math.exp %v : f32
      tile.store %e, %t at #at : f32, !tile.slice<53xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [64] tiles [4] workgroups 16 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64, 53] sizes [4, 53] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %t at #last : !tile.slice<53xf32, global> -> f32
      tile.store %v, %y at #id : f32, !tile.slice<64x53xf32, global>
      tile.yield
    }
  }
  }
}
func.func @call_again(%x: tensor<53xf32>) -> tensor<64x53xf32> {
  %0:2 = tile.launch @would_be_computed_again(%x) : (tensor<53xf32>) -> (tensor<53xf32>, tensor<64x53xf32>)
  return %0#1 : tensor<64x53xf32>
}
