// RUN: tilewright-opt %s --tile-partition-at-grid-sync="target=cuda:h200" --split-input-file | FileCheck %s --check-prefixes=CHECK,KEPT
// RUN: tilewright-opt %s --tile-partition-at-grid-sync="target=cuda:h200 grid-sync=false" --split-input-file | FileCheck %s --check-prefixes=CHECK,CUT
// RUN: tilewright-opt %s --tile-partition-at-grid-sync=target=x86-64-avx2 --split-input-file | FileCheck %s --check-prefixes=CHECK,CUT
// RUN: tilewright-opt %s --tile-partition-at-grid-sync="target=cuda:h200 grid-sync=false" --split-input-file \
// RUN:   --remarks-filter-missed=tile-partition-at-grid-sync --remark-format=emitRemark 2>&1 >/dev/null | FileCheck %s --check-prefix=WHY

#row = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>
#id = affine_map<(d0)[s0] -> (d0)>
#all = affine_map<(d0)[s0] -> (0)>

// Two phases share a kernel, or become two launches: the first hands over its result, the second's input.
// KEPT-LABEL: tile.program @sum_in_two_phases outputs 2
// KEPT: tile.parallel [64]
// KEPT: tile.sync <grid>
// KEPT: tile.parallel []
// KEPT: %[[R:.*]]:2 = tile.launch @kernels::@sum_in_two_phases
// KEPT: return %[[R]]#1
// CUT-LABEL: tile.program @sum_in_two_phases outputs 1
// CUT-NEXT: ^bb0(%{{.*}}: !tile.slice<64x512xf32, global>, %{{.*}}: !tile.slice<64xf32, global>)
// CUT-NOT: tile.sync
// CUT: tile.program @sum_in_two_phases_1 outputs 1
// CUT-NEXT: ^bb0(%{{.*}}: !tile.slice<64xf32, global>, %{{.*}}: !tile.slice<1xf32, global>)
// CUT: %[[P:.*]] = tile.launch @kernels::@sum_in_two_phases(%{{.*}}) : (tensor<64x512xf32>) -> tensor<64xf32>
// CUT: %[[S:.*]] = tile.launch @kernels::@sum_in_two_phases_1(%[[P]]) : (tensor<64xf32>) -> tensor<1xf32>
// CUT: return %[[S]]
// WHY: remark: {{.*}}part 1 of 'sum_in_two_phases' gets a launch of its own: grid scope is forbidden
module @kernels {
  tile.program @sum_in_two_phases outputs 2 {
  ^bb0(%x: !tile.slice<64x512xf32, global>, %p: !tile.slice<64xf32, global>, %y: !tile.slice<1xf32, global>):
    tile.parallel [64] tiles [1] workgroups 64 attributes {tile.threads = 128 : i64, tile.group = 128 : i64} {
      tile.walk {
      ^bb0(%i: index):
        tile.compute [64, 512] sizes [1, 512] offsets [0] (%i) vector 1 reduce [1]
            into (%p : !tile.slice<64xf32, global>) at [#acc] inits [0.0 : f32] kinds ["add"] {
        ^bb0(%acc: f32):
          %v = tile.load %x at #row : !tile.slice<64x512xf32, global> -> f32
          %n = arith.addf %v, %acc : f32
          tile.yield %n : f32
        }
      }
    }
    tile.sync <grid>
    tile.parallel [] tiles [] workgroups 1 attributes {tile.threads = 64 : i64, tile.group = 64 : i64} {
      tile.walk {
        tile.compute [64] sizes [64] offsets [] () vector 0 reduce [0]
            into (%y : !tile.slice<1xf32, global>) at [#all] inits [0.0 : f32] kinds ["add"] {
        ^bb0(%acc: f32):
          %v = tile.load %p at #id : !tile.slice<64xf32, global> -> f32
          %n = arith.addf %v, %acc : f32
          tile.yield %n : f32
        }
      }
    }
  }
}
func.func @main(%x: tensor<64x512xf32>) -> tensor<1xf32> {
  %r:2 = tile.launch @kernels::@sum_in_two_phases(%x) : (tensor<64x512xf32>) -> (tensor<64xf32>, tensor<1xf32>)
  return %r#1 : tensor<1xf32>
}

// -----

#id = affine_map<(d0)[s0] -> (d0)>

// Programs without barriers are left alone.
// CHECK-LABEL: tile.program @one_phase outputs 1
// CHECK: workgroups 4
tile.program @one_phase outputs 1 {
^bb0(%x: !tile.slice<4096xf32, global>, %y: !tile.slice<4096xf32, global>):
  tile.parallel [4096] tiles [1024] workgroups 4 attributes {tile.threads = 256 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [4096] sizes [1024] offsets [0] (%i) vector 0 reduce [] {
        %v = tile.load %x at #id : !tile.slice<4096xf32, global> -> f32
        tile.store %v, %y at #id : f32, !tile.slice<4096xf32, global>
        tile.yield
      }
    }
  }
}

// -----

#id = affine_map<(d0)[s0] -> (d0)>

// Registers bound how many blocks are resident: 4 blocks of 256 threads per SM with 64 registers a thread. Parts that
// walk their tiles then get fewer workgroups.
// KEPT-LABEL: tile.program @many_tiles
// KEPT: tile.parallel [4194304] tiles [1024] workgroups 528
// KEPT: tile.sync <grid>
// KEPT: tile.parallel [4194304] tiles [1024] workgroups 528
tile.program @many_tiles outputs 2 {
^bb0(%x: !tile.slice<4194304xf32, global>, %p: !tile.slice<4194304xf32, global>, %y: !tile.slice<4194304xf32, global>):
  tile.parallel [4194304] tiles [1024] workgroups 4096 attributes {tile.threads = 256 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [4194304] sizes [1024] offsets [0] (%i) vector 0 reduce [] {
        %v = tile.load %x at #id : !tile.slice<4194304xf32, global> -> f32
        tile.store %v, %p at #id : f32, !tile.slice<4194304xf32, global>
        tile.yield
      }
    }
  }
  tile.sync <grid>
  tile.parallel [4194304] tiles [1024] workgroups 4096 attributes {tile.threads = 256 : i64, tile.group = 0 : i64} {
    tile.walk {
    ^bb0(%i: index):
      tile.compute [4194304] sizes [1024] offsets [0] (%i) vector 0 reduce [] {
        %v = tile.load %p at #id : !tile.slice<4194304xf32, global> -> f32
        tile.store %v, %y at #id : f32, !tile.slice<4194304xf32, global>
        tile.yield
      }
    }
  }
}
