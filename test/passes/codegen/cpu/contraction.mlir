// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx512 --canonicalize --cse | FileCheck %s
// RUN: tilewright-opt %s --tile-convert-to-vector=target=x86-64-avx2 --canonicalize --cse \
// RUN:   | FileCheck %s --check-prefix=AVX2

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#packed = affine_map<(m, n, k)[s0, s1, s2] -> (n floordiv 64, k, n mod 64)>
#acc = affine_map<(m, n, k)[s0, s1, s2] -> (m, n - s1)>
#plain = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#across = affine_map<(m, n, k)[s0, s1, s2] -> (n, k)>

// The reduction loop carries 6 x 4 vectors of accumulators; 19 rows are two such blocks, and two that share seven rows.
// CHECK-LABEL: func.func @packed
// CHECK: scf.for {{.*}} step %c6
// CHECK:   scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, {{.*}}) {
// CHECK-COUNT-4: vector.load {{.*}} vector<16xf32>
// CHECK-COUNT-24: math.fma
// CHECK-NOT: math.fma
// CHECK:   scf.yield
// CHECK-COUNT-24: vector.store
// CHECK: scf.for
// CHECK-COUNT-16: math.fma
// CHECK-NOT: math.fma
// CHECK-COUNT-16: vector.store
// CHECK: scf.for
// CHECK-COUNT-12: math.fma
// CHECK-NOT: math.fma
// AVX2-LABEL: func.func @packed
// AVX2: scf.for
// AVX2-COUNT-2: vector.load {{.*}} vector<8xf32>
// AVX2-COUNT-12: math.fma
tile.program @packed outputs 1 {
^bb0(%a: !tile.slice<19x19xf32, global>, %b: !tile.slice<2x19x64xf32, global>, %y: !tile.slice<19x128xf32, global>):
  tile.parallel [128] tiles [64] workgroups 1 {
  tile.walk {
  ^bb0(%j: index):
    %c = tile.alloc at 0 : !tile.slice<19x64xf32, block>
    tile.compute [19, 128, 19] sizes [19, 64, 19] offsets [1] (%j) vector 1 reduce [2]
        into (%c : !tile.slice<19x64xf32, block>) at [#acc] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<19x19xf32, global> -> f32
      %v = tile.load %b at #packed : !tile.slice<2x19x64xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// If one vector holds all columns, a block has four times as many rows: 58 rows are two such blocks and ten rows.
// CHECK-LABEL: func.func @narrow
// CHECK: scf.for {{.*}} step %c24
// CHECK:   scf.for
// CHECK-COUNT-1: vector.load
// CHECK-COUNT-24: math.fma
// CHECK-NOT: math.fma
// CHECK:   scf.yield
// CHECK: scf.for
// CHECK-COUNT-10: math.fma
// CHECK-NOT: math.fma
// AVX2-LABEL: func.func @narrow
tile.program @narrow outputs 1 {
^bb0(%a: !tile.slice<58x19xf32, global>, %b: !tile.slice<19x16xf32, global>, %y: !tile.slice<58x16xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [58, 16, 19] sizes [58, 16, 19] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<58x16xf32, global>) at [affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<58x19xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<19x16xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// Columns past the end of 50 are masked, in loads and in stores.
// CHECK-LABEL: func.func @tail
// CHECK: vector.constant_mask [2]
// CHECK: vector.maskedload
// CHECK: vector.maskedstore
tile.program @tail outputs 1 {
^bb0(%a: !tile.slice<6x19xf32, global>, %b: !tile.slice<19x50xf32, global>, %y: !tile.slice<6x50xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [6, 50, 19] sizes [6, 50, 19] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<6x50xf32, global>) at [affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<6x19xf32, global> -> f32
      %v = tile.load %b at #plain : !tile.slice<19x50xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// A register block cannot read an operand that is not contiguous across lanes, so a loop nest gathers its elements.
// CHECK-LABEL: func.func @across
// CHECK-NOT: math.fma
// CHECK: vector.gather
tile.program @across outputs 1 {
^bb0(%a: !tile.slice<6x19xf32, global>, %b: !tile.slice<64x19xf32, global>, %y: !tile.slice<6x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    tile.compute [6, 64, 19] sizes [6, 64, 19] offsets [] () vector 1 reduce [2]
        into (%y : !tile.slice<6x64xf32, global>) at [affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>] inits [0.0 : f32] kinds ["add"] attributes {micro_kernel = "fma-6x4"} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<6x19xf32, global> -> f32
      %v = tile.load %b at #across : !tile.slice<64x19xf32, global> -> f32
      %p = arith.mulf %u, %v : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}

// A loop around the nest offsets the reduced dim; an accumulator that is continued starts from its slice.
// CHECK-LABEL: func.func @goes_on
// CHECK: scf.for %[[K:.*]] = %c0 to %c20 step %c5
// CHECK: %[[SUM:.*]] = vector.load %[[C:.*]][%c0, %c0]
// CHECK: %[[END:.*]] = arith.addi %[[K]], %c5
// CHECK: scf.for %{{.*}} = %[[K]] to %[[END]] step %c1 iter_args(%{{.*}} = %[[SUM]]
// CHECK: vector.store %{{.*}}, %[[C]][%c0, %c0]
tile.program @goes_on outputs 1 {
^bb0(%a: !tile.slice<6x20xf32, global>, %b: !tile.slice<20x64xf32, global>, %y: !tile.slice<6x64xf32, global>):
  tile.parallel [] tiles [] workgroups 1 {
  tile.walk {
    %zero = arith.constant 0 : index
    %five = arith.constant 5 : index
    %twenty = arith.constant 20 : index
    scf.for %k = %zero to %twenty step %five {
      tile.compute [6, 64, 20] sizes [6, 64, 5] offsets [2] (%k) vector 1 reduce [2]
          into (%y : !tile.slice<6x64xf32, global>) at [affine_map<(m, n, k)[s] -> (m, n)>] inits [unit] kinds ["add"] attributes {micro_kernel = "fma-6x4"} {
      ^bb0(%s: f32):
        %u = tile.load %a at affine_map<(m, n, k)[s] -> (m, k)> : !tile.slice<6x20xf32, global> -> f32
        %v = tile.load %b at affine_map<(m, n, k)[s] -> (k, n)> : !tile.slice<20x64xf32, global> -> f32
        %p = arith.mulf %u, %v : f32
        %n = arith.addf %s, %p : f32
        tile.yield %n : f32
      }
    }
  }
  }
}
