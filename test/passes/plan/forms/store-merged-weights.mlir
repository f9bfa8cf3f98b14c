// RUN: tilewright-opt %s --allow-unregistered-dialect --split-input-file --remark-format=emitRemark \
// RUN:   --remarks-filter=tile-store-weights \
// RUN:   --pass-pipeline='builtin.module(func.func(tile-merge-contractions{target=x86-64-avx512},tile-pack-weights{target=x86-64-avx512}),tile-store-weights{scopes=model recipes=-})' \
// RUN:   2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// If projections share an input, their weights become one parameter, and so do their biases; the program does not read
// the model's own parameters any more.
// REMARK: stored as model::v/packed-2x1x5x64: {{.*}}concat(reshape(model::v : 5x64) : 5x1x64, reshape(model::w : 5x64) : 5x1x64, axis 1)
// REMARK: stored as model::b/packed-2x64: concat(reshape(model::b : 64) : 1x64, reshape(model::c : 64) : 1x64, axis 0) : 2x64
// CHECK: "unused": [
// CHECK-DAG: "name": "b"
// CHECK-DAG: "name": "c"
// CHECK-DAG: "name": "v"
// CHECK-DAG: "name": "w"
// CHECK-LABEL: func.func @projections
// CHECK-COUNT-2: "util.global.load"
// CHECK-NOT: "util.global.load"
// CHECK-NOT: tensor.concat
// CHECK: return
"util.global"() <{initial_value = #stream.parameter.named<"model"::"v"> : tensor<5x64xf32>, sym_name = "v", sym_visibility = "private", type = tensor<5x64xf32>}> : () -> ()
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<5x64xf32>, sym_name = "w", sym_visibility = "private", type = tensor<5x64xf32>}> : () -> ()
"util.global"() <{initial_value = #stream.parameter.named<"model"::"b"> : tensor<64xf32>, sym_name = "b", sym_visibility = "private", type = tensor<64xf32>}> : () -> ()
"util.global"() <{initial_value = #stream.parameter.named<"model"::"c"> : tensor<64xf32>, sym_name = "c", sym_visibility = "private", type = tensor<64xf32>}> : () -> ()
#rows = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>
func.func @projections(%x: tensor<9x5xf32>) -> (tensor<9x64xf32>, tensor<9x64xf32>) {
  %v = "util.global.load"() <{global = @v}> : () -> tensor<5x64xf32>
  %b = "util.global.load"() <{global = @b}> : () -> tensor<64xf32>
  %e = tensor.empty() : tensor<9x64xf32>
  %z = arith.constant dense<0.0> : tensor<9x64xf32>
  %0 = linalg.matmul ins(%x, %v : tensor<9x5xf32>, tensor<5x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %1 = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%0, %b : tensor<9x64xf32>, tensor<64xf32>) outs(%e : tensor<9x64xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<9x64xf32>
  %w = "util.global.load"() <{global = @w}> : () -> tensor<5x64xf32>
  %c = "util.global.load"() <{global = @c}> : () -> tensor<64xf32>
  %2 = linalg.matmul ins(%x, %w : tensor<9x5xf32>, tensor<5x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %3 = linalg.generic {indexing_maps = [#rows, #columns, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%2, %c : tensor<9x64xf32>, tensor<64xf32>) outs(%e : tensor<9x64xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<9x64xf32>
  return %1, %3 : tensor<9x64xf32>, tensor<9x64xf32>
}

// -----

// A weight that is a constant of the module is merged with a parameter, too; IREE concatenates them at load.
// REMARK: computed each time the program is loaded: it is not made of parameters by movement and constant matrices only
// CHECK: "parameters": []
// CHECK-LABEL: func.func @constant
// CHECK: "util.global.load"() <{global = @v}>
// CHECK: tensor.concat
"util.global"() <{initial_value = #stream.parameter.named<"model"::"v"> : tensor<5x64xf32>, sym_name = "v", sym_visibility = "private", type = tensor<5x64xf32>}> : () -> ()
func.func @constant(%x: tensor<9x5xf32>) -> (tensor<9x64xf32>, tensor<9x64xf32>) {
  %v = "util.global.load"() <{global = @v}> : () -> tensor<5x64xf32>
  %w = arith.constant dense_resource<w> : tensor<5x64xf32>
  %z = arith.constant dense<0.0> : tensor<9x64xf32>
  %0 = linalg.matmul ins(%x, %v : tensor<9x5xf32>, tensor<5x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<9x5xf32>, tensor<5x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  return %0, %1 : tensor<9x64xf32>, tensor<9x64xf32>
}
