// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile-convert-to-vector{target=x86-64-avx2})' | FileCheck %s

// Blocks of registers of 32 bytes, of which there are 16.
#l = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d2)>
#r = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d2, d1)>
#panels = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d1 floordiv 16, d2, d1 mod 16)>
#sums = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d1)>

// A step of a given rhs is one line, and lines of a column lie apart. For many rows, they are copied side by side.
// CHECK-LABEL: func.func @copies_lines
// CHECK: %[[PANEL:.*]] = memref.alloca() {{.*}} : memref<{{[0-9]+}}x16xf32>
// CHECK: vector.store %{{.*}}, %[[PANEL]]
// CHECK: vector.load %[[PANEL]]
tile.program @copies_lines outputs 1 {
^bb0(%a: !tile.slice<102x24xf32, global>, %b: !tile.slice<24x192xf32, global>, %y: !tile.slice<102x192xf32, global>):
  tile.parallel [102, 192] tiles [102, 192] workgroups 1 {
    tile.walk {
    ^bb0(%i: index, %j: index):
      tile.compute [102, 192, 24] sizes [102, 192, 24] offsets [0, 1](%i, %j) vector 1 reduce [2]
          into (%y : !tile.slice<102x192xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x2"} {
      ^bb0(%acc: f32):
        %u = tile.load %a at #l : <102x24xf32, global> -> f32
        %v = tile.load %b at #r : <24x192xf32, global> -> f32
        %product = arith.mulf %u, %v : f32
        %sum = arith.addf %acc, %product : f32
        tile.yield %sum : f32
      }
    }
  }
}

// One row has eight vectors of accumulators, which keep the units of a core busy.
// CHECK-LABEL: func.func @widens_a_row
// CHECK: scf.for
// CHECK-COUNT-8: math.fma
// CHECK-NOT: math.fma
tile.program @widens_a_row outputs 1 {
^bb0(%a: !tile.slice<1x23xf32, global>, %b: !tile.slice<23x192xf32, global>, %y: !tile.slice<1x192xf32, global>):
  tile.parallel [1, 192] tiles [1, 192] workgroups 1 {
    tile.walk {
    ^bb0(%i: index, %j: index):
      tile.compute [1, 192, 23] sizes [1, 192, 23] offsets [0, 1](%i, %j) vector 1 reduce [2]
          into (%y : !tile.slice<1x192xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x2"} {
      ^bb0(%acc: f32):
        %u = tile.load %a at #l : <1x23xf32, global> -> f32
        %v = tile.load %b at #r : <23x192xf32, global> -> f32
        %product = arith.mulf %u, %v : f32
        %sum = arith.addf %acc, %product : f32
        tile.yield %sum : f32
      }
    }
  }
}

// A block of one row reads four packed panels at once.
// CHECK-LABEL: func.func @reads_four_panels
// CHECK: scf.for
// CHECK-COUNT-8: math.fma
// CHECK-NOT: math.fma
tile.program @reads_four_panels outputs 1 {
^bb0(%a: !tile.slice<1x23xf32, global>, %b: !tile.slice<12x23x16xf32, global>, %y: !tile.slice<1x192xf32, global>):
  tile.parallel [1, 192] tiles [1, 192] workgroups 1 {
    tile.walk {
    ^bb0(%i: index, %j: index):
      tile.compute [1, 192, 23] sizes [1, 192, 23] offsets [0, 1](%i, %j) vector 1 reduce [2]
          into (%y : !tile.slice<1x192xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x2"} {
      ^bb0(%acc: f32):
        %u = tile.load %a at #l : <1x23xf32, global> -> f32
        %v = tile.load %b at #panels : <12x23x16xf32, global> -> f32
        %product = arith.mulf %u, %v : f32
        %sum = arith.addf %acc, %product : f32
        tile.yield %sum : f32
      }
    }
  }
}

// An iteration takes as many steps as have 96 multiply-adds.
// CHECK-LABEL: func.func @takes_eight_steps
// CHECK: scf.for {{.*}} step
// CHECK: scf.for {{.*}} iter_args
// CHECK-COUNT-96: math.fma
// CHECK-NOT: math.fma
// CHECK: scf.yield
tile.program @takes_eight_steps outputs 1 {
^bb0(%a: !tile.slice<12x24xf32, global>, %b: !tile.slice<1x24x16xf32, global>, %y: !tile.slice<12x16xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
    tile.walk {
      tile.compute [12, 16, 24] sizes [12, 16, 24] offsets [] () vector 1 reduce [2]
          into (%y : !tile.slice<12x16xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x2"} {
      ^bb0(%acc: f32):
        %u = tile.load %a at #l : <12x24xf32, global> -> f32
        %v = tile.load %b at #panels : <1x24x16xf32, global> -> f32
        %product = arith.mulf %u, %v : f32
        %sum = arith.addf %acc, %product : f32
        tile.yield %sum : f32
      }
    }
  }
}
