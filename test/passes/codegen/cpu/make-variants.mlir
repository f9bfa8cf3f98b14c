// RUN: tilewright-opt %s --tile-make-variants=targets=x86-64-avx512,x86-64-avx2 | FileCheck %s
// RUN: echo '{"base": "x86-64-avx2", "features": "+avx2,+avxvnni"}' > %t.json
// RUN: tilewright-opt %s --tile-make-variants=targets=%t.json | FileCheck %s --check-prefix=ONE

#id = affine_map<(d0)[s0] -> (d0)>

// The program keeps its name for the first target, because launches refer to it; the others are copies.
// CHECK: tile.program @twice
// CHECK-SAME: tile.target = "x86-64-avx512", tile.variant_of = "twice"
// CHECK: tile.program @"twice.x86-64-avx2"
// CHECK-SAME: tile.target = "x86-64-avx2", tile.variant_of = "twice"
// CHECK-NOT: tile.program

// A single target needs no choice at run time, so it may need features that a runtime does not report.
// ONE: tile.program @twice
// ONE-NOT: tile.target
// ONE-NOT: tile.program
tile.program @twice outputs 1 {
^bb0(%x: !tile.slice<7xf32, global>, %y: !tile.slice<7xf32, global>):
  tile.parallel [7] tiles [7] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [7] sizes [7] offsets [0] (%i) vector 0 reduce [] {
      %v = tile.load %x at #id : !tile.slice<7xf32, global> -> f32
      %n = arith.addf %v, %v : f32
      tile.store %n, %y at #id : f32, !tile.slice<7xf32, global>
      tile.yield
    }
  }
  }
}
