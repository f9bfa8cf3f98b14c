// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-tie-results | FileCheck %s

#at = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d1)>
#local = affine_map<(d0, d1)[s0] -> (d0 - s0, d1)>

module {
  module @tilewright_kernels {
    // Each element is written where it was read.
    // CHECK: tile.program @elementwise outputs 1 attributes {in_place = [array<i64: 0>]}
    tile.program @elementwise outputs 1 {
    ^bb0(%x: !tile.slice<8x8xf32, global>, %y: !tile.slice<8x8xf32, global>):
      tile.parallel [8] tiles [2] workgroups 2 {
        tile.walk {
        ^bb0(%i: index):
          tile.compute [8, 8] sizes [2, 8] offsets [0](%i) vector 1 reduce [] {
            %v = tile.load %x at #at : !tile.slice<8x8xf32, global> -> f32
            %n = arith.negf %v : f32
            tile.store %n, %y at #at : f32, !tile.slice<8x8xf32, global>
            tile.yield
          }
        }
      }
    }
    // A tile reads its rows before it writes them.
    // CHECK: tile.program @staged outputs 1 attributes {in_place = [array<i64: 1>]}
    tile.program @staged outputs 1 {
    ^bb0(%r: !tile.slice<8xf32, global>, %x: !tile.slice<8x8xf32, global>, %y: !tile.slice<8x8xf32, global>):
      tile.parallel [8] tiles [2] workgroups 2 {
        tile.walk {
        ^bb0(%i: index):
          %b = tile.alloc : !tile.slice<2x8xf32, block>
          tile.compute [8, 8] sizes [2, 8] offsets [0](%i) vector 1 reduce [] {
            %v = tile.load %x at #at : !tile.slice<8x8xf32, global> -> f32
            tile.store %v, %b at #local : f32, !tile.slice<2x8xf32, block>
            tile.yield
          }
          tile.sync <block>
          tile.compute [8, 8] sizes [2, 8] offsets [0](%i) vector 1 reduce [] {
            %v = tile.load %b at #local : !tile.slice<2x8xf32, block> -> f32
            %w = tile.load %r at #row : !tile.slice<8xf32, global> -> f32
            %p = arith.mulf %v, %w : f32
            tile.store %p, %y at #at : f32, !tile.slice<8x8xf32, global>
            tile.yield
          }
        }
      }
    }
    // Another tile may still need the elements that this one overwrites.
    // CHECK: tile.program @turned outputs 1 {
    tile.program @turned outputs 1 {
    ^bb0(%x: !tile.slice<8x8xf32, global>, %y: !tile.slice<8x8xf32, global>):
      tile.parallel [8] tiles [2] workgroups 2 {
        tile.walk {
        ^bb0(%i: index):
          tile.compute [8, 8] sizes [2, 8] offsets [0](%i) vector 1 reduce [] {
            %v = tile.load %x at #turned : !tile.slice<8x8xf32, global> -> f32
            tile.store %v, %y at #at : f32, !tile.slice<8x8xf32, global>
            tile.yield
          }
        }
      }
    }
    // The input is read again after the output is written.
    // CHECK: tile.program @again outputs 2 {
    tile.program @again outputs 2 {
    ^bb0(%x: !tile.slice<8x8xf32, global>, %y: !tile.slice<8x8xf32, global>, %s: !tile.slice<8xf32, global>):
      tile.parallel [8] tiles [2] workgroups 2 {
        tile.walk {
        ^bb0(%i: index):
          tile.compute [8, 8] sizes [2, 8] offsets [0](%i) vector 1 reduce [] {
            %v = tile.load %x at #at : !tile.slice<8x8xf32, global> -> f32
            tile.store %v, %y at #at : f32, !tile.slice<8x8xf32, global>
            tile.yield
          }
          tile.compute [8, 8] sizes [2, 8] offsets [0](%i) vector 1 reduce [1]
              into(%s : !tile.slice<8xf32, global>) at [affine_map<(d0, d1)[s0] -> (d0)>] inits [0.0 : f32] kinds ["add"] {
          ^bb0(%acc: f32):
            %v = tile.load %x at #at : !tile.slice<8x8xf32, global> -> f32
            %n = arith.addf %v, %acc : f32
            tile.yield %n : f32
          }
        }
      }
    }
    // A tile reads rows that another tile writes.
    // CHECK: tile.program @other_rows outputs 1 {
    tile.program @other_rows outputs 1 {
    ^bb0(%x: !tile.slice<8x8xf32, global>, %y: !tile.slice<8x8xf32, global>):
      tile.parallel [8, 4] tiles [2, 2] workgroups 2 {
        tile.walk {
        ^bb0(%i: index, %j: index):
          %b = tile.alloc : !tile.slice<2x8xf32, block>
          tile.compute [8, 8] sizes [2, 8] offsets [0](%j) vector 1 reduce [] {
            %v = tile.load %x at #at : !tile.slice<8x8xf32, global> -> f32
            tile.store %v, %b at #local : f32, !tile.slice<2x8xf32, block>
            tile.yield
          }
          tile.compute [8, 8] sizes [2, 8] offsets [0](%i) vector 1 reduce [] {
            %v = tile.load %b at #local : !tile.slice<2x8xf32, block> -> f32
            tile.store %v, %y at #at : f32, !tile.slice<8x8xf32, global>
            tile.yield
          }
        }
      }
    }
  }

  // The caller's own tensor stays as it is; a tensor that one kernel made for this kernel alone is overwritten.
  // CHECK-LABEL: func.func @chain
  func.func @chain(%x: tensor<8x8xf32>, %r: tensor<8xf32>) -> tensor<8x8xf32> {
    // CHECK: tile.launch @tilewright_kernels::@elementwise(%{{.*}}) : (
    %a = tile.launch @tilewright_kernels::@elementwise(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    // CHECK: tile.launch @tilewright_kernels::@staged(%{{.*}}) {tied = array<i64: 1>}
    %b = tile.launch @tilewright_kernels::@staged(%r, %a) : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    // CHECK: tile.launch @tilewright_kernels::@elementwise(%{{.*}}) {tied = array<i64: 0>}
    %c = "iree_tensor_ext.compute_barrier.start"(%b) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = tile.launch @tilewright_kernels::@elementwise(%c) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    // CHECK: tile.launch @tilewright_kernels::@turned(%{{.*}}) : (
    %e = tile.launch @tilewright_kernels::@turned(%d) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    // CHECK: tile.launch @tilewright_kernels::@again(%{{.*}}) : (
    %f:2 = tile.launch @tilewright_kernels::@again(%e) : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8xf32>)
    // CHECK: tile.launch @tilewright_kernels::@other_rows(%{{.*}}) : (
    %g = tile.launch @tilewright_kernels::@other_rows(%f#0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %g : tensor<8x8xf32>
  }

  // Another op reads the input, before or after.
  // CHECK-LABEL: func.func @read_twice
  func.func @read_twice(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %a = tile.launch @tilewright_kernels::@elementwise(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    // CHECK-NOT: tied
    %b = tile.launch @tilewright_kernels::@elementwise(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %c = tile.launch @tilewright_kernels::@turned(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %b, %c : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
