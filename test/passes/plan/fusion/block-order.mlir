// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-block-order{target=x86-64-avx512 cores=2}))' --split-input-file 2>&1 | FileCheck %s
// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-print-block-order{target=x86-64-avx512 cores=2 online}))' --split-input-file 2>&1 | FileCheck %s --check-prefix=ONLINE

// Two matmuls share rows and an intermediate; the output is the traffic at each level, fused and for each alone.
// CHECK: chain: loops 1.0=512 1.1=768 1.2=640 0.2=384; of_op0[1.0,1.2] from in0[1.0,0.2] in1[0.2,1.2]; of_op1[1.0,1.1] from of_op0[1.0,1.2] in3[1.2,1.1]
// CHECK: fused: L1: {{.*}} moves {{.*}} B, keeps {{.*}} B; L2: {{.*}}; L3: {{.*}}; {{.*}} us, bound by arithmetic
// CHECK: apart, op0: L1:
// CHECK: apart, op1: L1:
// CHECK: one kernel {{.*}} us, apart {{.*}} us
func.func @gemm_chain(%a: tensor<512x384xf32>, %b: tensor<384x640xf32>, %d: tensor<640x768xf32>) -> tensor<512x768xf32> {
  %zero = arith.constant 0.0 : f32
  %ce = tensor.empty() : tensor<512x640xf32>
  %ci = linalg.fill ins(%zero : f32) outs(%ce : tensor<512x640xf32>) -> tensor<512x640xf32>
  %ee = tensor.empty() : tensor<512x768xf32>
  %ei = linalg.fill ins(%zero : f32) outs(%ee : tensor<512x768xf32>) -> tensor<512x768xf32>
  %c = linalg.matmul ins(%a, %b : tensor<512x384xf32>, tensor<384x640xf32>) outs(%ci : tensor<512x640xf32>) -> tensor<512x640xf32>
  %e = linalg.matmul ins(%c, %d : tensor<512x640xf32>, tensor<640x768xf32>) outs(%ei : tensor<512x768xf32>) -> tensor<512x768xf32>
  return %e : tensor<512x768xf32>
}

// -----

// Elementwise ops between matmuls are not operators of the chain; their other inputs come in with the second matmul.
// CHECK: chain: loops 2.0=512 2.1=768 2.2=640 0.2=384; {{.*}}; of_op2[2.0,2.1] from of_op0[2.0,2.2] in3[2.2,2.1] in4[2.2]
func.func @relu_between(%a: tensor<512x384xf32>, %b: tensor<384x640xf32>, %d: tensor<640x768xf32>, %bias: tensor<640xf32>) -> tensor<512x768xf32> {
  %zero = arith.constant 0.0 : f32
  %ce = tensor.empty() : tensor<512x640xf32>
  %ci = linalg.fill ins(%zero : f32) outs(%ce : tensor<512x640xf32>) -> tensor<512x640xf32>
  %ee = tensor.empty() : tensor<512x768xf32>
  %ei = linalg.fill ins(%zero : f32) outs(%ee : tensor<512x768xf32>) -> tensor<512x768xf32>
  %c = linalg.matmul ins(%a, %b : tensor<512x384xf32>, tensor<384x640xf32>) outs(%ci : tensor<512x640xf32>) -> tensor<512x640xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%c, %bias : tensor<512x640xf32>, tensor<640xf32>) outs(%ce : tensor<512x640xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %m = arith.maximumf %s, %zero : f32
    linalg.yield %m : f32
  } -> tensor<512x640xf32>
  %e = linalg.matmul ins(%r, %d : tensor<512x640xf32>, tensor<640x768xf32>) outs(%ei : tensor<512x768xf32>) -> tensor<512x768xf32>
  return %e : tensor<512x768xf32>
}

// -----

