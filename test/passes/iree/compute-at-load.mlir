// RUN: tilewright-opt %s --split-input-file --allow-unregistered-dialect --tile-compute-at-load | FileCheck %s

// What a launch reads of weights and constants alone is computed by an initializer and loaded from a global. A function
// returns the values. The initializer is in front of the function, where IREE puts those that read the values.
// CHECK: "util.global"() <{sym_name = "reads_a_scaled_weight$at_load_0", sym_visibility = "private", type = tensor<3xf32>}>
// CHECK: "util.initializer"() <{function_type = () -> ()}> ({
// CHECK-DAG: %[[W:.*]] = "util.global.load"() <{global = @w}>
// CHECK-DAG: %[[C:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]>
// CHECK: %[[VALUE:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[C]]
// CHECK: "util.global.store"(%[[VALUE]]) <{global = @reads_a_scaled_weight$at_load_0}>
// CHECK-LABEL: func.func @reads_a_scaled_weight
// CHECK: %[[SCALED:.*]] = "util.global.load"() <{global = @reads_a_scaled_weight$at_load_0}>
// CHECK-NOT: linalg.generic
// CHECK: tile.launch @tilewright_kernels::@k(%{{.*}}, %[[SCALED]])
// CHECK: "util.func"() <{function_type = () -> !hal.buffer_view, sym_name = "reads_a_scaled_weight$at_load", sym_visibility = "public"}>
// CHECK: %[[LOADED:.*]] = "util.global.load"() <{global = @reads_a_scaled_weight$at_load_0}>
// CHECK: %[[VIEW:.*]] = "hal.tensor.export"(%[[LOADED]]) <{source_encoding = tensor<3xf32>}>
// CHECK: "util.return"(%[[VIEW]])
#id = affine_map<(d0) -> (d0)>
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<3xf32>, sym_name = "w"}> : () -> ()
func.func @reads_a_scaled_weight(%x: tensor<3xf32>) -> tensor<3xf32> {
  %w = "util.global.load"() <{global = @w}> : () -> tensor<3xf32>
  %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %e = tensor.empty() : tensor<3xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%w, %c : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<3xf32>
  %y = tile.launch @tilewright_kernels::@k(%x, %s) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

// The function is named after the one that callers know. A reshape of a value is a view, so the value itself is stored,
// once for both of its readers.
// CHECK-LABEL: func.func @reads_twice$async
// CHECK: "util.global.load"() <{global = @reads_twice$at_load_0}> : () -> tensor<4xi32>
// CHECK: tensor.expand_shape
// CHECK-NOT: @reads_twice$at_load_1
// CHECK: sym_name = "reads_twice$at_load"
#id = affine_map<(d0) -> (d0)>
func.func @reads_twice$async() -> (tensor<4xi32>, tensor<2x2xi32>) {
  %e = tensor.empty() : tensor<4xi32>
  %i = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<4xi32>) {
  ^bb0(%o: i32):
    %n = linalg.index 0 : index
    %c = arith.index_cast %n : index to i32
    linalg.yield %c : i32
  } -> tensor<4xi32>
  %v = tensor.expand_shape %i [[0, 1]] output_shape [2, 2] : tensor<4xi32> into tensor<2x2xi32>
  %y = tile.launch @tilewright_kernels::@k(%i) : (tensor<4xi32>) -> tensor<4xi32>
  %z = tile.launch @tilewright_kernels::@l(%v) : (tensor<2x2xi32>) -> tensor<2x2xi32>
  return %y, %z : tensor<4xi32>, tensor<2x2xi32>
}

// -----

// Left alone: constants and weights as they are, elements in another order, what depends on an input, what depends on a
// global that the program changes, and what only other ops read.
// CHECK-LABEL: func.func @leaves_the_rest
// CHECK-NOT: @leaves_the_rest$at_load
#id = affine_map<(d0, d1) -> (d0, d1)>
"util.global"() <{initial_value = #stream.parameter.named<"model"::"w"> : tensor<2x3xf32>, sym_name = "w"}> : () -> ()
"util.global"() <{is_mutable, sym_name = "m", type = tensor<2x3xf32>}> : () -> ()
func.func @leaves_the_rest(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %w = "util.global.load"() <{global = @w}> : () -> tensor<2x3xf32>
  %m = "util.global.load"() <{global = @m}> : () -> tensor<2x3xf32>
  %c = arith.constant dense<1.0> : tensor<2x3xf32>
  %t = tensor.empty() : tensor<3x2xf32>
  %e = tensor.empty() : tensor<2x3xf32>
  %turned = linalg.transpose ins(%w : tensor<2x3xf32>) outs(%t : tensor<3x2xf32>) permutation = [1, 0]
  %of_input = linalg.exp ins(%x : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %of_mutable = linalg.exp ins(%m : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %for_others = linalg.exp ins(%w : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = tile.launch @tilewright_kernels::@k(%w, %c, %turned, %of_input, %of_mutable)
      : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3x2xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %z = "foreign.op"(%for_others) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y, %z : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// A loop reads its initial state, and a sequence of which each step reads a part.
// CHECK-LABEL: func.func @reads_in_a_loop()
// CHECK-DAG: "util.global.load"() <{global = @reads_in_a_loop$at_load_0}>
// CHECK-DAG: "util.global.load"() <{global = @reads_in_a_loop$at_load_1}>
// CHECK: scf.for
func.func @reads_in_a_loop() -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c = arith.constant dense<1.0> : tensor<2xf32>
  %s = arith.constant dense<2.0> : tensor<5x2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %d = tensor.empty() : tensor<5x2xf32>
  %first = linalg.exp ins(%c : tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %sequence = linalg.exp ins(%s : tensor<5x2xf32>) outs(%d : tensor<5x2xf32>) -> tensor<5x2xf32>
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %first) -> (tensor<2xf32>) {
    %part = tensor.extract_slice %sequence[%i, 0] [1, 2] [1, 1] : tensor<5x2xf32> to tensor<2xf32>
    %next = tile.launch @tilewright_kernels::@k(%part, %h) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    scf.yield %next : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
