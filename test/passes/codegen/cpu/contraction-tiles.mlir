// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-amx --canonicalize --cse | FileCheck %s
// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512bf16 --canonicalize --cse \
// RUN:   | FileCheck %s --check-prefix=WITHOUT

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#turned = affine_map<(m, n, k)[s0, s1, s2] -> (k, m)>
#pairs = affine_map<(m, n, k)[s0, s1, s2] -> (n floordiv 32, k floordiv 2, n mod 32, k mod 2)>
#quads = affine_map<(m, n, k)[s0, s1, s2] -> (n floordiv 32, k floordiv 4, n mod 32, k mod 4)>
#plain = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#sums = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// Tiles have 16 and 3 rows. Tile registers are configured once, cleared, and stored after two whole steps and a third
// one, whose rows of 5 elements are copied and padded with zeros. Each tile of an operand is loaded once.
// CHECK-LABEL: func.func @pairs
// CHECK: vector.store {{.*}} : memref<64xi8>, vector<64xi8>
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tilezero"
// CHECK: scf.for
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-NOT: llvm.call_intrinsic
// CHECK: vector.constant_mask [5] : vector<32xi1>
// CHECK: scf.for
// CHECK: vector.maskedload
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: llvm.call_intrinsic "llvm.x86.tilestored64"
// CHECK: llvm.call_intrinsic "llvm.x86.tilerelease"
// WITHOUT-LABEL: func.func @pairs
// WITHOUT-NOT: tile{{load|zero|cfg}}
// WITHOUT: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
tile.program @pairs outputs 1 {
^bb0(%a: !tile.slice<19x69xbf16, global>, %b: !tile.slice<1x48x32x2xbf16, global>, %y: !tile.slice<19x32xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [19, 32, 69] sizes [19, 32, 69] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<19x32xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "amx_bf16-32x2"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<19x69xbf16, global> -> bf16
      %v = tile.load %b at #pairs : !tile.slice<1x48x32x2xbf16, global> -> bf16
      %uw = arith.extf %u : bf16 to f32
      %vw = arith.extf %v : bf16 to f32
      %p = arith.mulf %uw, %vw : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// Unsigned lhs, signed rhs, one tile of rows. Columns behind the 20th are not in memory; a stack buffer takes the sums.
// CHECK-LABEL: func.func @quads
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbusd"
// CHECK: llvm.call_intrinsic "llvm.x86.tilestored64"
// CHECK: scf.for
// CHECK: vector.constant_mask [4] : vector<16xi1>
// CHECK: vector.maskedstore
tile.program @quads outputs 1 {
^bb0(%a: !tile.slice<3x64xi8, global>, %b: !tile.slice<1x16x32x4xi8, global>, %y: !tile.slice<3x20xi32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [3, 20, 64] sizes [3, 20, 64] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<3x20xi32, global>) at [#sums] inits [0 : i32] kinds ["add"] attributes {micro_kernel = "amx_int8-32x2"} {
    ^bb0(%s: i32):
      %u = tile.load %a at #rows : !tile.slice<3x64xi8, global> -> i8
      %v = tile.load %b at #quads : !tile.slice<1x16x32x4xi8, global> -> i8
      %uw = arith.extui %u : i8 to i32
      %vw = arith.extsi %v : i8 to i32
      %p = arith.muli %uw, %vw : i32
      %n = arith.addi %s, %p : i32
      tile.yield %n : i32
    }
  }
  }
}

// An operand that is contiguous along rows is interleaved on the stack; missing groups of the last step are zeros.
// CHECK-LABEL: func.func @rows_of_lanes
// CHECK: vector.interleave {{.*}} : vector<16xbf16> -> vector<32xbf16>
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
tile.program @rows_of_lanes outputs 1 {
^bb0(%a: !tile.slice<19x40xbf16, global>, %b: !tile.slice<40x32xbf16, global>, %y: !tile.slice<19x32xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [19, 32, 40] sizes [19, 32, 40] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<19x32xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "amx_bf16-32x2"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<19x40xbf16, global> -> bf16
      %v = tile.load %b at #plain : !tile.slice<40x32xbf16, global> -> bf16
      %uw = arith.extf %u : bf16 to f32
      %vw = arith.extf %v : bf16 to f32
      %p = arith.mulf %uw, %vw : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// Tiles need rows that are contiguous along K, and an operand packed for another kernel does not have whole steps.
// CHECK-LABEL: func.func @no_tiles
// CHECK-NOT: ldtilecfg
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
tile.program @no_tiles outputs 2 {
^bb0(%a: !tile.slice<64x19xbf16, global>, %c: !tile.slice<19x64xbf16, global>, %b: !tile.slice<1x32x32x2xbf16, global>,
     %d: !tile.slice<1x35x32x2xbf16, global>, %y: !tile.slice<19x32xf32, global>, %z: !tile.slice<19x32xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [19, 32, 64] sizes [19, 32, 64] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<19x32xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "amx_bf16-32x2"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #turned : !tile.slice<64x19xbf16, global> -> bf16
      %v = tile.load %b at #pairs : !tile.slice<1x32x32x2xbf16, global> -> bf16
      %uw = arith.extf %u : bf16 to f32
      %vw = arith.extf %v : bf16 to f32
      %p = arith.mulf %uw, %vw : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
    tile.compute [19, 32, 64] sizes [19, 32, 64] offsets [] () vector 1 reduce [2]
        into (%z : !tile.slice<19x32xf32, global>) at [#sums] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "amx_bf16-32x2"} {
    ^bb0(%s: f32):
      %u = tile.load %c at #rows : !tile.slice<19x64xbf16, global> -> bf16
      %v = tile.load %d at #pairs : !tile.slice<1x35x32x2xbf16, global> -> bf16
      %uw = arith.extf %u : bf16 to f32
      %vw = arith.extf %v : bf16 to f32
      %p = arith.mulf %uw, %vw : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
