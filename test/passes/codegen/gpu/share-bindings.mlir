// RUN: echo '{"base": "sm_80", "maxBindings": 5}' > %t.json
// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-share-bindings=target=%t.json -split-input-file \
// RUN:   -verify-diagnostics | FileCheck %s

// Weights of a type are stored behind one another, each padded to 128 bytes, and so are constants; the results that
// stay within the program share one buffer of bytes. Both launches get weights of their own.
// CHECK-LABEL: llvm.func @k(
// CHECK-SAME: %[[x:.*]]: !llvm.ptr<1> {llvm.noalias}, %[[w:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64}, %[[c:[^:]*]]: !llvm.ptr<1>,
// CHECK-SAME: %[[y:.*]]: !llvm.ptr<1>{{.*}}, %[[own:.*]]: !llvm.ptr<1>
// CHECK-SAME: tile.binding_bytes = array<i64: 16, 256, 256, 16, 256>
// CHECK-SAME: tile.outputs = 2 : i64
// CHECK-DAG: %[[second:.*]] = llvm.getelementptr %[[w]][%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// CHECK-DAG: llvm.mlir.constant(128 : i64)
// CHECK-DAG: %[[more:.*]] = llvm.getelementptr %[[c]][
// CHECK-DAG: %[[other:.*]] = llvm.getelementptr %[[own]][
// CHECK: llvm.load %[[x]]
// CHECK: llvm.load %[[w]]
// CHECK: llvm.load %[[second]]
// CHECK: llvm.load %[[c]]
// CHECK: llvm.load %[[more]]
// CHECK: llvm.store %{{.*}}, %[[own]]
// CHECK: llvm.store %{{.*}}, %[[y]]
// CHECK: llvm.store %{{.*}}, %[[other]]
// CHECK-LABEL: func.func @main
// CHECK: %[[first:.*]] = "util.global.load"() <{global = @a}>
// CHECK: %[[flat:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1]] : tensor<2x3xf32> into tensor<6xf32>
// CHECK: %[[long:.*]] = tensor.pad %[[flat]] low[0] high[26]
// CHECK: %[[last:.*]] = tensor.pad %{{.*}} low[0] high[28]
// CHECK: %[[weights:.*]] = tensor.concat dim(0) %[[long]], %[[last]] {tile.packed_weight} : {{.*}} -> tensor<64xf32>
// CHECK: %[[constants:.*]] = arith.constant dense<[7, {{(0, )*}}1, 2, 3{{(, 0)*}}]> : tensor<64xi32>
// CHECK: %[[y:.*]]:2 = tile.launch @tilewright_kernels::@k(%{{.*}}, %[[weights]], %[[constants]])
// CHECK-SAME: -> (tensor<4xf32>, tensor<256xi8>)
// CHECK: tensor.concat
// CHECK: tile.launch @tilewright_kernels::@k(%[[y]]#0,
// A kernel with few bindings stays as it is.
// CHECK: tile.launch @tilewright_kernels::@few(%{{.*}}, %[[first]]) : (tensor<4xf32>, tensor<2x3xf32>)
module {
  "util.global"() <{initial_value = #stream.parameter.named<"model"::"a"> : tensor<2x3xf32>, sym_name = "a"}> : () -> ()
  "util.global"() <{initial_value = #stream.parameter.named<"model"::"b"> : tensor<4xf32>, sym_name = "b"}> : () -> ()
  module @tilewright_kernels {
    gpu.module @kernels {
      llvm.func @k(%x: !llvm.ptr<1> {llvm.noalias}, %a: !llvm.ptr<1> {llvm.align = 16 : i64}, %c: !llvm.ptr<1>,
                   %b: !llvm.ptr<1>, %d: !llvm.ptr<1>, %p: !llvm.ptr<1>, %y: !llvm.ptr<1>, %q: !llvm.ptr<1>)
          attributes {tile.workgroups = 3 : i64, tile.outputs = 3 : i64, tile.block_bytes = 64 : i64,
                      tile.threads = 256 : i64, tile.binding_bytes = array<i64: 16, 24, 4, 16, 12, 16, 16, 16>} {
        %0 = llvm.load %x : !llvm.ptr<1> -> f32
        %1 = llvm.load %a : !llvm.ptr<1> -> f32
        %2 = llvm.load %b : !llvm.ptr<1> -> f32
        %3 = llvm.load %c : !llvm.ptr<1> -> i32
        %4 = llvm.load %d : !llvm.ptr<1> -> i32
        llvm.store %0, %p : f32, !llvm.ptr<1>
        llvm.store %1, %y : f32, !llvm.ptr<1>
        llvm.store %2, %q : f32, !llvm.ptr<1>
        llvm.return
      }
      llvm.func @few(%x: !llvm.ptr<1>, %a: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {tile.workgroups = 3 : i64,
          tile.outputs = 1 : i64, tile.block_bytes = 64 : i64, tile.threads = 256 : i64} {
        llvm.return
      }
    }
  }
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %a = "util.global.load"() <{global = @a}> : () -> tensor<2x3xf32>
    %b = "util.global.load"() <{global = @b}> : () -> tensor<4xf32>
    %c = arith.constant dense<7> : tensor<1xi32>
    %d = arith.constant dense<[1, 2, 3]> : tensor<3xi32>
    %p, %y, %q = tile.launch @tilewright_kernels::@k(%x, %a, %c, %b, %d)
        : (tensor<4xf32>, tensor<2x3xf32>, tensor<1xi32>, tensor<4xf32>, tensor<3xi32>)
        -> (tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>)
    %r, %z, %s = tile.launch @tilewright_kernels::@k(%y, %a, %c, %b, %d)
        : (tensor<4xf32>, tensor<2x3xf32>, tensor<1xi32>, tensor<4xf32>, tensor<3xi32>)
        -> (tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>)
    %u = tile.launch @tilewright_kernels::@few(%z, %a) : (tensor<4xf32>, tensor<2x3xf32>) -> tensor<4xf32>
    return %u : tensor<4xf32>
  }
}

// -----

// The layout of the program's arguments is not ours to choose, and some of the results are read.
module {
  module @tilewright_kernels {
    gpu.module @kernels {
      // expected-error @below {{the kernel has 6 bindings; target 'sm_80' takes 5: plan smaller kernels}}
      llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %d: !llvm.ptr<1>, %p: !llvm.ptr<1>,
                   %y: !llvm.ptr<1>)
          attributes {tile.workgroups = 3 : i64, tile.outputs = 2 : i64, tile.block_bytes = 64 : i64,
                      tile.threads = 256 : i64} {
        llvm.return
      }
    }
  }
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
    %p, %y = tile.launch @tilewright_kernels::@k(%a, %b, %c, %d)
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %y : tensor<4xf32>
  }
}

