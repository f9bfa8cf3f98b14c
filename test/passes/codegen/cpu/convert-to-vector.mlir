// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --split-input-file | FileCheck %s

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// A reduction along the lanes has whole vectors, a masked tail in as few registers as possible, whose inactive lanes
// keep their value, and one horizontal step.
// CHECK-LABEL: func.func @sum_rows
// CHECK: scf.for
// CHECK:   %[[MAIN:.*]] = scf.for {{.*}} step %c64 iter_args
// CHECK:     vector.load {{.*}} vector<64xf32>
// CHECK:     arith.addf
// CHECK:   %[[FIRST:.*]] = vector.extract_strided_slice %[[MAIN]] {offsets = [0], sizes = [16]
// CHECK:   vector.maskedload {{.*}} vector<16xf32>
// CHECK:   %[[TAIL:.*]] = arith.select {{.*}} %[[FIRST]] : vector<16xi1>
// CHECK:   %[[ALL:.*]] = vector.insert_strided_slice %[[TAIL]], %[[MAIN]]
// CHECK:   vector.reduction <add>, %[[ALL]], %{{.*}} fastmath<reassoc>
// CHECK:   memref.store
tile.program @sum_rows outputs 1 {
^bb0(%x: !tile.slice<6x203xf32, global>, %y: !tile.slice<6xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 203] sizes [1, 203] offsets [0] (%i) vector 1 reduce [1] into (%y : !tile.slice<6xf32, global>)
        at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<6x203xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#in = affine_map<(d0, d1)[s0, s1] -> (d1, d0)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0)>
#out = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>

// A transposed access is a gather; a value that is constant along the lanes is loaded once, outside their loop.
// CHECK-LABEL: func.func @hoists_and_gathers
// CHECK: scf.for
// CHECK:   %[[R:.*]] = memref.load
// CHECK:   math.absf %[[R]] : f32
// CHECK:   scf.for
// CHECK:     vector.gather
// CHECK:     vector.store
tile.program @hoists_and_gathers outputs 1 {
^bb0(%x: !tile.slice<128x6xf32, global>, %r: !tile.slice<6xf32, global>, %y: !tile.slice<6x128xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #in : !tile.slice<128x6xf32, global> -> f32
      %s = tile.load %r at #row : !tile.slice<6xf32, global> -> f32
      %a = math.absf %s : f32
      %n = arith.mulf %v, %a : f32
      tile.store %n, %y at #out : f32, !tile.slice<6x128xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#in = affine_map<(d0)[s0] -> (d0 - 3)>
#out = affine_map<(d0)[s0] -> (d0)>

// A guarded access reads under the mask of its guard, and an integer division never sees the zeros of masked lanes.
// CHECK-LABEL: func.func @guards_accesses
// CHECK: %[[V:.*]] = vector.maskedload
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %[[V]]
// CHECK: %[[D:.*]] = arith.select %[[ZERO]]
// CHECK: arith.divsi %{{.*}}, %[[D]]
tile.program @guards_accesses outputs 1 {
^bb0(%x: !tile.slice<61xi32, global>, %y: !tile.slice<64xi32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [64] sizes [64] offsets [] () vector 0 reduce [] {
      %v = tile.load %x at #in guard affine_set<(d0)[s0] : (d0 - 3 >= 0)> : !tile.slice<61xi32, global> -> i32
      %c = arith.constant 100 : i32
      %n = arith.divsi %c, %v : i32
      tile.store %n, %y at #out : i32, !tile.slice<64xi32, global>
      tile.yield
    }
  }
  }
}

// -----

#in = affine_map<(d0, d1)[s0] -> (d0 - 1, d1)>
#out = affine_map<(d0, d1)[s0] -> (d0, d1)>

// The line above an image lies in a page that may not be mapped, so a load of it, whose lanes are all off, begins at the
// first line.
// CHECK-LABEL: func.func @stays_in_the_image
// CHECK: %[[LOW:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK: %[[LINE:.*]] = arith.minsi %[[LOW]], %c3
// CHECK: vector.maskedload %{{.*}}[%[[LINE]], %{{.*}}]
tile.program @stays_in_the_image outputs 1 {
^bb0(%x: !tile.slice<4x1024xf32, global>, %y: !tile.slice<4x1024xf32, global>):
  tile.parallel [4] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [4, 1024] sizes [1, 1024] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #in guard affine_set<(d0, d1)[s0] : (d0 - 1 >= 0)> : !tile.slice<4x1024xf32, global> -> f32
      tile.store %v, %y at #out : f32, !tile.slice<4x1024xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#in = affine_map<(d0)[s0] -> (d0 - 1)>
#out = affine_map<(d0)[s0] -> (d0)>

// The last 48 points take the lanes of 64 under a guard, because LLVM computes masks of 48 lanes bit by bit; without a
// guard they take three registers.
// CHECK-LABEL: func.func @masks_whole_powers_of_two
// CHECK: vector.maskedload {{.*}} vector<64xf32>
// CHECK: vector.maskedload {{.*}} vector<64xf32>
// CHECK: vector.maskedstore {{.*}} vector<64xf32>
tile.program @masks_whole_powers_of_two outputs 1 {
^bb0(%x: !tile.slice<111xf32, global>, %y: !tile.slice<112xf32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [112] sizes [112] offsets [] () vector 0 reduce [] {
      %v = tile.load %x at #in guard affine_set<(d0)[s0] : (d0 - 1 >= 0)> : !tile.slice<111xf32, global> -> f32
      %n = arith.addf %v, %v : f32
      tile.store %n, %y at #out : f32, !tile.slice<112xf32, global>
      tile.yield
    }
  }
  }
}

// CHECK-LABEL: func.func @fills_registers
// CHECK: vector.load {{.*}} vector<48xf32>
// CHECK: vector.store {{.*}} vector<48xf32>
tile.program @fills_registers outputs 1 {
^bb0(%x: !tile.slice<112xf32, global>, %y: !tile.slice<112xf32, global>):
  tile.parallel [1] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [112] sizes [112] offsets [] () vector 0 reduce [] {
      %v = tile.load %x at #out : !tile.slice<112xf32, global> -> f32
      %n = arith.addf %v, %v : f32
      tile.store %n, %y at #out : f32, !tile.slice<112xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#each = affine_map<(d0, d1)[s0, s1] -> (d0, d1 floordiv 48)>
#wide = affine_map<(d0, d1)[s0, s1] -> (d0, d1 floordiv 64)>

// All lanes read one element if each is repeated for whole vectors. A tail of 48 starts inside 48 repetitions.
// CHECK-LABEL: func.func @repeats
// CHECK:   vector.gather {{.*}} memref<6x3xf32>, vector<64xi32>
// CHECK:   memref.load {{.*}} memref<6x2xf32>
// CHECK:   vector.gather {{.*}} memref<6x3xf32>, vector<48xi32>
// CHECK:   memref.load {{.*}} memref<6x2xf32>
tile.program @repeats outputs 1 {
^bb0(%x: !tile.slice<6x3xf32, global>, %z: !tile.slice<6x2xf32, global>, %y: !tile.slice<6x104xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 104] sizes [1, 104] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #each : !tile.slice<6x3xf32, global> -> f32
      %w = tile.load %z at #wide : !tile.slice<6x2xf32, global> -> f32
      %n = arith.addf %v, %w : f32
      tile.store %n, %y at #id : f32, !tile.slice<6x104xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>

// Dependent additions run in four chains. A power of two is one multiplication, not a polynomial.
// CHECK-LABEL: func.func @sums_squares
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<64xf32>)
tile.program @sums_squares outputs 1 {
^bb0(%x: !tile.slice<6x512xf32, global>, %y: !tile.slice<6xf32, global>):
  tile.parallel [6] tiles [1] workgroups 1 {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [6, 512] sizes [1, 512] offsets [0] (%i) vector 1 reduce [1] into (%y : !tile.slice<6xf32, global>)
        at [affine_map<(d0, d1)[s0, s1] -> (d0)>] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%sum: f32):
      %two = arith.constant 2 : i32
      %v = tile.load %x at #id : !tile.slice<6x512xf32, global> -> f32
      %square = math.fpowi %v, %two : f32, i32
      %next = arith.addf %sum, %square : f32
      tile.yield %next : f32
    }
  }
  }
}
