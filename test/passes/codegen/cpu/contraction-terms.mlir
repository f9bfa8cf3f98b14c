// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512bf16 --canonicalize --cse | FileCheck %s
// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx2 --canonicalize --cse \
// RUN:   | FileCheck %s --check-prefix=AVX2

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#pairs = affine_map<(m, n, k)[s0, s1, s2] -> (n floordiv 64, k floordiv 2, n mod 64, k mod 2)>
#quads = affine_map<(m, n, k)[s0, s1, s2] -> (n floordiv 64, k floordiv 4, n mod 64, k mod 4)>
#plain = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// K = 21 takes ten steps of two, and a last step whose second half is zero. A row's pair is broadcast as one number.
// CHECK-LABEL: func.func @pairs
// CHECK: scf.for %{{.*}} = %c0 to %c10 step %c1
// CHECK-COUNT-4: vector.load {{.*}} vector<32xbf16>
// CHECK: vector.load {{.*}} vector<2xbf16>
// CHECK: vector.broadcast {{.*}} : i32 to vector<16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK: scf.yield
// CHECK: vector.insert

// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// AVX2-LABEL: func.func @pairs
// AVX2-COUNT-2: vector.load {{.*}} vector<16xbf16>
// AVX2: arith.shli
// AVX2: math.fma
// AVX2-NOT: llvm.call_intrinsic
tile.program @pairs outputs 1 {
^bb0(%a: !tile.slice<6x21xbf16, global>, %b: !tile.slice<1x11x64x2xbf16, global>, %y: !tile.slice<6x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [6, 64, 21] sizes [6, 64, 21] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<6x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "dpbf16-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<6x21xbf16, global> -> bf16
      %v = tile.load %b at #pairs : !tile.slice<1x11x64x2xbf16, global> -> bf16
      %uw = arith.extf %u : bf16 to f32
      %vw = arith.extf %v : bf16 to f32
      %p = arith.mulf %uw, %vw : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// An operand that is contiguous along rows is interleaved in registers.
// CHECK-LABEL: func.func @rows_of_lanes
// CHECK: vector.interleave {{.*}} : vector<16xbf16> -> vector<32xbf16>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// AVX2-LABEL: func.func @rows_of_lanes
// AVX2-NOT: vector.interleave
// AVX2: math.fma
tile.program @rows_of_lanes outputs 1 {
^bb0(%a: !tile.slice<6x20xbf16, global>, %b: !tile.slice<20x64xbf16, global>, %y: !tile.slice<6x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [6, 64, 20] sizes [6, 64, 20] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<6x64xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "dpbf16-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<6x20xbf16, global> -> bf16
      %v = tile.load %b at #plain : !tile.slice<20x64xbf16, global> -> bf16
      %uw = arith.extf %u : bf16 to f32
      %vw = arith.extf %v : bf16 to f32
      %p = arith.mulf %uw, %vw : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// Signed times signed bytes: lhs is shifted to unsigned, and the excess is accumulated separately and subtracted.
// CHECK-LABEL: func.func @quads
// CHECK: arith.xori
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: scf.yield
// CHECK: arith.subi {{.*}} : vector<16xi32>
// CHECK: vector.store
// AVX2-LABEL: func.func @quads
// AVX2: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
tile.program @quads outputs 1 {
^bb0(%a: !tile.slice<4x20xi8, global>, %b: !tile.slice<1x5x64x4xi8, global>, %y: !tile.slice<4x64xi32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [4, 64, 20] sizes [4, 64, 20] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<4x64xi32, global>) at [#sums] inits [0 : i32] kinds ["add"] attributes {micro_kernel = "vpdpbusd-4x4"} {
    ^bb0(%s: i32):
      %u = tile.load %a at #rows : !tile.slice<4x20xi8, global> -> i8
      %v = tile.load %b at #quads : !tile.slice<1x5x64x4xi8, global> -> i8
      %uw = arith.extsi %u : i8 to i32
      %vw = arith.extsi %v : i8 to i32
      %p = arith.muli %uw, %vw : i32
      %n = arith.addi %s, %p : i32
      tile.yield %n : i32
    }
  }
  }
}
