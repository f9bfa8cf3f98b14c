// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-schemes{target=cuda:h200}))' -o /dev/null 2>&1 | FileCheck %s

// Rows are short and many: each thread takes one.
// CHECK: remark: chosen: thread composition, {{.*}} 1 a row, tiles [128, 12]
// CHECK: remark: warp composition
func.func @thread_composition(%x: tensor<4096x12xf32>) -> tensor<4096xf32> {
  %zero = arith.constant dense<0.0> : tensor<4096xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<4096x12xf32>) outs(%zero : tensor<4096xf32>) dimensions = [1]
  return %s : tensor<4096xf32>
}

// Rows of 8 words would cause bank conflicts in the shared memory that a tile is copied through: two threads take one.
// CHECK: remark: chosen: warp composition, {{.*}} 2 a row, tiles [64, 8]
// CHECK: remark: thread composition, {{.*}} tiles [128, 8]
func.func @rows_that_meet_in_banks(%x: tensor<4096x8xf32>) -> tensor<4096xf32> {
  %zero = arith.constant dense<0.0> : tensor<4096xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<4096x8xf32>) outs(%zero : tensor<4096xf32>) dimensions = [1]
  return %s : tensor<4096xf32>
}

// The lanes of a warp share a longer row.
// CHECK: remark: chosen: warp composition, {{.*}} 8 a row, tiles [16, 128]
// CHECK: remark: thread composition, {{.*}} 1 a row
func.func @warp_composition(%x: tensor<4096x128xf32>) -> tensor<4096xf32> {
  %zero = arith.constant dense<0.0> : tensor<4096xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<4096x128xf32>) outs(%zero : tensor<4096xf32>) dimensions = [1]
  return %s : tensor<4096xf32>
}

// All warps of a block share a row if rows are long and few.
// CHECK: remark: chosen: block composition, 40 blocks of 512 threads, 512 a row, tiles [1, 8192]
// CHECK: remark: thread composition
// CHECK: remark: warp composition
func.func @block_composition(%x: tensor<40x8192xf32>) -> tensor<40xf32> {
  %zero = arith.constant dense<0.0> : tensor<40xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<40x8192xf32>) outs(%zero : tensor<40xf32>) dimensions = [1]
  return %s : tensor<40xf32>
}

// Small independent groups share a launch.
// CHECK: remark: kernel {{.*}} packs or orders 2 parts
// CHECK: remark: chosen: points, {{.*}} tiles [8, 64]
// CHECK: remark: chosen: points, {{.*}} tiles [4, 96]
func.func @kernel_packing(%x: tensor<37x64xf32>, %y: tensor<41x96xf32>) -> (tensor<37x64xf32>, tensor<41x96xf32>) {
  %a = tensor.empty() : tensor<37x64xf32>
  %b = tensor.empty() : tensor<41x96xf32>
  %p = linalg.exp ins(%x : tensor<37x64xf32>) outs(%a : tensor<37x64xf32>) -> tensor<37x64xf32>
  %q = linalg.exp ins(%y : tensor<41x96xf32>) outs(%b : tensor<41x96xf32>) -> tensor<41x96xf32>
  return %p, %q : tensor<37x64xf32>, tensor<41x96xf32>
}

// Each large group fills the device alone.
// CHECK-NOT: packs or orders
// CHECK: remark: chosen: points, {{.*}} tiles [2, 640]
// CHECK: remark: chosen: points, {{.*}} tiles [1, 960]
func.func @no_kernel_packing(%x: tensor<37000x640xf32>, %y: tensor<41000x960xf32>)
    -> (tensor<37000x640xf32>, tensor<41000x960xf32>) {
  %a = tensor.empty() : tensor<37000x640xf32>
  %b = tensor.empty() : tensor<41000x960xf32>
  %p = linalg.exp ins(%x : tensor<37000x640xf32>) outs(%a : tensor<37000x640xf32>) -> tensor<37000x640xf32>
  %q = linalg.exp ins(%y : tensor<41000x960xf32>) outs(%b : tensor<41000x960xf32>) -> tensor<41000x960xf32>
  return %p, %q : tensor<37000x640xf32>, tensor<41000x960xf32>
}

// Larger blocks read an input of all rows less often; the time is that of reading the rows.
// CHECK: remark: chosen: points, {{.*}} tiles [16, 4096]
func.func @rows_share_a_gain(%x: tensor<2048x4096xf32>, %gain: tensor<4096xf32>) -> tensor<2048x4096xf32> {
  %empty = tensor.empty() : tensor<2048x4096xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                        affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %gain : tensor<2048x4096xf32>, tensor<4096xf32>) outs(%empty : tensor<2048x4096xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<2048x4096xf32>
  return %y : tensor<2048x4096xf32>
}

// A block takes all heads of a row, so that it reads a row of the mask once.
// CHECK: remark: chosen: warp composition, 512 blocks {{.*}} tiles [12, 1, 256]
func.func @heads_share_a_mask(%x: tensor<12x512x256xf32>, %mask: tensor<512x256xf32>) -> tensor<12x512xf32> {
  %zero = arith.constant dense<0.0> : tensor<12x512xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, i, j)>, affine_map<(h, i, j) -> (i, j)>,
                                        affine_map<(h, i, j) -> (h, i)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %mask : tensor<12x512x256xf32>, tensor<512x256xf32>) outs(%zero : tensor<12x512xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.maximumf %a, %b : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  } -> tensor<12x512xf32>
  return %s : tensor<12x512xf32>
}

// Tiles of a contraction with every number of threads: the one that is chosen is fastest, or has less L2 traffic.
// CHECK: remark: chosen: contraction, 96 blocks of 256 threads, tiles [128, 768, 128]: {{.*}} us, 1 waves, {{.*}} MB requested of L2
func.func @sums(%x: tensor<512x768xf16>, %w: tensor<768x3072xf16>) -> tensor<512x3072xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x3072xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<512x3072xf32>) -> tensor<512x3072xf32>
  %s = linalg.matmul ins(%x, %w : tensor<512x768xf16>, tensor<768x3072xf16>) outs(%z : tensor<512x3072xf32>) -> tensor<512x3072xf32>
  return %s : tensor<512x3072xf32>
}

// Few rows: columns are cut into small tiles, so that there are enough blocks, and warps share K.
// CHECK: remark: chosen: contraction, {{[1-9][0-9][0-9]}} blocks of {{.*}} slices of K, tiles [4096, {{16|32}}]
func.func @few_rows(%x: tensor<1x4096xf16>, %w: tensor<4096x4096xf16>) -> tensor<1x4096xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4096xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  %s = linalg.matmul ins(%x, %w : tensor<1x4096xf16>, tensor<4096x4096xf16>) outs(%z : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  return %s : tensor<1x4096xf32>
}
