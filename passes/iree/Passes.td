// Passes of passes/iree: the border to IREE.
#ifndef TILEWRIGHT_IREE_PASSES_TD
#define TILEWRIGHT_IREE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ImportIree : Pass<"tile-import-iree", "::mlir::ModuleOp"> {
  let summary = "Map IREE's functions to func.func";
  let description = [{
    Arrives: IREE's module at its `preprocessing` phase as MLIR 22 reads it,
    with `util.func` and `util.return` as unregistered ops. Leaves: the same
    module with each such function as `func.func`, so that ordinary passes see
    isolated functions; every attribute is kept for `tile-export-iree`.
    Functions without a body, and everything that is not a function, are left
    alone.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def PrintLaunches : Pass<"tile-print-launches", "::mlir::ModuleOp"> {
  let summary = "Print which kernels a module runs on which tensors, as JSON";
  let description = [{
    Changes nothing. Of the one function that launches kernels: its launches in
    order with numbers of the tensors that they read and make, the results with
    their shapes, and for every tensor its shape, element type, and where it
    comes from: an argument, a global, a constant, a launch, or an op that is
    not ours, with its place and, where it depends on nothing else, a function
    that computes it from other tensors; and the text of the kernel module.
  }];
  let options = [Option<"output", "output", "std::string", "", "the JSON file to write">];
}

def AlignBindings : Pass<"tile-align-bindings", "::mlir::ModuleOp"> {
  let summary = "Have IREE copy what it would bind to kernels where they cannot access whole vectors";
  let description = [{
    Arrives: `tile.launch`es of compiled kernels among ops that stay with IREE.
    IREE binds a contiguous slice of a tensor to a kernel as it lies, and has a
    kernel make its result where it lies in a concatenation or an insertion.
    Leaves: an optimization barrier, at which IREE copies, between those and a
    launch where the place is no multiple of 16 bytes on a GPU, or of 64 for
    results of kernels that store past the caches on a CPU, or is known at run
    time alone.
  }];
  let statistics = [Statistic<"numCopied", "copied", "bindings that IREE copies">];
}

def WidenConvolutions : Pass<"tile-widen-convolutions", "::mlir::ModuleOp"> {
  let summary = "Have IREE compute convolutions of narrow floats in f32";
  let description = [{
    Arrives: what stays with IREE, whether its functions are imported or not.
    Leaves: every convolution with an operand in f16, bf16 or a narrower float
    in f32: named or `linalg.generic`, grouped or not, of any rank and shape,
    also dynamic; and contractions that read a slice with steps, which IREE
    makes of some. Inputs are extended behind an optimization barrier, what is
    accumulated from is in f32, too, and the sum is rounded to the type that it
    had. Pools, elementwise ops and contractions without windows are left alone.
    See test/passes/iree/widen-convolutions.mlir.
  }];
  let options = [Option<"record", "record", "std::string", "\"\"",
                        "write how many were widened as JSON: {\"widened\": N}">];
  let statistics = [Statistic<"numWidened", "widened", "convolutions that IREE computes in f32">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SpliceIree : Pass<"tile-splice-iree", "::mlir::ModuleOp"> {
  let summary = "Splice compiled kernels into IREE's module as dispatches";
  let description = [{
    Arrives: `tile.launch`es of kernels compiled to the object at `object`.
    Leaves: one `hal.executable.source` with an export and a static import shim
    per kernel in place of the kernel module, and a `flow.dispatch` per launch,
    as unregistered ops that IREE's parser knows. Of kernels in a `gpu.module`,
    `object` is PTX, and the exports name blocks and shared memory. With
    `variants`, it is a `hal.executable` with a variant for the capability of
    each target and one for that of `target`; the runtime takes the first that
    the device has, and refuses to load the module where it has none. Results
    above 64 MB are placed by an allocation in the module (ResultStorage), on
    CPUs. See test/passes/iree/splice-iree-cuda-variants.mlir.
  }];
  let options = [Option<"object", "object", "std::string", "\"\"",
                        "path of the ELF object, or the PTX, with the kernels; that of a variant has its number in it">,
                 Option<"target", "target", "std::string", "\"\"", "target name or JSON file; only for variants">,
                 ListOption<"variants", "variants", "std::string",
                            "GPUs of more capabilities, most capable first, each with PTX of its own">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"dispatches", "dispatches", "kernels launched">];
}

def ExportIree : Pass<"tile-export-iree", "::mlir::ModuleOp"> {
  let summary = "Map imported functions back to IREE's own";
  let description = [{
    The inverse of `tile-import-iree`: functions that it made become `util.func`
    again, attribute by attribute; others stay `func.func`.
  }];
}

#endif
