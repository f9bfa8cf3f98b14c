// RUN: tilewright-opt %s --tile-rewrite-movement=target=sm_80 | FileCheck %s --check-prefixes=CHECK,ROOM
// RUN: tilewright-opt %s --tile-rewrite-movement=target=%S/Inputs/small-block.json | FileCheck %s --check-prefixes=CHECK,SMALL

#rows = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d2)>
#lanes = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d2, d1)>
#sums = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d1)>
#own = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0 - s0, d1)>
#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#here = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)>
#turned = affine_map<(d0, d1)[s0, s1] -> (d0, 63 - d1)>
#kept = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0 - s0, d2)>

// In one part, the operands of the contraction are staged in memory behind the buffer of the exponentials.
// CHECK-LABEL: tile.program @product_then_buffer outputs 2
// ROOM-NOT: tile.sync <grid>
// SMALL: tile.sync <grid>
// CHECK: tile.launch
tile.program @product_then_buffer outputs 2 {
^bb0(%a: !tile.slice<256x64xf32, global>, %b: !tile.slice<64x64xf32, global>, %t: !tile.slice<256x64xf32, global>,
     %y: !tile.slice<256x64xf32, global>):
  tile.parallel [256] tiles [64] workgroups 4 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [256, 64, 64] sizes [64, 64, 64] offsets [0] (%i) vector 1 reduce [2]
        into (%t : !tile.slice<256x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["none"]
        attributes {micro_kernel = "fma-8x8", gemm = #tile.gemm<m = 8, n = 8, step = 16, stages = 4>} {
    ^bb0(%acc: f32):
      %l = tile.load %a at #rows : !tile.slice<256x64xf32, global> -> f32
      %r = tile.load %b at #lanes : !tile.slice<64x64xf32, global> -> f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %acc, %p : f32
      tile.yield %s : f32
    }
  }
  }
  tile.sync <grid>
  tile.parallel [256] tiles [64] workgroups 4 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %e = tile.alloc : !tile.slice<64x128xf32, block>
    tile.compute [256, 64] sizes [64, 64] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %t at #id : !tile.slice<256x64xf32, global> -> f32
      %x = math.exp %v : f32
      tile.store %x, %e at #here : f32, !tile.slice<64x128xf32, block>
      tile.yield
    }
    tile.sync <block>
    tile.compute [256, 64] sizes [64, 64] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %e at #here : !tile.slice<64x128xf32, block> -> f32
      tile.store %v, %y at #id : f32, !tile.slice<256x64xf32, global>
      tile.yield
    }
  }
  }
}
func.func @call(%a: tensor<256x64xf32>, %b: tensor<64x64xf32>) -> (tensor<256x64xf32>, tensor<256x64xf32>) {
  %0:2 = tile.launch @product_then_buffer(%a, %b) : (tensor<256x64xf32>, tensor<64x64xf32>)
      -> (tensor<256x64xf32>, tensor<256x64xf32>)
  return %0#0, %0#1 : tensor<256x64xf32>, tensor<256x64xf32>
}

// A block keeps the gate only if there is memory for the accumulators of the other product, too: beside those of the
// gate, they would not stay in registers any more.
// CHECK-LABEL: tile.program @gated outputs
// ROOM-COUNT-2: tile.alloc
// SMALL-COUNT-1: tile.alloc
// CHECK-NOT: tile.alloc
// CHECK: tile.launch
tile.program @gated outputs 2 {
^bb0(%a: !tile.slice<256x64xf32, global>, %b: !tile.slice<64x64xf32, global>, %c: !tile.slice<64x64xf32, global>,
     %g: !tile.slice<256x64xf32, global>, %y: !tile.slice<256x64xf32, global>):
  tile.parallel [256] tiles [64] workgroups 4 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %u = tile.alloc : !tile.slice<64x64xf32, block>
    tile.compute [256, 64, 64] sizes [64, 64, 64] offsets [0] (%i) vector 1 reduce [2]
        into (%g : !tile.slice<256x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["none"]
        attributes {micro_kernel = "fma-8x8", gemm = #tile.gemm<m = 8, n = 8, step = 16, stages = 4>} {
    ^bb0(%acc: f32):
      %l = tile.load %a at #rows : !tile.slice<256x64xf32, global> -> f32
      %r = tile.load %b at #lanes : !tile.slice<64x64xf32, global> -> f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %acc, %p : f32
      tile.yield %s : f32
    }
    tile.compute [256, 64, 64] sizes [64, 64, 64] offsets [0] (%i) vector 1 reduce [2]
        into (%u : !tile.slice<64x64xf32, block>) at [#own] inits [0.0 : f32] kinds ["none"]
        attributes {micro_kernel = "fma-8x8", gemm = #tile.gemm<m = 8, n = 8, step = 16, stages = 4>} {
    ^bb0(%acc: f32):
      %l = tile.load %a at #rows : !tile.slice<256x64xf32, global> -> f32
      %r = tile.load %c at #lanes : !tile.slice<64x64xf32, global> -> f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %acc, %p : f32
      tile.yield %s : f32
    }
    tile.sync <block>
    tile.compute [256, 64] sizes [64, 64] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %u at #here : !tile.slice<64x64xf32, block> -> f32
      %w = tile.load %g at #id : !tile.slice<256x64xf32, global> -> f32
      %m = arith.mulf %v, %w : f32
      tile.store %m, %y at #id : f32, !tile.slice<256x64xf32, global>
      tile.yield
    }
  }
  }
}
func.func @call_gated(%a: tensor<256x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>) -> tensor<256x64xf32> {
  %0:2 = tile.launch @gated(%a, %b, %c) : (tensor<256x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>)
      -> (tensor<256x64xf32>, tensor<256x64xf32>)
  return %0#1 : tensor<256x64xf32>
}

