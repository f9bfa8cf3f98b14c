// RUN: tilewright-opt %s --tile-verify-planned --tile-lower-to-program=target=cuda:h200 | FileCheck %s

#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>

// In shared memory operands of a GPU contraction, neighbouring lines start in different banks: 64 elements of 2 bytes
// are followed by 8 unused ones, and so are 64 accumulators, which would take memory if they left registers.
// CHECK-LABEL: tile.program @chain
// CHECK-DAG: tile.alloc : <16x72xf16, block>
// CHECK-DAG: tile.alloc : <16x72xf32, block>
// CHECK-NOT: tile.alloc
func.func @chain(%x: tensor<32x32xf16>, %v: tensor<32x64xf16>, %w: tensor<64x48xf16>) -> tensor<32x48xf32> {
  %r = tile.subprogram "chain" (%x, %v, %w) extents [32, 64, 32, 48] tiles [16, 64, 32, 48] grid [0] vector 3 workgroups 2
      numerics <relaxed, fast> {tile.threads = 128 : i64, tile.group = 0 : i64}
      : (tensor<32x32xf16>, tensor<32x64xf16>, tensor<64x48xf16>) -> tensor<32x48xf32> {
  ^bb0(%a: tensor<32x32xf16>, %b: tensor<32x64xf16>, %c: tensor<64x48xf16>):
    %s = tile.expr domain [32, 64, 32] reduce [2] (%a, %b) maps [#left, #right] guards [unit, unit] into [#out]
        inits [0.0 : f32] dims [0, 1, 2] {micro_kernel = "mma_sync-16x8"}
        : (tensor<32x32xf16>, tensor<32x64xf16>) -> tensor<32x64xf32> {
    ^bb0(%l: f16, %m: f16, %acc: f32):
      %le = arith.extf %l : f16 to f32
      %me = arith.extf %m : f16 to f32
      %p = arith.mulf %le, %me : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
    %sc = tile.connect %s <block> : tensor<32x64xf32>
    %e = tile.expr domain [32, 64] reduce [] (%sc) maps [#id] guards [unit] into [#id] inits []
        dims [0, 1] : (tensor<32x64xf32>) -> tensor<32x64xf16> {
    ^bb0(%l: f32):
      %n = arith.truncf %l : f32 to f16
      tile.yield %n : f16
    }
    %ec = tile.connect %e <block> : tensor<32x64xf16>
    %o = tile.expr domain [32, 48, 64] reduce [2] (%ec, %c) maps [#left, #right] guards [unit, unit] into [#out]
        inits [0.0 : f32] dims [0, 3, 1] {micro_kernel = "mma_sync-16x8"}
        : (tensor<32x64xf16>, tensor<64x48xf16>) -> tensor<32x48xf32> {
    ^bb0(%l: f16, %m: f16, %acc: f32):
      %le = arith.extf %l : f16 to f32
      %me = arith.extf %m : f16 to f32
      %p = arith.mulf %le, %me : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
    tile.yield %o : tensor<32x48xf32>
  }
  return %r : tensor<32x48xf32>
}

// Lines that a contraction reads in place have whole steps along K, of 64 bytes: 50 elements take 64 and 8. Lines of
// accumulators have an odd number of 8-word pieces.
// CHECK-LABEL: tile.program @odd_chain
// CHECK-DAG: tile.alloc : <16x72xf16, block>
// CHECK-DAG: tile.alloc : <16x56xf32, block>
// CHECK-NOT: tile.alloc
func.func @odd_chain(%x: tensor<32x32xf16>, %v: tensor<32x50xf16>, %w: tensor<50x48xf16>) -> tensor<32x48xf32> {
  %r = tile.subprogram "odd_chain" (%x, %v, %w) extents [32, 50, 32, 48] tiles [16, 50, 32, 48] grid [0] vector 3 workgroups 2
      numerics <relaxed, fast> {tile.threads = 128 : i64, tile.group = 0 : i64}
      : (tensor<32x32xf16>, tensor<32x50xf16>, tensor<50x48xf16>) -> tensor<32x48xf32> {
  ^bb0(%a: tensor<32x32xf16>, %b: tensor<32x50xf16>, %c: tensor<50x48xf16>):
    %s = tile.expr domain [32, 50, 32] reduce [2] (%a, %b) maps [#left, #right] guards [unit, unit] into [#out]
        inits [0.0 : f32] dims [0, 1, 2] {micro_kernel = "mma_sync-16x8"}
        : (tensor<32x32xf16>, tensor<32x50xf16>) -> tensor<32x50xf32> {
    ^bb0(%l: f16, %m: f16, %acc: f32):
      %le = arith.extf %l : f16 to f32
      %me = arith.extf %m : f16 to f32
      %p = arith.mulf %le, %me : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
    %sc = tile.connect %s <block> : tensor<32x50xf32>
    %e = tile.expr domain [32, 50] reduce [] (%sc) maps [#id] guards [unit] into [#id] inits []
        dims [0, 1] : (tensor<32x50xf32>) -> tensor<32x50xf16> {
    ^bb0(%l: f32):
      %n = arith.truncf %l : f32 to f16
      tile.yield %n : f16
    }
    %ec = tile.connect %e <block> : tensor<32x50xf16>
    %o = tile.expr domain [32, 48, 50] reduce [2] (%ec, %c) maps [#left, #right] guards [unit, unit] into [#out]
        inits [0.0 : f32] dims [0, 3, 1] {micro_kernel = "mma_sync-16x8"}
        : (tensor<32x50xf16>, tensor<50x48xf16>) -> tensor<32x48xf32> {
    ^bb0(%l: f16, %m: f16, %acc: f32):
      %le = arith.extf %l : f16 to f32
      %me = arith.extf %m : f16 to f32
      %p = arith.mulf %le, %me : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
    tile.yield %o : tensor<32x48xf32>
  }
  return %r : tensor<32x48xf32>
}

#swap = affine_map<(i, j) -> (j, i)>

// The lanes of the part are those of its contraction, columns. An input of a nest beside it is contiguous along the
// other dim, and neighbouring threads take neighbours along that.
// CHECK-LABEL: tile.program @transposed
// CHECK: tile.compute [48, 64] sizes [48, 64] offsets {{.*}} vector 1 reduce []
// CHECK: tile.load %{{.*}} : <48x64xf32, global>
// CHECK: tile.compute [32, 48, 64] {{.*}} vector 1 reduce [2]
func.func @transposed(%x: tensor<32x64xf32>, %v: tensor<48x64xf32>) -> tensor<32x48xf32> {
  %r = tile.subprogram "transposed" (%x, %v) extents [32, 48, 64] tiles [16, 48, 64] grid [0] vector 1 workgroups 2
      numerics <relaxed, fast> {tile.threads = 128 : i64, tile.group = 0 : i64}
      : (tensor<32x64xf32>, tensor<48x64xf32>) -> tensor<32x48xf32> {
  ^bb0(%a: tensor<32x64xf32>, %b: tensor<48x64xf32>):
    %e = tile.expr domain [64, 48] reduce [] (%b) maps [#swap] guards [unit] into [#id] inits []
        dims [2, 1] : (tensor<48x64xf32>) -> tensor<64x48xf32> {
    ^bb0(%l: f32):
      %n = math.exp %l : f32
      tile.yield %n : f32
    }
    %ec = tile.connect %e <block> : tensor<64x48xf32>
    %o = tile.expr domain [32, 48, 64] reduce [2] (%a, %ec) maps [#left, #right] guards [unit, unit] into [#out]
        inits [0.0 : f32] dims [0, 1, 2] {micro_kernel = "fma-8x8"}
        : (tensor<32x64xf32>, tensor<64x48xf32>) -> tensor<32x48xf32> {
    ^bb0(%l: f32, %m: f32, %acc: f32):
      %p = arith.mulf %l, %m : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
    tile.yield %o : tensor<32x48xf32>
  }
  return %r : tensor<32x48xf32>
}

#keep = affine_map<(i, j) -> (i)>

// A mask that the plan stages for two nests has such lanes, too: lines of 64 elements of 2 bytes and 8 more.
// CHECK-LABEL: tile.program @masked
// CHECK-DAG: tile.alloc : <16x72xf32, block>
// CHECK-DAG: tile.alloc : <16x72xf16, block>
func.func @masked(%x: tensor<32x32xf16>, %v: tensor<32x64xf16>, %k: tensor<32x64xf16>) -> tensor<32x64xf32> {
  %r = tile.subprogram "masked" (%x, %v, %k) extents [32, 64, 32] tiles [16, 64, 32] grid [0] vector 1 workgroups 2
      numerics <relaxed, fast> {tile.staged = [#tile.lifetime<kernel>, #tile.lifetime<kernel>, #tile.lifetime<tile>],
       tile.threads = 128 : i64, tile.group = 0 : i64}
      : (tensor<32x32xf16>, tensor<32x64xf16>, tensor<32x64xf16>) -> tensor<32x64xf32> {
  ^bb0(%a: tensor<32x32xf16>, %b: tensor<32x64xf16>, %mask: tensor<32x64xf16>):
    %s = tile.expr domain [32, 64, 32] reduce [2] (%a, %b) maps [#left, #right] guards [unit, unit] into [#out]
        inits [0.0 : f32] dims [0, 1, 2] {micro_kernel = "mma_sync-16x8"}
        : (tensor<32x32xf16>, tensor<32x64xf16>) -> tensor<32x64xf32> {
    ^bb0(%l: f16, %m: f16, %acc: f32):
      %le = arith.extf %l : f16 to f32
      %me = arith.extf %m : f16 to f32
      %p = arith.mulf %le, %me : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
    %sc = tile.connect %s <block> : tensor<32x64xf32>
    %t = tile.expr domain [32, 64] reduce [1] (%sc, %mask) maps [#id, #id] guards [unit, unit] into [#keep]
        inits [0.0 : f32] dims [0, 1] : (tensor<32x64xf32>, tensor<32x64xf16>) -> tensor<32xf32> {
    ^bb0(%l: f32, %m: f16, %acc: f32):
      %me = arith.extf %m : f16 to f32
      %w = arith.addf %l, %me : f32
      %n = arith.addf %acc, %w : f32
      tile.yield %n : f32
    }
    %tc = tile.connect %t <block> : tensor<32xf32>
    %o = tile.expr domain [32, 64] reduce [] (%sc, %mask, %tc) maps [#id, #id, #keep] guards [unit, unit, unit]
        into [#id] inits [] dims [0, 1] : (tensor<32x64xf32>, tensor<32x64xf16>, tensor<32xf32>) -> tensor<32x64xf32> {
    ^bb0(%l: f32, %m: f16, %sum: f32):
      %me = arith.extf %m : f16 to f32
      %w = arith.addf %l, %me : f32
      %n = arith.subf %w, %sum : f32
      tile.yield %n : f32
    }
    tile.yield %o : tensor<32x64xf32>
  }
  return %r : tensor<32x64xf32>
}

// Accumulators over blocks of a dim, here of K, are in a buffer even if no nest reads them: the buffer takes no memory,
// because threads keep them in registers.
// CHECK-LABEL: tile.program @grown
// CHECK-NOT: tile.store {{.*}}, global>
// CHECK: scf.for
// CHECK-NOT: tile.store {{.*}}, global>
// CHECK: tile.compute [32, 48] sizes [16, 48]
// CHECK: tile.store {{.*}} : f32, <16x56xf32, block>
// CHECK-NOT: tile.store {{.*}}, global>
// CHECK: tile.compute [32, 48] sizes [16, 48]
// CHECK: tile.store {{.*}} : f32, <32x48xf32, global>
func.func @grown(%x: tensor<32x32xf16>, %v: tensor<32x64xf16>, %w: tensor<64x48xf16>) -> tensor<32x48xf32> {
  %r = tile.subprogram "grown" (%x, %v, %w) extents [32, 64, 32, 48] tiles [16, 32, 32, 48] grid [0] vector 3 workgroups 2
      numerics <relaxed, fast> {tile.threads = 128 : i64, tile.group = 0 : i64}
      : (tensor<32x32xf16>, tensor<32x64xf16>, tensor<64x48xf16>) -> tensor<32x48xf32> {
  ^bb0(%a: tensor<32x32xf16>, %b: tensor<32x64xf16>, %c: tensor<64x48xf16>):
    %s = tile.expr domain [32, 64, 32] reduce [2] (%a, %b) maps [#left, #right] guards [unit, unit] into [#out]
        inits [0.0 : f32] dims [0, 1, 2] {micro_kernel = "mma_sync-16x8"}
        : (tensor<32x32xf16>, tensor<32x64xf16>) -> tensor<32x64xf32> {
    ^bb0(%l: f16, %m: f16, %acc: f32):
      %le = arith.extf %l : f16 to f32
      %me = arith.extf %m : f16 to f32
      %p = arith.mulf %le, %me : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
    %sc = tile.connect %s <block> : tensor<32x64xf32>
    %e = tile.expr domain [32, 64] reduce [] (%sc) maps [#id] guards [unit] into [#id] inits []
        dims [0, 1] : (tensor<32x64xf32>) -> tensor<32x64xf16> {
    ^bb0(%l: f32):
      %n = arith.truncf %l : f32 to f16
      tile.yield %n : f16
    }
    %ec = tile.connect %e <block> : tensor<32x64xf16>
    %o = tile.expr domain [32, 48, 64] reduce [2] (%ec, %c) maps [#left, #right] guards [unit, unit] into [#out]
        inits [0.0 : f32] dims [0, 3, 1] {micro_kernel = "mma_sync-16x8"}
        : (tensor<32x64xf16>, tensor<64x48xf16>) -> tensor<32x48xf32> {
    ^bb0(%l: f16, %m: f16, %acc: f32):
      %le = arith.extf %l : f16 to f32
      %me = arith.extf %m : f16 to f32
      %p = arith.mulf %le, %me : f32
      %n = arith.addf %acc, %p : f32
      tile.yield %n : f32
    }
    tile.yield %o : tensor<32x48xf32>
  }
  return %r : tensor<32x48xf32>
}
