// RUN: tilewright-opt %s --tile-trim-bindings --split-input-file | FileCheck %s

#id = affine_map<(d0)[s0] -> (d0)>

// An input that no part reads is no binding of the kernel; the others keep their order.
// CHECK-LABEL: tile.program @reads_two_of_three outputs 1
// CHECK-NEXT: ^bb0(%{{.*}}: !tile.slice<96xf32, global>, %{{.*}}: !tile.slice<96xf16, global>, %{{.*}}: !tile.slice<96xf32, global>):
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: tensor<96xf32>, %{{.*}}: tensor<3x32xf32>, %[[C:.*]]: tensor<96xf16>)
// CHECK: tile.launch @kernels::@reads_two_of_three(%[[A]], %[[C]]) : (tensor<96xf32>, tensor<96xf16>) -> tensor<96xf32>
module @kernels {
  tile.program @reads_two_of_three outputs 1 {
  ^bb0(%a: !tile.slice<96xf32, global>, %b: !tile.slice<3x32xf32, global>, %c: !tile.slice<96xf16, global>,
       %y: !tile.slice<96xf32, global>):
    tile.parallel [96] tiles [32] workgroups 3 attributes {tile.threads = 32 : i64, tile.group = 0 : i64} {
      tile.walk {
      ^bb0(%i: index):
        tile.compute [96] sizes [32] offsets [0] (%i) vector 0 reduce [] {
          %u = tile.load %a at #id : !tile.slice<96xf32, global> -> f32
          %n = tile.load %c at #id : !tile.slice<96xf16, global> -> f16
          %v = arith.extf %n : f16 to f32
          %s = arith.addf %u, %v : f32
          tile.store %s, %y at #id : f32, !tile.slice<96xf32, global>
          tile.yield
        }
      }
    }
  }
}
func.func @main(%a: tensor<96xf32>, %b: tensor<3x32xf32>, %c: tensor<96xf16>) -> tensor<96xf32> {
  %y = tile.launch @kernels::@reads_two_of_three(%a, %b, %c) : (tensor<96xf32>, tensor<3x32xf32>, tensor<96xf16>) -> tensor<96xf32>
  return %y : tensor<96xf32>
}

// -----

#id = affine_map<(d0)[s0] -> (d0)>

// A loop that becomes part of its kernel carries %h; %w is the same in all steps.
// CHECK-LABEL: tile.program @step outputs 1
// CHECK-SAME: tile.repeated = array<i64: 1>
module @kernels {
  tile.program @step outputs 1 {
  ^bb0(%h: !tile.slice<96xf32, global>, %w: !tile.slice<96xf32, global>, %y: !tile.slice<96xf32, global>):
    tile.parallel [96] tiles [32] workgroups 3 attributes {tile.threads = 32 : i64, tile.group = 0 : i64} {
      tile.walk {
      ^bb0(%i: index):
        tile.compute [96] sizes [32] offsets [0] (%i) vector 0 reduce [] {
          %u = tile.load %h at #id : !tile.slice<96xf32, global> -> f32
          %v = tile.load %w at #id : !tile.slice<96xf32, global> -> f32
          %s = arith.addf %u, %v : f32
          tile.store %s, %y at #id : f32, !tile.slice<96xf32, global>
          tile.yield
        }
      }
    }
  }
}
func.func @main(%h: tensor<96xf32>, %w: tensor<96xf32>) -> tensor<96xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %last = scf.for %i = %c0 to %c5 step %c1 iter_args(%now = %h) -> (tensor<96xf32>) {
    %y = tile.launch @kernels::@step(%now, %w) : (tensor<96xf32>, tensor<96xf32>) -> tensor<96xf32>
    scf.yield %y : tensor<96xf32>
  } {tile.one_kernel}
  return %last : tensor<96xf32>
}
