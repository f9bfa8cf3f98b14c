// RUN: tilewright-opt %s --allow-unregistered-dialect --remark-format=emitRemark --remarks-filter=tile-store-weights \
// RUN:   --pass-pipeline='builtin.module(func.func(tile-pack-weights{target=x86-64-avx2}),tile-store-weights{scopes=model recipes=-})' \
// RUN:   2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// Products of one weight with two matrices are two weights. What is more than such a product is computed at load.
// REMARK-DAG: stored as model::w/packed-{{.*}}: {{.*}}product(model::w : 4x64, matrix of 4 rows) : 4x64
// REMARK-DAG: stored as model::w/packed-{{.*}}-1: {{.*}}product(model::w : 4x64, matrix of 4 rows) : 4x64
// REMARK-DAG: computed each time the program is loaded: it is not made of parameters by movement and constant matrices only
// CHECK-LABEL: func.func @products
#rows = affine_map<(i, j, k) -> (i, k)>
#columns = affine_map<(i, j, k) -> (k, j)>
#sums = affine_map<(i, j, k) -> (i, j)>
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<4x64xf32>, sym_name = "w", sym_visibility = "private", type = tensor<4x64xf32>}> : () -> ()
func.func @products(%x: tensor<64x4xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %w = "util.global.load"() <{global = @w}> : () -> tensor<4x64xf32>
  %a = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [0.0, 2.0, 3.0, 4.0], [1.0, 0.0, 3.0, 4.0], [1.0, 2.0, 0.0, 4.0]]> : tensor<4x4xf32>
  %b = arith.constant dense<[[9.0, 2.0, 3.0, 4.0], [0.0, 9.0, 3.0, 4.0], [1.0, 0.0, 9.0, 4.0], [1.0, 2.0, 0.0, 9.0]]> : tensor<4x4xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x64xf32>) -> tensor<4x64xf32>
  %wide = tensor.empty() : tensor<64x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%wide : tensor<64x64xf32>) -> tensor<64x64xf32>
  %p = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %w : tensor<4x4xf32>, tensor<4x64xf32>) outs(%zeros : tensor<4x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x64xf32>
  %q = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%b, %w : tensor<4x4xf32>, tensor<4x64xf32>) outs(%zeros : tensor<4x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x64xf32>
  %r = linalg.generic {indexing_maps = [#rows, #columns, #sums], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %w : tensor<4x4xf32>, tensor<4x64xf32>) outs(%zeros : tensor<4x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %f = math.absf %j : f32
    %m = arith.mulf %i, %f : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x64xf32>
  %py = linalg.matmul ins(%x, %p : tensor<64x4xf32>, tensor<4x64xf32>) outs(%start : tensor<64x64xf32>) -> tensor<64x64xf32>
  %qy = linalg.matmul ins(%x, %q : tensor<64x4xf32>, tensor<4x64xf32>) outs(%start : tensor<64x64xf32>) -> tensor<64x64xf32>
  %ry = linalg.matmul ins(%x, %r : tensor<64x4xf32>, tensor<4x64xf32>) outs(%start : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %py, %qy, %ry : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}