// The softmax reduces over the loop that the second matmul reduces, and waits for all of it, unless it is online. The
// batch is outermost, one index at a time. Unfused, the scores are moved; fused, they are not.
// CHECK: chain: loops 8.0=12 8.1=512 8.2=64 8.3=512 (whole) 0.3=64; of_op0[8.0,8.1,8.3] from in0[8.0,8.1,0.3] in1[8.0,0.3,8.3]; of_op8[8.0,8.1,8.2] from of_op0[8.0,8.1,8.3] in3[8.0,8.3,8.2]
// CHECK: fused: L1: 8.0:1 {{.*}} L3: {{.*}} moves 7864320 B
// CHECK: apart, op0: {{.*}} L3: {{.*}} moves 28311552 B
// ONLINE: chain: loops 8.0=12 8.1=512 8.2=64 8.3=512 0.3=64
func.func @softmax_between(%q: tensor<12x512x64xf32>, %k: tensor<12x64x512xf32>, %v: tensor<12x512x64xf32>) -> tensor<12x512x64xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %se = tensor.empty() : tensor<12x512x512xf32>
  %si = linalg.fill ins(%zero : f32) outs(%se : tensor<12x512x512xf32>) -> tensor<12x512x512xf32>
  %re = tensor.empty() : tensor<12x512xf32>
  %mi = linalg.fill ins(%low : f32) outs(%re : tensor<12x512xf32>) -> tensor<12x512xf32>
  %ti = linalg.fill ins(%zero : f32) outs(%re : tensor<12x512xf32>) -> tensor<12x512xf32>
  %ye = tensor.empty() : tensor<12x512x64xf32>
  %yi = linalg.fill ins(%zero : f32) outs(%ye : tensor<12x512x64xf32>) -> tensor<12x512x64xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<12x512x64xf32>, tensor<12x64x512xf32>) outs(%si : tensor<12x512x512xf32>) -> tensor<12x512x512xf32>
  %m = linalg.reduce { arith.maximumf } ins(%s : tensor<12x512x512xf32>) outs(%mi : tensor<12x512xf32>) dimensions = [2]
  %mb = linalg.broadcast ins(%m : tensor<12x512xf32>) outs(%se : tensor<12x512x512xf32>) dimensions = [2]
  %x = linalg.sub ins(%s, %mb : tensor<12x512x512xf32>, tensor<12x512x512xf32>) outs(%se : tensor<12x512x512xf32>) -> tensor<12x512x512xf32>
  %p = linalg.exp ins(%x : tensor<12x512x512xf32>) outs(%se : tensor<12x512x512xf32>) -> tensor<12x512x512xf32>
  %t = linalg.reduce { arith.addf } ins(%p : tensor<12x512x512xf32>) outs(%ti : tensor<12x512xf32>) dimensions = [2]
  %tb = linalg.broadcast ins(%t : tensor<12x512xf32>) outs(%se : tensor<12x512x512xf32>) dimensions = [2]
  %w = linalg.div ins(%p, %tb : tensor<12x512x512xf32>, tensor<12x512x512xf32>) outs(%se : tensor<12x512x512xf32>) -> tensor<12x512x512xf32>
  %y = linalg.batch_matmul ins(%w, %v : tensor<12x512x512xf32>, tensor<12x512x64xf32>) outs(%yi : tensor<12x512x64xf32>) -> tensor<12x512x64xf32>
  return %y : tensor<12x512x64xf32>
}

// -----

// A window index is a sum of loops; the rows of the first convolution are those of the second, with a stride of two.
// CHECK: chain: loops 1.1=28 1.2=28 1.3=64 1.6=128 0.4=3 0.5=3 0.6=64; of_op0[2*1.1,2*1.2,1.6] from in0[2*1.1+0.4,2*1.2+0.5,0.6] in1[0.4,0.5,0.6,1.6]; of_op1[1.1,1.2,1.3] from of_op0[2*1.1,2*1.2,1.6] in3[1.6,1.3]
func.func @convolutions(%x: tensor<1x58x58x64xf32>, %w: tensor<3x3x64x128xf32>, %v: tensor<1x1x128x64xf32>) -> tensor<1x28x28x64xf32> {
  %zero = arith.constant 0.0 : f32
  %ce = tensor.empty() : tensor<1x56x56x128xf32>
  %ci = linalg.fill ins(%zero : f32) outs(%ce : tensor<1x56x56x128xf32>) -> tensor<1x56x56x128xf32>
  %ee = tensor.empty() : tensor<1x28x28x64xf32>
  %ei = linalg.fill ins(%zero : f32) outs(%ee : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  %c = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x58x58x64xf32>, tensor<3x3x64x128xf32>) outs(%ci : tensor<1x56x56x128xf32>) -> tensor<1x56x56x128xf32>
  %e = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : vector<2xi64>} ins(%c, %v : tensor<1x56x56x128xf32>, tensor<1x1x128x64xf32>) outs(%ei : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  return %e : tensor<1x28x28x64xf32>
}

// -----

// CHECK-NOT: chain: loops
// CHECK: no longer chain: the result of op0 is also read elsewhere
// CHECK-NOT: remark
func.func @a_result_that_leaves_ends_the_chain(%a: tensor<64x32xf32>, %b: tensor<32x48xf32>, %d: tensor<48x16xf32>) -> (tensor<64x48xf32>, tensor<64x16xf32>) {
  %zero = arith.constant dense<0.0> : tensor<64x48xf32>
  %none = arith.constant dense<0.0> : tensor<64x16xf32>
  %c = linalg.matmul ins(%a, %b : tensor<64x32xf32>, tensor<32x48xf32>) outs(%zero : tensor<64x48xf32>) -> tensor<64x48xf32>
  %e = linalg.matmul ins(%c, %d : tensor<64x48xf32>, tensor<48x16xf32>) outs(%none : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %c, %e : tensor<64x48xf32>, tensor<64x16xf32>
}

// -----

func.func @alone(%a: tensor<64x32xf32>, %b: tensor<32x48xf32>) -> tensor<64x48xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x48xf32>
  %c = linalg.matmul ins(%a, %b : tensor<64x32xf32>, tensor<32x48xf32>) outs(%zero : tensor<64x48xf32>) -> tensor<64x48xf32>
  return %c : tensor<64x48xf32>
}