// The result of an epilogue takes no accumulators from registers: it only needs memory of its own.
// CHECK-LABEL: tile.program @epilogue outputs 1
// CHECK-COUNT-2: tile.alloc
tile.program @epilogue outputs 2 {
^bb0(%a: !tile.slice<256x64xf32, global>, %b: !tile.slice<64x64xf32, global>, %h: !tile.slice<256x64xf32, global>,
     %y: !tile.slice<256x64xf32, global>):
  tile.parallel [256] tiles [64] workgroups 4 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %u = tile.alloc : !tile.slice<64x64xf32, block>
    tile.compute [256, 64, 64] sizes [64, 64, 64] offsets [0] (%i) vector 1 reduce [2]
        into (%u : !tile.slice<64x64xf32, block>) at [#own] inits [0.0 : f32] kinds ["none"]
        attributes {micro_kernel = "fma-8x8", gemm = #tile.gemm<m = 8, n = 8, step = 16, stages = 4>} {
    ^bb0(%acc: f32):
      %l = tile.load %a at #rows : !tile.slice<256x64xf32, global> -> f32
      %r = tile.load %b at #lanes : !tile.slice<64x64xf32, global> -> f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %acc, %p : f32
      tile.yield %s : f32
    }
    tile.sync <block>
    tile.compute [256, 64] sizes [64, 64] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %u at #here : !tile.slice<64x64xf32, block> -> f32
      %e = math.exp %v : f32
      tile.store %e, %h at #id : f32, !tile.slice<256x64xf32, global>
      tile.yield
    }
    tile.sync <block>
    tile.compute [256, 64] sizes [64, 64] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %h at #turned : !tile.slice<256x64xf32, global> -> f32
      tile.store %v, %y at #id : f32, !tile.slice<256x64xf32, global>
      tile.yield
    }
  }
  }
}
func.func @call_epilogue(%a: tensor<256x64xf32>, %b: tensor<64x64xf32>) -> tensor<256x64xf32> {
  %0:2 = tile.launch @epilogue(%a, %b) : (tensor<256x64xf32>, tensor<64x64xf32>)
      -> (tensor<256x64xf32>, tensor<256x64xf32>)
  return %0#1 : tensor<256x64xf32>
}

// Accumulators in registers are initialised in a nest of their own: with the nest before it, they would be a buffer.
// CHECK-LABEL: tile.program @grows outputs 1
// CHECK: tile.compute
// CHECK: tile.compute
// CHECK: scf.for
tile.program @grows outputs 1 {
^bb0(%x: !tile.slice<64x64xf32, global>, %w: !tile.slice<64x64xf32, global>, %y: !tile.slice<64x64xf32, global>):
  tile.parallel [64] tiles [64] workgroups 1 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %h = tile.alloc : !tile.slice<64x64xf32, block>
    %u = tile.alloc : !tile.slice<64x64xf32, block>
    %s = tile.alloc : !tile.slice<64x64xf32, block>
    tile.compute [64, 64] sizes [64, 64] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<64x64xf32, global> -> f32
      %e = math.exp %v : f32
      tile.store %e, %h at #here : f32, !tile.slice<64x64xf32, block>
      tile.yield
    }
    tile.compute [64, 64] sizes [64, 64] offsets [0] (%i) vector 1 reduce [] {
      %zero = arith.constant 0.0 : f32
      tile.store %zero, %u at #here : f32, !tile.slice<64x64xf32, block>
      tile.yield
    }
    tile.sync <block>
    %first = arith.constant 0 : index
    %end = arith.constant 64 : index
    %step = arith.constant 32 : index
    scf.for %k = %first to %end step %step {
      tile.compute [64, 64, 64] sizes [64, 64, 32] offsets [0, 2] (%i, %k) vector 1 reduce [2]
          into (%s : !tile.slice<64x64xf32, block>) at [#own] inits [0.0 : f32] kinds ["none"]
          attributes {micro_kernel = "fma-8x8"} {
      ^bb0(%acc: f32):
        %l = tile.load %h at #kept : !tile.slice<64x64xf32, block> -> f32
        %r = tile.load %w at #lanes : !tile.slice<64x64xf32, global> -> f32
        %p = arith.mulf %l, %r : f32
        %n = arith.addf %acc, %p : f32
        tile.yield %n : f32
      }
      tile.sync <block>
      tile.compute [64, 64] sizes [64, 64] offsets [0] (%i) vector 1 reduce [] {
        %old = tile.load %u at #here : !tile.slice<64x64xf32, block> -> f32
        %more = tile.load %s at #here : !tile.slice<64x64xf32, block> -> f32
        %n = arith.addf %old, %more : f32
        tile.store %n, %u at #here : f32, !tile.slice<64x64xf32, block>
        tile.yield
      }
    }
    tile.sync <block>
    tile.compute [64, 64] sizes [64, 64] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %u at #here : !tile.slice<64x64xf32, block> -> f32
      tile.store %v, %y at #id : f32, !tile.slice<64x64xf32, global>
      tile.yield
    }
  }
  }
}
func.func @call_grows(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = tile.launch @grows(%x, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
