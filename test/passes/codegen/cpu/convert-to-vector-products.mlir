// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx2 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,FMA
// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-v2 --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,APART

#row = affine_map<(m, k)[s0, s1] -> (k, m)>
#sum = affine_map<(m, k)[s0, s1] -> (m)>

// A sum that may add products unrounded is one op where the machine has one.
// CHECK-LABEL: func.func @unrounded
// FMA: math.fma
// FMA-NOT: arith.addf
// APART: arith.mulf
// APART: arith.addf
// APART-NOT: math.fma
// CHECK: return
tile.program @unrounded outputs 1 {
^bb0(%a: !tile.slice<13x32xf32, global>, %b: !tile.slice<13x32xf32, global>, %y: !tile.slice<32xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [32, 13] sizes [32, 13] offsets [] () vector 0 reduce [1]
        into (%y : !tile.slice<32xf32, global>) at [#sum] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%s: f32):
      %u = tile.load %a at #row : !tile.slice<13x32xf32, global> -> f32
      %v = tile.load %b at #row : !tile.slice<13x32xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p fastmath<contract> : f32
      tile.yield %n : f32
    }
  }
  }
}

// Without that freedom, each product is rounded.
// CHECK-LABEL: func.func @rounded
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK-NOT: math.fma
// CHECK: return
tile.program @rounded outputs 1 {
^bb0(%a: !tile.slice<13x32xf32, global>, %b: !tile.slice<13x32xf32, global>, %y: !tile.slice<32xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [32, 13] sizes [32, 13] offsets [] () vector 0 reduce [1]
        into (%y : !tile.slice<32xf32, global>) at [#sum] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%s: f32):
      %u = tile.load %a at #row : !tile.slice<13x32xf32, global> -> f32
      %v = tile.load %b at #row : !tile.slice<13x32xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
