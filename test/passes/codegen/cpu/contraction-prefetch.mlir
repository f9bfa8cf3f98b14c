// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --cse | FileCheck %s

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#panels = affine_map<(m, n, k)[s0, s1, s2] -> (n floordiv 64, k, n mod 64)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// A panel has 96 steps of 4 cache lines. Each of 17 row blocks fetches 23 of the next panel's 384 lines before it begins.
// CHECK-LABEL: func.func @next_panel
// CHECK: scf.for %[[ROW:.*]] = %c0 to %c102 step %c6
// CHECK: %[[NUMBER:.*]] = arith.ceildivui %[[ROW]], %c6
// CHECK: %[[BEFORE:.*]] = arith.muli %[[NUMBER]], %c368
// CHECK: %[[SHARE:.*]] = arith.addi %[[BEFORE]], %c6144
// CHECK: scf.for %[[ELEMENT:.*]] = %c0 to %c368 step %c16
// CHECK: %[[PLACE:.*]] = arith.addi %[[SHARE]], %[[ELEMENT]]
// CHECK: memref.prefetch %{{.*}}[%{{.*}}, %c0, %[[PLACE]]], read, locality<2>, data
// CHECK: math.fma
// CHECK-NOT: memref.prefetch
tile.program @next_panel outputs 1 {
^bb0(%a: !tile.slice<102x96xf32, global>, %b: !tile.slice<2x96x64xf32, global>, %y: !tile.slice<102x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [102, 128, 96] sizes [102, 128, 96] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<102x96xf32, global> -> f32
      %v = tile.load %b at #panels : !tile.slice<2x96x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// Nothing is prefetched if there is no other panel, if panels are this short, or if one row block streams its panels.
// CHECK-LABEL: func.func @one_panel
// CHECK-NOT: memref.prefetch
tile.program @one_panel outputs 1 {
^bb0(%a: !tile.slice<102x96xf32, global>, %b: !tile.slice<1x96x64xf32, global>, %y: !tile.slice<102x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [102, 64, 96] sizes [102, 64, 96] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<102x96xf32, global> -> f32
      %v = tile.load %b at #panels : !tile.slice<1x96x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// CHECK-LABEL: func.func @short_panels
// CHECK-NOT: memref.prefetch
tile.program @short_panels outputs 1 {
^bb0(%a: !tile.slice<102x32xf32, global>, %b: !tile.slice<2x32x64xf32, global>, %y: !tile.slice<102x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [102, 128, 32] sizes [102, 128, 32] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<102x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<102x32xf32, global> -> f32
      %v = tile.load %b at #panels : !tile.slice<2x32x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// CHECK-LABEL: func.func @one_row_block
// CHECK-NOT: memref.prefetch
tile.program @one_row_block outputs 1 {
^bb0(%a: !tile.slice<6x96xf32, global>, %b: !tile.slice<2x96x64xf32, global>, %y: !tile.slice<6x128xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [6, 128, 96] sizes [6, 128, 96] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<6x128xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<6x96xf32, global> -> f32
      %v = tile.load %b at #panels : !tile.slice<2x96x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
