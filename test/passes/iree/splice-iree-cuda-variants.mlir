// RUN: tilewright-opt %s --allow-unregistered-dialect --mlir-print-op-generic \
// RUN:   --tile-splice-iree='object=kernels.ptx target=sm_80 variants=cuda:h200,cuda:rtx3090' | FileCheck %s
// RUN: not tilewright-opt %s --allow-unregistered-dialect -o /dev/null \
// RUN:   --tile-splice-iree='object=kernels.ptx target=sm_80 variants=sm_86,sm_90' 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not tilewright-opt %s --allow-unregistered-dialect -o /dev/null \
// RUN:   --tile-splice-iree='object=kernels.ptx target=x86-64-avx2 variants=sm_86' 2>&1 | FileCheck %s --check-prefix=CPU

// Each capability gets a variant, the most capable first, with all exports and PTX of its own; the runtime takes the
// first variant whose condition holds.
// CHECK: "hal.executable"()
// CHECK: "hal.executable.variant"()
// CHECK: "hal.executable.condition"()
// CHECK: %[[MAJOR:.*]]:2 = "hal.device.query"(%{{.*}}) {category = "cuda.device", key = "compute_capability_major"}
// CHECK: %[[MINOR:.*]]:2 = "hal.device.query"(%{{.*}}) {category = "cuda.device", key = "compute_capability_minor"}
// CHECK: %[[TENS:.*]] = "arith.muli"(%[[MAJOR]]#1,
// CHECK: %[[BOTH:.*]] = "arith.addi"(%[[TENS]], %[[MINOR]]#1)
// CHECK: %[[LEAST:.*]] = "arith.constant"() <{value = 90 : i32}>
// CHECK: %[[HOLDS:.*]] = "arith.cmpi"(%[[BOTH]], %[[LEAST]]) <{predicate = 5 : i64}>
// CHECK: "hal.return"(%[[HOLDS]])
// CHECK: function_type = (!hal.device) -> i1
// CHECK: sym_name = "k"
// CHECK: "hal.executable.variant_end"
// CHECK: objects = [#hal.executable.object<{path = "kernels.0.ptx"}>], sym_name = "sm_90"
// CHECK-SAME: target = #hal.executable.target<"cuda", "cuda-nvptx-fb">
// CHECK: value = 86 : i32
// CHECK: sym_name = "k"
// CHECK: objects = [#hal.executable.object<{path = "kernels.1.ptx"}>], sym_name = "sm_86"
// CHECK: value = 80 : i32
// CHECK: sym_name = "k"
// CHECK: objects = [#hal.executable.object<{path = "kernels.ptx"}>], sym_name = "sm_80"
// CHECK: "hal.executable_end"
// CHECK: entry_points = [@tilewright_kernels::@sm_90::@k, @tilewright_kernels::@sm_86::@k, @tilewright_kernels::@sm_80::@k]

// ORDER: error: variant 'sm_90' would never be chosen, because 'sm_86' comes before it; put the most capable first
// CPU: error: target 'x86-64-avx2' has no compute capability
module {
  module @tilewright_kernels {
    gpu.module @kernels {
      llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {tile.workgroups = 3 : i64, tile.outputs = 1 : i64,
          tile.block_bytes = 100 : i64, tile.threads = 256 : i64} {
        llvm.return
      }
    }
  }
  func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {
    %y = tile.launch @tilewright_kernels::@k(%x) : (tensor<7xf32>) -> tensor<7xf32>
    return %y : tensor<7xf32>
  }
}
