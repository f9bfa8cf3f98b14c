// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-import-iree | FileCheck %s
// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-import-iree --tile-export-iree --mlir-print-op-generic \
// RUN:   | FileCheck %s --check-prefix=BACK

// IREE's function becomes an ordinary one; the way back restores every attribute.
// CHECK-LABEL: func.func @f(%arg0: !hal.buffer_view) -> !hal.buffer_view
// CHECK: return %arg0
// BACK: "util.func"() <{function_type = (!hal.buffer_view) -> !hal.buffer_view, inlining_policy = #util.inline.never, sym_name = "f"}>
// BACK: "util.return"(%{{.*}}) : (!hal.buffer_view) -> ()
// BACK: }) {iree.abi.stub} : () -> ()
"util.func"() <{function_type = (!hal.buffer_view) -> !hal.buffer_view, inlining_policy = #util.inline.never, sym_name = "f"}> ({
^bb0(%arg0: !hal.buffer_view):
  "util.return"(%arg0) : (!hal.buffer_view) -> ()
}) {iree.abi.stub} : () -> ()

// Everything else stays as it is.
// CHECK: "util.global"()
// BACK: "util.global"() <{sym_name = "g", type = tensor<4xf32>}>
"util.global"() <{sym_name = "g", type = tensor<4xf32>}> : () -> ()
