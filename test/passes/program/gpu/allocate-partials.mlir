// RUN: tilewright-opt %s --tile-allocate-partials=target=cuda:h200 --split-input-file | FileCheck %s
// RUN: tilewright-opt %s --tile-allocate-partials=target=cuda:h200 --tile-convert-to-gpu=target=cuda:h200 --split-input-file | FileCheck %s --check-prefix=CODE

#rows = affine_map<(m, n, k)[s0, s1, s2] -> (m, k)>
#lanes = affine_map<(m, n, k)[s0, s1, s2] -> (k, n)>
#out = affine_map<(m, n, k)[s0, s1, s2] -> (m, n)>

// Two tiles with four steps of K = 64 for three workgroups: each has a row of 64 accumulators of 128 threads.
// CHECK-LABEL: tile.program @three_for_two outputs 2
// CHECK-SAME: {
// CHECK-NEXT: ^bb0({{.*}}, %[[PARTIALS:.*]]: !tile.slice<3x16x128x4xf32, global>):
// CHECK-NEXT: tile.parallel [128, 128] tiles [64, 128] workgroups 3 steps 4 partials %[[PARTIALS]] : !tile.slice<3x16x128x4xf32, global>
// CHECK: %[[Y:.*]]:2 = tile.launch @three_for_two
// CHECK-SAME: -> (tensor<128x128xf32>, tensor<3x16x128x4xf32>)
// CHECK: return %[[Y]]#0

// A workgroup walks its tiles, and its steps of each; behind its last tile, a grid barrier waits for all partials.
// CODE-LABEL: func.func @three_for_two
// CODE: scf.for
// CODE:   nvvm.wgmma.mma_async
// CODE:   scf.if
// CODE:     vector.store {{.*}} memref<3x16x128x4xf32
// CODE:   scf.if
// CODE-NEXT: llvm.mlir.addressof @three_for_two_grid_counter
// CODE:     llvm.call @tile_grid_barrier
// CODE:   scf.if
// CODE:     scf.for
// CODE:       vector.load {{.*}} memref<3x16x128x4xf32
// CODE:     vector.store {{.*}} memref<128x128xf32
// CODE-NOT: tile_grid_barrier
// CODE: return
module {
tile.program @three_for_two outputs 1 {
^bb0(%a: !tile.slice<128x256xf16, global>, %b: !tile.slice<256x128xf16, global>, %y: !tile.slice<128x128xf32, global>):
  tile.parallel [128, 128] tiles [64, 128] workgroups 3 steps 4 attributes {tile.threads = 128 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [128, 128, 256] sizes [64, 128, 256] offsets [0, 1] (%i, %j) vector 1 reduce [2]
        into (%y : !tile.slice<128x128xf32, global>) at [#out] inits [0.0 : f32] kinds ["add"]
        attributes {micro_kernel = "wgmma-64x8", gemm = #tile.gemm<m = 1, n = 1, step = 64, stages = 4>} {
    ^bb0(%s: f32):
      %u = tile.load %a at #rows : !tile.slice<128x256xf16, global> -> f16
      %v = tile.load %b at #lanes : !tile.slice<256x128xf16, global> -> f16
      %ue = arith.extf %u : f16 to f32
      %ve = arith.extf %v : f16 to f32
      %p = arith.mulf %ue, %ve : f32
      %n = arith.addf %s, %p : f32
      tile.yield %n : f32
    }
  }
  }
}
func.func @f(%a: tensor<128x256xf16>, %b: tensor<256x128xf16>) -> tensor<128x128xf32> {
  %y = tile.launch @three_for_two(%a, %b) : (tensor<128x256xf16>, tensor<256x128xf16>) -> tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}
}
