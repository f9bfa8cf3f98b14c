// RUN: tilewright-opt %s --allow-unregistered-dialect --split-input-file --remark-format=emitRemark \
// RUN:   --remarks-filter=tile-store-weights \
// RUN:   --pass-pipeline='builtin.module(func.func(tile-pack-weights{target=x86-64-avx512}),tile-store-weights{scopes=model recipes=-})' \
// RUN:   2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
// RUN: tilewright-opt %s --allow-unregistered-dialect --split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(tile-pack-weights{target=x86-64-avx512}),tile-store-weights{scopes=model})' \
// RUN:   | FileCheck %s --check-prefix=PLAIN

// Columns are padded to whole blocks and split into blocks, with the reduced dim inside them; pairs of bf16 are
// adjacent. The plain weight is not read any more.
// REMARK: stored as model::w/packed-2x3x64x2: transpose(reshape(pad(model::w : 5x70, low 0x0) : 6x128) : 3x2x2x64, order 2x0x3x1) : 2x3x64x2
// CHECK: "element_bytes": 2
// CHECK: "name": "w/packed-2x3x64x2"
// CHECK: "low": [
// CHECK: "name": "w"
// CHECK: "step": "parameter"
// CHECK: "step": "pad"
// CHECK: "step": "reshape"
// CHECK: "order": [
// CHECK: "step": "transpose"
// CHECK: "type": "bf16"
// CHECK: "unused": [
// CHECK: "name": "w"
// CHECK-NOT: sym_name = "w"
// CHECK: "util.global"() <{initial_value = #stream.parameter.named<"model"::"w/packed-2x3x64x2"> : tensor<2x3x64x2xbf16>, sym_name = "w_packed", sym_visibility = "private", type = tensor<2x3x64x2xbf16>}>
// CHECK-LABEL: func.func @pads
// CHECK: %[[W:.*]] = "util.global.load"() <{global = @w_packed}>
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[W]]
// Recipes are written only if a converter will apply them.
// PLAIN-LABEL: func.func @pads
// PLAIN: "util.global.load"() <{global = @w}>
// PLAIN: tensor.pad
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<5x70xbf16>, sym_name = "w", sym_visibility = "private", type = tensor<5x70xbf16>}> : () -> ()
func.func @pads(%a: tensor<9x5xbf16>) -> tensor<9x70xf32> {
  %w = "util.global.load"() <{global = @w}> : () -> tensor<5x70xbf16>
  %z = arith.constant dense<0.0> : tensor<9x70xf32>
  %m = linalg.matmul ins(%a, %w : tensor<9x5xbf16>, tensor<5x70xbf16>) outs(%z : tensor<9x70xf32>) -> tensor<9x70xf32>
  return %m : tensor<9x70xf32>
}

// -----