// -----

// A weight of the first launch is an argument of the second, and the other way round: each gets a kernel of its own.
// CHECK-LABEL: llvm.func @k(%{{[^:]*}}: !llvm.ptr<1>, %{{[^:]*}}: !llvm.ptr<1>, %{{[^:]*}}: !llvm.ptr<1>,
// CHECK-SAME: %{{[^:]*}}: !llvm.ptr<1>, %{{[^:]*}}: !llvm.ptr<1>)
// CHECK-LABEL: llvm.func @k_for_1(%{{[^:]*}}: !llvm.ptr<1>, %{{[^:]*}}: !llvm.ptr<1>, %{{[^:]*}}: !llvm.ptr<1>,
// CHECK-SAME: %{{[^:]*}}: !llvm.ptr<1>, %{{[^:]*}}: !llvm.ptr<1>)
// CHECK: tile.launch @tilewright_kernels::@k(
// CHECK: tile.launch @tilewright_kernels::@k_for_1(
module {
  module @tilewright_kernels {
    gpu.module @kernels {
      llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %d: !llvm.ptr<1>, %e: !llvm.ptr<1>,
                   %y: !llvm.ptr<1>) attributes {tile.workgroups = 3 : i64, tile.outputs = 1 : i64,
                                                 tile.block_bytes = 64 : i64, tile.threads = 256 : i64} {
        llvm.return
      }
    }
  }
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %v = "util.global.load"() <{global = @v}> : () -> tensor<4xf32>
    %w = "util.global.load"() <{global = @w}> : () -> tensor<4xf32>
    %y = tile.launch @tilewright_kernels::@k(%v, %w, %a, %b, %c)
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %z = tile.launch @tilewright_kernels::@k(%a, %b, %c, %v, %w)
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %y, %z : tensor<4xf32>, tensor<4xf32>
  }
}