// If two contractions read one weight in one layout, it is stored once; so is a weight that repeats along a batch.
// REMARK: stored as model::w/packed-1x5x64: transpose(reshape(model::w : 5x64) : 5x1x64, order 1x0x2) : 1x5x64
// REMARK: stored as model::w/packed-1x5x64:
// CHECK: "name": "w/packed-1x5x64"
// CHECK-NOT: "step": "transpose"{{.*}}"name": "w/packed
// CHECK-LABEL: func.func @shared
// CHECK-COUNT-2: "util.global.load"() <{global = @w_packed}>
// CHECK-NOT: util.global.load
// CHECK: return
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<5x64xf32>, sym_name = "w", sym_visibility = "private", type = tensor<5x64xf32>}> : () -> ()
func.func @shared(%a: tensor<9x5xf32>, %b: tensor<3x9x5xf32>) -> (tensor<9x64xf32>, tensor<3x9x64xf32>) {
  %w = "util.global.load"() <{global = @w}> : () -> tensor<5x64xf32>
  %z = arith.constant dense<0.0> : tensor<9x64xf32>
  %y = arith.constant dense<0.0> : tensor<3x9x64xf32>
  %e = tensor.empty() : tensor<3x5x64xf32>
  %repeated = linalg.generic {indexing_maps = [affine_map<(b, k, j) -> (k, j)>, affine_map<(b, k, j) -> (b, k, j)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w : tensor<5x64xf32>) outs(%e : tensor<3x5x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<3x5x64xf32>
  %m = linalg.matmul ins(%a, %w : tensor<9x5xf32>, tensor<5x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %n = linalg.batch_matmul ins(%b, %repeated : tensor<3x9x5xf32>, tensor<3x5x64xf32>) outs(%y : tensor<3x9x64xf32>) -> tensor<3x9x64xf32>
  return %m, %n : tensor<9x64xf32>, tensor<3x9x64xf32>
}

// -----

// A weight that is also read as it is, like tied embeddings, stays in the file beside its packed form.
// CHECK: "name": "w/packed-2x5x64"
// CHECK: "unused": []
// CHECK: sym_name = "w",
// CHECK-LABEL: func.func @tied
// CHECK: "util.global.load"() <{global = @w}>
// CHECK: "util.global.load"() <{global = @w_packed}>
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<128x5xf32>, sym_name = "w", sym_visibility = "private", type = tensor<128x5xf32>}> : () -> ()
func.func @tied(%a: tensor<9x5xf32>, %b: tensor<128x5xf32>) -> (tensor<9x128xf32>, tensor<128x5xf32>) {
  %w = "util.global.load"() <{global = @w}> : () -> tensor<128x5xf32>
  %z = arith.constant dense<0.0> : tensor<9x128xf32>
  %m = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%a, %w : tensor<9x5xf32>, tensor<128x5xf32>) outs(%z : tensor<9x128xf32>) -> tensor<9x128xf32>
  %s = linalg.add ins(%b, %w : tensor<128x5xf32>, tensor<128x5xf32>) outs(%b : tensor<128x5xf32>) -> tensor<128x5xf32>
  return %m, %s : tensor<9x128xf32>, tensor<128x5xf32>
}

// -----

// Two merged weights become one parameter.
// REMARK: stored as model::v/packed-2x5x64: transpose(reshape(concat(model::v : 5x64, model::w : 5x64, axis 1) : 5x128) : 5x2x64, order 1x0x2) : 2x5x64
// CHECK: "axis": 1
// CHECK: "unused": [
// CHECK-DAG: "name": "v"
// CHECK-DAG: "name": "w"
// CHECK-LABEL: func.func @side_by_side
"util.global"() <{initial_value = #stream.parameter.named<"model"::"v"> : tensor<5x64xf32>, sym_name = "v", sym_visibility = "private", type = tensor<5x64xf32>}> : () -> ()
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<5x64xf32>, sym_name = "w", sym_visibility = "private", type = tensor<5x64xf32>}> : () -> ()
func.func @side_by_side(%a: tensor<9x5xf32>) -> tensor<9x128xf32> {
  %v = "util.global.load"() <{global = @v}> : () -> tensor<5x64xf32>
  %w = "util.global.load"() <{global = @w}> : () -> tensor<5x64xf32>
  %c = tensor.concat dim(1) %v, %w : (tensor<5x64xf32>, tensor<5x64xf32>) -> tensor<5x128xf32>
  %z = arith.constant dense<0.0> : tensor<9x128xf32>
  %m = linalg.matmul ins(%a, %c : tensor<9x5xf32>, tensor<5x128xf32>) outs(%z : tensor<9x128xf32>) -> tensor<9x128xf32>
  return %m : tensor<9x128xf32>
}

// -----

// Packed at load: a parameter whose file is not available, a weight computed from others first, and a constant.
// REMARK: computed each time the program is loaded: the parameter file of scope 'other' cannot be rewritten
// REMARK: computed each time the program is loaded: it is not made of parameters by movement and constant matrices only
// REMARK: computed each time the program is loaded: it is not made of parameters by movement and constant matrices only
// CHECK: "parameters": []
// CHECK: "unused": []
// CHECK-LABEL: func.func @leaves
// CHECK: "util.global.load"() <{global = @foreign}>
// CHECK: "util.global.load"() <{global = @w}>
// CHECK: linalg.exp
// CHECK-NOT: tile.packed_weight
"util.global"() <{initial_value = #stream.parameter.named<"other"::"foreign"> : tensor<5x64xf32>, sym_name = "foreign", sym_visibility = "private", type = tensor<5x64xf32>}> : () -> ()
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<5x64xf32>, sym_name = "w", sym_visibility = "private", type = tensor<5x64xf32>}> : () -> ()
func.func @leaves(%a: tensor<9x5xf32>) -> (tensor<9x64xf32>, tensor<9x64xf32>, tensor<9x64xf32>) {
  %u = "util.global.load"() <{global = @foreign}> : () -> tensor<5x64xf32>
  %w = "util.global.load"() <{global = @w}> : () -> tensor<5x64xf32>
  %c = arith.constant dense_resource<weights> : tensor<5x64xf32>
  %e = tensor.empty() : tensor<5x64xf32>
  %v = linalg.exp ins(%w : tensor<5x64xf32>) outs(%e : tensor<5x64xf32>) -> tensor<5x64xf32>
  %z = arith.constant dense<0.0> : tensor<9x64xf32>
  %0 = linalg.matmul ins(%a, %u : tensor<9x5xf32>, tensor<5x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %1 = linalg.matmul ins(%a, %v : tensor<9x5xf32>, tensor<5x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  %2 = linalg.matmul ins(%a, %c : tensor<9x5xf32>, tensor<5x64xf32>) outs(%z : tensor<9x64xf32>) -> tensor<9x64xf32>
  return %0, %1, %2 : tensor<9x64xf32>, tensor<9x64xf32>, tensor<9x64xf32>
}
